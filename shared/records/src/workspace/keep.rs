//! What is kept of a trial that has ended: one snapshot of its workspace, from which `spotsweep retry --continue`
//! continues. A snapshot costs less than a volume, and can be used in each zone (fact 31).

use jiff::{SignedDuration, Timestamp};

use super::snapshots::MAX_FINAL_TRIES;
use super::{SnapshotState, Stage, Surroundings, VolumeState, Workspace};
use spotsweep_protocol::ids::SweepId;

/// The longest time for which a workspace is kept. The sweep's own record exists at least as long; without it no
/// function would delete the snapshot.
const LONGEST: SignedDuration = SignedDuration::from_hours(LONGEST_KEPT_DAYS * 24);

/// [`LONGEST`] in days: the longest time that a sweep file can state, and the time that a continuation adds.
pub const LONGEST_KEPT_DAYS: i64 = 45;

/// What is kept of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept<'a> {
    /// `snap-…`, once it is complete; absent before.
    pub snapshot: Option<&'a str>,
    /// When the snapshot is deleted.
    pub until: Timestamp,
}

/// Returns until when a workspace can be kept at most.
fn longest(since: Timestamp) -> Timestamp {
    since.checked_add(LONGEST).unwrap_or(Timestamp::MAX)
}

impl Workspace {
    /// Returns what is kept of the trial after its end.
    pub fn kept(&self) -> Option<Kept<'_>> {
        let Stage::Kept { until, .. } = self.stage else { return None };
        let is_saved = |snapshot: &&super::Snapshot| snapshot.state == SnapshotState::Completed && self.is_saved();
        let snapshot = self.snapshots.values().rfind(is_saved).and_then(|snapshot| snapshot.id.as_deref());
        Some(Kept { snapshot, until })
    }

    /// Ends the workspace with its trial: it is kept for a while if it was trained on, and otherwise deleted.
    pub(super) fn end(&mut self, around: Surroundings<'_>) -> Stage {
        let has_trained = self.volume.used || self.source.is_some() || self.newest_completed().is_some();
        match around.keeps_until.filter(|_| has_trained && !self.user_owned) {
            Some(until) => {
                // An unverified copy is deleted, because its source has the same bytes.
                self.return_to_source(around.now);
                self.finished = false;
                Stage::Kept { since: around.now, until }
            }
            None => self.dispose(around.now),
        }
    }

    /// Saves the volume in a snapshot and then deletes the volume. When the time has passed, deletes the snapshot too.
    pub(super) fn leave_kept(&mut self, until: Timestamp, around: Surroundings<'_>) -> Option<Stage> {
        if around.is_due && around.now >= until && self.expired_for(around.now).is_none() {
            return Some(self.dispose(around.now));
        }
        if self.is_saved() {
            self.discard_superseded();
            self.give_volume_up(around.now);
            return None;
        }
        let state = self.volume.saved_by.and_then(|operation| self.snapshots.get(&operation)).map(|held| held.state);
        match state {
            Some(SnapshotState::Asked | SnapshotState::Pending | SnapshotState::Completed) => {}
            Some(SnapshotState::Failed) | None if self.is_volume_lost() => {
                self.note("the volume is lost, and no snapshot of it is complete: nothing is kept of the workspace");
                return Some(self.dispose(around.now));
            }
            Some(SnapshotState::Failed) | None if self.failed_final_snapshots() < MAX_FINAL_TRIES => {
                self.volume.saved_by = None;
                self.snapshot_final(around.now);
            }
            // The volume itself is kept, because no snapshot of it succeeds.
            Some(SnapshotState::Failed) | None => {}
        }
        None
    }

    /// Keeps the snapshot longer, because an open sweep has a trial that continues from it.
    pub(super) fn keep_longer(&mut self, by: &SweepId, wanted: Timestamp) {
        if let Stage::Kept { since, until } = &mut self.stage {
            *until = wanted.min(longest(*since)).max(*until);
            self.continued_by.insert(by.clone());
        }
    }

    /// Returns a sweep that has to be looked up before the snapshot is deleted, because the time for which it is kept
    /// has passed.
    pub fn expired_for(&self, now: Timestamp) -> Option<&SweepId> {
        let Stage::Kept { since, until } = self.stage else { return None };
        self.continued_by.first().filter(|_| until <= now && now < longest(since))
    }

    /// Whether a completed snapshot holds all bytes that are left of the workspace.
    fn is_saved(&self) -> bool {
        let by = self.volume.saved_by.and_then(|operation| self.snapshots.get(&operation));
        let is_complete = by.is_some_and(|snapshot| snapshot.state == SnapshotState::Completed);
        is_complete || (self.is_volume_lost() && self.newest_completed().is_some())
    }

    /// Whether the volume has no bytes of the training, because it is gone or was never mounted.
    fn is_volume_lost(&self) -> bool {
        matches!(self.volume.state, VolumeState::Error | VolumeState::Absent) || !self.volume.used
    }

    fn give_volume_up(&mut self, now: Timestamp) {
        if self.volume.state == VolumeState::Absent {
            return;
        }
        self.discard(self.volume.clone(), now);
        if self.volume.id.is_none() {
            self.volume.state = VolumeState::Absent;
        }
    }
}
