//! What is kept of a trial that has ended: one snapshot of its workspace, from which `spotsweep retry --continue` goes
//! on. A snapshot costs less than a volume, and holds for each zone (fact 31).

use jiff::{SignedDuration, Timestamp};

use super::snapshots::MAX_FINAL_TRIES;
use super::{SnapshotState, Stage, Surroundings, VolumeState, Workspace};
use spotsweep_protocol::ids::SweepId;

/// The longest that anything is kept: as long as the sweep's own record is there at least, without which no function
/// would delete it.
const LONGEST: SignedDuration = SignedDuration::from_hours(LONGEST_KEPT_DAYS * 24);

/// [`LONGEST`] in days: the longest time that a sweep file can state, and what a continuation adds.
pub const LONGEST_KEPT_DAYS: i64 = 45;

/// What is kept of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept<'a> {
    /// `snap-…`, once it is complete.
    pub snapshot: Option<&'a str>,
    /// When it is deleted.
    pub until: Timestamp,
}

/// Until when something is kept at most.
fn longest(since: Timestamp) -> Timestamp {
    since.checked_add(LONGEST).unwrap_or(Timestamp::MAX)
}

impl Workspace {
    /// What is kept of the trial after its end.
    pub fn kept(&self) -> Option<Kept<'_>> {
        let Stage::Kept { until, .. } = self.stage else { return None };
        let is_saved = |snapshot: &&super::Snapshot| snapshot.state == SnapshotState::Completed && self.is_saved();
        let snapshot = self.snapshots.values().rfind(is_saved).and_then(|snapshot| snapshot.id.as_deref());
        Some(Kept { snapshot, until })
    }

    /// The trial is over: what it has trained is kept for a while, or all of its workspace goes.
    pub(super) fn end(&mut self, around: Surroundings<'_>) -> Stage {
        let has_trained = self.volume.used || self.source.is_some() || self.newest_completed().is_some();
        match around.keeps_until.filter(|_| has_trained && !self.user_owned) {
            Some(until) => {
                // An unverified copy goes: its source has the same bytes.
                self.return_to_source(around.now);
                self.finished = false;
                Stage::Kept { since: around.now, until }
            }
            None => self.dispose(around.now),
        }
    }

    /// Saves the volume in a snapshot, then deletes the volume; and at the time, the snapshot.
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
            // The volume itself is kept.
            Some(SnapshotState::Failed) | None => {}
        }
        None
    }

    /// A sweep that goes on from this trial is open: what is kept must be there for its trials.
    pub(super) fn keep_longer(&mut self, by: &SweepId, wanted: Timestamp) {
        if let Stage::Kept { since, until } = &mut self.stage {
            *until = wanted.min(longest(*since)).max(*until);
            self.continued_by.insert(by.clone());
        }
    }

    /// A sweep that is to be looked up before what is kept is deleted, because the time of that has passed.
    pub fn expired_for(&self, now: Timestamp) -> Option<&SweepId> {
        let Stage::Kept { since, until } = self.stage else { return None };
        self.continued_by.first().filter(|_| until <= now && now < longest(since))
    }

    /// Whether a completed snapshot holds all that is left of the workspace.
    fn is_saved(&self) -> bool {
        let by = self.volume.saved_by.and_then(|operation| self.snapshots.get(&operation));
        let is_complete = by.is_some_and(|snapshot| snapshot.state == SnapshotState::Completed);
        is_complete || (self.is_volume_lost() && self.newest_completed().is_some())
    }

    /// Whether the volume has no bytes of the training: it is gone, or was never mounted.
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
