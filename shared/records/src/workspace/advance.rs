//! The transitions of the table in `workspace.rs`: how far the workspace advances with the known facts.

use jiff::Timestamp;

use super::actions::RECOMMENDED_DEVICES;
use super::{Place, Stage, VolumeState, Workspace, WorkspacePlan};

/// Most steps of one call: twice the longest path through the table. It only bounds the loop.
const MAX_STEPS: usize = 20;

/// What a transition depends on besides the workspace.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The trial's index within its sweep.
    pub index: u32,
    /// The snapshot that the trial starts from, where each trial has its own.
    pub snapshot: Option<&'a str>,
    /// What the sweep's workspaces are made of.
    pub plan: &'a WorkspacePlan,
    /// How many of the trial's attempts Batch has reported ended.
    pub ended: u32,
    /// Whether the trial is terminal.
    pub is_over: bool,
    /// Until when the workspace is kept; `None` if it is deleted when the trial ends.
    pub keeps_until: Option<Timestamp>,
    /// Whether the function that handles this may make all remaining calls.
    pub is_due: bool,
    /// The present time.
    pub now: Timestamp,
    /// The present time minus one lease.
    pub lease_ended: Timestamp,
}

impl Workspace {
    /// Goes through the table as far as the known facts allow.
    pub(crate) fn advance(&mut self, around: Surroundings<'_>) {
        for _ in 0..MAX_STEPS {
            let Some(stage) = self.next_stage(around) else { return };
            self.stage = stage;
        }
    }

    fn next_stage(&mut self, around: Surroundings<'_>) -> Option<Stage> {
        match self.stage.clone() {
            Stage::Creating => self.leave_creating(around),
            Stage::Attaching { to, device } => self.leave_attaching(to, device, around),
            Stage::Attached { to, .. } => self.leave_attached(&to, around),
            Stage::Detaching { .. } => self.leave_detaching(around),
            Stage::Detached => self.leave_detached(around),
            Stage::AwaitingSnapshot => self.leave_awaiting(around),
            Stage::Kept { until, .. } => self.leave_kept(until, around),
            Stage::Disposing => self.leave_disposing(),
            Stage::Gone => None,
        }
    }

    fn leave_creating(&mut self, around: Surroundings<'_>) -> Option<Stage> {
        if around.is_over {
            return Some(self.end(around));
        }
        // CreateVolume's answer is awaited, because a volume that is given up without an id has to be looked up. A
        // refusal is an answer too, although not to every call that was made.
        let can_leave = self.volume.id.is_some() || self.refusals > 0;
        if can_leave && self.worth_it().is_some_and(|place| place.zone != self.volume.zone) {
            return Some(self.abandon(around.now));
        }
        match &self.volume.state {
            VolumeState::Asked | VolumeState::Unknown | VolumeState::Creating => None,
            VolumeState::Available | VolumeState::InUse { .. } => Some(Stage::Detached),
            VolumeState::Error | VolumeState::Absent => {
                self.after_failed_volume(around.now);
                None
            }
        }
    }

    fn leave_attaching(&mut self, to: Place, device: u32, around: Surroundings<'_>) -> Option<Stage> {
        if self.is_left_by(&to, around) {
            return Some(Stage::Detaching { since: around.now });
        }
        match &self.volume.state {
            VolumeState::InUse { instance, steady: true } if *instance == to.instance => {
                (self.refusals, self.refused_since) = (0, None);
                Some(Stage::Attached { to, device, mounted: false })
            }
            VolumeState::InUse { instance, .. } if *instance != to.instance => {
                Some(Stage::Detaching { since: around.now })
            }
            VolumeState::Error | VolumeState::Absent => Some(self.lost(around)),
            VolumeState::Available if self.is_under_notice(&to) => Some(Stage::Detached),
            VolumeState::Asked
            | VolumeState::Unknown
            | VolumeState::Creating
            | VolumeState::Available
            | VolumeState::InUse { .. } => None,
        }
    }

    fn leave_attached(&mut self, to: &Place, around: Surroundings<'_>) -> Option<Stage> {
        if self.is_left_by(to, around) {
            return Some(Stage::Detaching { since: around.now });
        }
        match &self.volume.state {
            VolumeState::Error | VolumeState::Absent => Some(self.lost(around)),
            // A person has detached the volume, or its instance is gone and Batch has not reported that yet.
            VolumeState::Available => Some(Stage::Detaching { since: around.now }),
            VolumeState::Asked | VolumeState::Unknown | VolumeState::Creating | VolumeState::InUse { .. } => None,
        }
    }

    fn leave_detaching(&mut self, around: Surroundings<'_>) -> Option<Stage> {
        match &self.volume.state {
            VolumeState::Available if around.is_over => Some(self.end(around)),
            VolumeState::Available => {
                self.snapshot_final(around.now);
                Some(Stage::Detached)
            }
            VolumeState::Error | VolumeState::Absent if around.is_over => Some(self.end(around)),
            VolumeState::Error | VolumeState::Absent => Some(self.lost(around)),
            VolumeState::Asked | VolumeState::Unknown | VolumeState::Creating | VolumeState::InUse { .. } => None,
        }
    }

    fn leave_detached(&mut self, around: Surroundings<'_>) -> Option<Stage> {
        if around.is_over {
            return Some(self.end(around));
        }
        let to = self.worth_it().filter(|place| place.attempt > around.ended && self.can_be_had())?.clone();
        if to.zone == self.volume.zone {
            // Neighbours in the array are likely to share an instance, so they start with different device names.
            return Some(Stage::Attaching { device: around.index % RECOMMENDED_DEVICES, to });
        }
        if !self.volume.used {
            return Some(self.abandon(around.now));
        }
        self.snapshot_final(around.now);
        Some(Stage::AwaitingSnapshot)
    }

    fn leave_disposing(&mut self) -> Option<Stage> {
        if !self.user_owned
            && self.volume.state != VolumeState::Absent
            && let Some(id) = &self.volume.id
        {
            self.pending_deletes.insert(id.clone());
        }
        self.discard_snapshots(u32::MAX);
        let are_known = self.unanswered.is_empty() && self.snapshots.values().all(|snapshot| snapshot.id.is_some());
        (are_known && self.pending_deletes.is_empty()).then_some(Stage::Gone)
    }

    /// Starts to delete everything, except for an adopted volume.
    pub(super) fn dispose(&mut self, now: Timestamp) -> Stage {
        if let Some(source) = self.source.take() {
            // If the source of an unverified copy is an adopted volume, it stays and the copy is deleted.
            let other = if self.user_owned { std::mem::replace(&mut self.volume, source) } else { source };
            self.discard(other, now);
        }
        if self.volume.id.is_none() {
            self.discard(self.volume.clone(), now);
        }
        Stage::Disposing
    }

    /// Whether the newest attempt can still have the volume.
    fn can_be_had(&self) -> bool {
        self.unavailable.is_none() && self.refused.is_none()
    }

    /// Returns the place where the volume is wanted, unless its instance is under notice.
    pub(super) fn worth_it(&self) -> Option<&Place> {
        self.wanted.as_ref().filter(|place| !self.is_under_notice(place))
    }

    /// Whether the attempt that has the volume must not have it any more.
    fn is_left_by(&self, to: &Place, around: Surroundings<'_>) -> bool {
        around.is_over || around.ended >= to.attempt || self.wanted.as_ref().is_some_and(|place| place != to)
    }
}
