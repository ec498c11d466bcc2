//! When snapshots are requested, what their states change, and which of them are superseded.

use jiff::Timestamp;

use super::{Snapshot, SnapshotState, Stage, Surroundings, VolumeState, Workspace};

/// How many final snapshots of one volume may fail before the waiting attempt has to leave.
pub(super) const MAX_FINAL_TRIES: usize = 3;

impl Workspace {
    /// Takes an early snapshot after a notice, so that the final one has little to copy (fact 4). An attempt gets only
    /// one.
    pub(super) fn snapshot_early(&mut self, instance: &str, now: Timestamp) {
        let Stage::Attached { to, mounted: true, .. } = &self.stage else { return };
        let attempt = to.attempt;
        if to.instance == instance && !self.was_noticed(attempt) {
            self.ask_snapshot(Some(attempt), now);
        }
    }

    /// Whether a notice to the attempt's instance has led to a snapshot.
    pub(crate) fn was_noticed(&self, attempt: u32) -> bool {
        self.snapshots.values().any(|snapshot| snapshot.early == Some(attempt))
    }

    /// Takes a final snapshot of a volume that nothing writes to any more, if there is none yet.
    pub(super) fn snapshot_final(&mut self, now: Timestamp) {
        if self.volume.used && self.volume.saved_by.is_none() && !self.finished {
            self.volume.saved_by = self.ask_snapshot(None, now);
        }
    }

    fn ask_snapshot(&mut self, early: Option<u32>, now: Timestamp) -> Option<u32> {
        let volume = self.volume.id.clone()?;
        let operation = self.next_operation();
        let snapshot = Snapshot { id: None, volume, state: SnapshotState::Asked, asked_at: now, early };
        self.snapshots.insert(operation, snapshot);
        Some(operation)
    }

    /// Requests a snapshot again under the same operation, or forgets it if it is not wanted any more. Only the
    /// invocation that takes the lease does this. Another invocation that did not find the snapshot either, or looked
    /// too early, must not request it as well.
    pub(super) fn snapshot_not_found(&mut self, operation: u32, around: Surroundings<'_>) {
        let is_wanted = !around.is_over && self.wants_snapshot(operation);
        let Some(snapshot) = self.snapshots.get_mut(&operation) else { return };
        if snapshot.state != SnapshotState::Asked || snapshot.asked_at > around.lease_ended {
            return;
        }
        if is_wanted {
            snapshot.asked_at = around.now;
        } else {
            self.snapshots.remove(&operation);
        }
    }

    /// Whether a snapshot is still of use: a final one until its volume is mounted again, an early one while its
    /// attempt has the volume.
    fn wants_snapshot(&self, operation: u32) -> bool {
        let mut volumes = [Some(&self.volume), self.source.as_ref()].into_iter().flatten();
        let early = self.snapshots.get(&operation).and_then(|snapshot| snapshot.early);
        volumes.any(|volume| volume.saved_by == Some(operation)) || (early.is_some() && early == self.holder())
    }

    pub(super) fn snapshot_seen(&mut self, operation: Option<u32>, id: &str, state: SnapshotState) {
        self.missing.remove(id);
        let operation = operation.or_else(|| {
            self.snapshots.iter().find(|(_, held)| held.id.as_deref() == Some(id)).map(|(operation, _)| *operation)
        });
        let Some(snapshot) = operation.and_then(|operation| self.snapshots.get_mut(&operation)) else { return };
        if snapshot.id.as_deref().is_some_and(|held| held != id) {
            // Two snapshots were taken for one request, and the other one is in use.
            self.pending_deletes.insert(id.to_owned());
            return;
        }
        snapshot.id = Some(id.to_owned());
        if snapshot.state.is_open() {
            snapshot.state = state;
            match state {
                SnapshotState::Completed => self.discard_superseded(),
                SnapshotState::Failed => self.note(format!("snapshot {id} failed")),
                SnapshotState::Asked | SnapshotState::Pending => {}
            }
        }
    }

    /// Returns the stage that follows `AwaitingSnapshot`, if the facts allow it.
    pub(super) fn leave_awaiting(&mut self, around: Surroundings<'_>) -> Option<Stage> {
        if matches!(self.volume.state, VolumeState::Error | VolumeState::Absent) && !around.is_over {
            return Some(self.lost(around));
        }
        let zone = self.worth_it().map(|place| place.zone.clone());
        if around.is_over || zone.as_ref().is_none_or(|zone| *zone == self.volume.zone) {
            return Some(Stage::Detached);
        }
        let held = self.volume.saved_by.and_then(|operation| self.snapshots.get(&operation));
        let (state, id) = held.map_or((SnapshotState::Failed, None), |held| (held.state, held.id.clone()));
        match (state, id) {
            (SnapshotState::Completed, Some(snapshot)) => {
                self.copy_from(snapshot, zone?);
                Some(Stage::Creating)
            }
            (SnapshotState::Asked | SnapshotState::Pending | SnapshotState::Completed, _) => None,
            (SnapshotState::Failed, _) => self.after_failed_snapshot(around.now),
        }
    }

    fn after_failed_snapshot(&mut self, now: Timestamp) -> Option<Stage> {
        if self.failed_final_snapshots() < MAX_FINAL_TRIES {
            self.volume.saved_by = None;
            self.snapshot_final(now);
            return None;
        }
        // There may be an older snapshot, but the volume has the newest bytes, and the next attempt may run in its
        // zone. The failed snapshots are forgotten, so that a later attempt tries again.
        let why = format!("no snapshot of the workspace succeeds, and it lies in {}", self.volume.zone);
        self.note(why.clone());
        self.unavailable = Some(why);
        let failed = |snapshot: &&Snapshot| snapshot.state == SnapshotState::Failed;
        self.pending_deletes.extend(self.snapshots.values().filter(failed).filter_map(|snapshot| snapshot.id.clone()));
        self.snapshots.retain(|_, snapshot| snapshot.state != SnapshotState::Failed);
        self.volume.saved_by = None;
        Some(Stage::Detached)
    }

    /// Returns how many final snapshots of the present volume have failed.
    pub(super) fn failed_final_snapshots(&self) -> usize {
        let volume = self.volume.id.as_deref();
        let of_volume = |snapshot: &&Snapshot| Some(snapshot.volume.as_str()) == volume;
        let failed = |snapshot: &&Snapshot| snapshot.state == SnapshotState::Failed && snapshot.early.is_none();
        self.snapshots.values().filter(of_volume).filter(failed).count()
    }

    pub(super) fn newest_completed(&self) -> Option<String> {
        let completed = |snapshot: &&Snapshot| snapshot.state == SnapshotState::Completed;
        self.snapshots.values().rfind(completed).and_then(|snapshot| snapshot.id.clone())
    }

    /// Discards the snapshots before the newest completed one. A completed snapshot holds all that the older ones hold,
    /// and later ones stay incremental to it (fact 4). While a copy is being made from a snapshot, all stay until the
    /// copy is mounted.
    pub(super) fn discard_superseded(&mut self) {
        let completed = |(_, snapshot): &(&u32, &Snapshot)| snapshot.state == SnapshotState::Completed;
        let Some(newest) = self.snapshots.iter().filter(completed).map(|(operation, _)| *operation).next_back() else {
            return;
        };
        if self.source.is_none() {
            self.discard_snapshots(newest);
        }
    }

    /// Discards the snapshots of operations before this one whose ids are known.
    pub(super) fn discard_snapshots(&mut self, before: u32) {
        let old = self.snapshots.iter().filter(|(operation, _)| **operation < before);
        self.pending_deletes.extend(old.filter_map(|(_, snapshot)| snapshot.id.clone()));
        // A snapshot that was refused does not exist.
        self.snapshots.retain(|operation, snapshot| {
            *operation >= before || snapshot.id.is_some() || snapshot.state != SnapshotState::Failed
        });
    }
}
