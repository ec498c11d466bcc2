//! What each fact changes. Facts come late, twice and in any order, so each changes the record only where it still
//! applies.

use jiff::Timestamp;

use super::{Call, Fact, Initialized, Place, Stage, Surroundings, VolumeState, Workspace};
use spotsweep_protocol::claim::{Found, NoticeKind};

/// How long a notice is remembered. The instance is gone two minutes after it, and its id is never used again.
const NOTICE_REMEMBERED_SECONDS: i64 = 900;

impl Workspace {
    /// Adds a fact and advances the workspace as far as it allows. Returns the calls that the fact itself needs.
    pub fn apply(&mut self, fact: &Fact, around: Surroundings<'_>) -> Vec<Call> {
        let mut calls = Vec::new();
        match fact {
            // The function that handles notices may only take snapshots, so the remaining work is left to others.
            Fact::Noticed { .. } if around.is_over => return calls,
            Fact::Wanted(place) => self.want(place),
            Fact::Noticed { instance, kind: NoticeKind::Interruption } => {
                self.notice(instance, around.now);
                self.snapshot_early(instance, around.now);
            }
            Fact::Noticed { kind: NoticeKind::Rebalance, .. } | Fact::PlaceUnknown | Fact::Due => {}
            Fact::Mounted { attempt, volume, found } => self.mounted(*attempt, volume, found, around.now),
            Fact::Sealed { attempt, seal } => {
                if self.holder() == Some(*attempt) {
                    self.seal = Some(seal.clone());
                }
            }
            Fact::Released { attempt, seal, rollback } => {
                if self.holder() == Some(*attempt) {
                    if let Some(rollback) = rollback {
                        self.note(format!("attempt {attempt}: {rollback}"));
                    }
                    self.seal = seal.clone().or(self.seal.take());
                    self.leave(*attempt, around.now);
                    // The volume is unmounted, so nothing writes to it and the snapshot does not have to wait for the
                    // detachment.
                    self.snapshot_final(around.now);
                }
            }
            Fact::Finished { attempt } => {
                if self.holder() == Some(*attempt) {
                    self.finished = true;
                    self.leave(*attempt, around.now);
                }
            }
            Fact::Volume { operation, id, state } => calls = self.volume_seen(*operation, id, state, around.is_over),
            Fact::VolumeNotFound { operation } => {
                self.unanswered.retain(|given_up, since| given_up != operation || *since > around.lease_ended);
            }
            Fact::RateTaken { operation, bytes } => {
                if *operation > self.initialized.operation {
                    self.initialized =
                        Initialized { operation: *operation, bytes: self.initialized.bytes.saturating_add(*bytes) };
                }
            }
            Fact::VolumeReported { id, failure } => self.volume_reported(id, failure.as_deref(), around.now),
            Fact::Refused(refusal) => self.refused(refusal, around.now),
            Fact::Snapshot { operation, id, state } => self.snapshot_seen(*operation, id, *state),
            Fact::SnapshotNotFound { operation } => {
                self.snapshot_not_found(*operation, around);
            }
            Fact::Continued { by, until } => self.keep_longer(by, *until),
            Fact::Discontinued { by } => {
                self.continued_by.remove(by);
            }
            Fact::Deleted(id) => self.deleted(id),
            Fact::Missing(id) => {
                if *self.missing.entry(id.clone()).or_insert(around.now) <= around.lease_ended {
                    self.deleted(id);
                }
            }
        }
        self.advance(around);
        calls
    }

    /// Returns the attempt that has the volume.
    pub fn holder(&self) -> Option<u32> {
        match &self.stage {
            Stage::Attached { to, .. } => Some(to.attempt),
            Stage::Creating
            | Stage::Attaching { .. }
            | Stage::Detaching { .. }
            | Stage::Detached
            | Stage::AwaitingSnapshot
            | Stage::Kept { .. }
            | Stage::Disposing
            | Stage::Gone => None,
        }
    }

    /// Notes that an attempt has unmounted the volume for good.
    fn leave(&mut self, attempt: u32, now: Timestamp) {
        self.left_by = attempt;
        self.wanted = None;
        self.stage = Stage::Detaching { since: now };
    }

    /// Notes that an instance will be reclaimed. Without draining, Batch can place a later attempt there (fact 9).
    fn notice(&mut self, instance: &str, now: Timestamp) {
        self.under_notice.retain(|_, since| now.as_second() - since.as_second() < NOTICE_REMEMBERED_SECONDS);
        if !instance.is_empty() {
            self.under_notice.entry(instance.to_owned()).or_insert(now);
        }
    }

    /// Whether the instance of the place is under notice, so that no volume is attached there any more.
    pub fn is_under_notice(&self, place: &Place) -> bool {
        self.under_notice.contains_key(&place.instance)
    }

    fn want(&mut self, place: &Place) {
        if place.attempt <= self.left_by {
            return;
        }
        let newest = self.wanted.as_ref().map_or(0, |wanted| wanted.attempt);
        if place.attempt > newest {
            self.wanted = Some(place.clone());
            self.finished = false;
            self.forget_refusals();
        } else if place.attempt == newest {
            // The place that the attempt itself reports replaces the one that was looked up before it ran.
            self.wanted = Some(place.clone());
        }
    }

    fn mounted(&mut self, attempt: u32, volume: &str, found: &Found, now: Timestamp) {
        let Stage::Attached { to, mounted, .. } = &mut self.stage else { return };
        if to.attempt != attempt || self.volume.id.as_deref() != Some(volume) || *mounted {
            return;
        }
        let is_given_up = !found.is_usable() && self.source.is_some() && !self.second_copy;
        *mounted = !is_given_up;
        for torn in found.torn.iter().chain(&found.missing) {
            let resumed = found.newest.as_deref().unwrap_or("the beginning");
            self.note(format!("attempt {attempt}: {torn} is not what was sealed; resuming from {resumed}"));
        }
        if is_given_up {
            self.second_copy = true;
            self.note("the copy does not hold what was sealed: copying again from the source");
            self.unavailable = Some("the copied workspace does not hold what was sealed; it is copied again".into());
            self.return_to_source(now);
            return;
        }
        self.second_copy = false;
        self.volume.used = true;
        self.volume.saved_by = None;
        if let Some(source) = self.source.take() {
            self.discard(source, now);
        }
        self.discard_superseded();
    }

    fn volume_seen(&mut self, operation: Option<u32>, id: &str, state: &VolumeState, is_over: bool) -> Vec<Call> {
        self.missing.remove(id);
        self.unanswered.retain(|given_up, _| Some(*given_up) != operation);
        if self.pending_deletes.contains(id) {
            let is_own = matches!(self.stage, Stage::Kept { .. }) && self.volume.id.as_deref() == Some(id);
            if is_own && *state != VolumeState::Absent {
                // An attachment that began earlier may show up now. Not every function that saves a volume may detach
                // it, so the detachment waits until the trial is due.
                self.volume.state = state.clone();
                return vec![];
            }
            return match state {
                VolumeState::InUse { steady: true, .. } => {
                    vec![Call::DetachVolume { volume: id.to_owned(), force: false }]
                }
                VolumeState::Absent => {
                    self.deleted(id);
                    vec![]
                }
                VolumeState::Asked
                | VolumeState::Unknown
                | VolumeState::Creating
                | VolumeState::Available
                | VolumeState::InUse { .. }
                | VolumeState::Error => vec![],
            };
        }
        let is_made = self.stage != Stage::Gone && operation == Some(self.volume.operation);
        if is_made && self.volume.id.is_none() {
            self.volume.id = Some(id.to_owned());
            self.refused_since = None;
        }
        if self.volume.id.as_deref() == Some(id) {
            let was_steady = matches!(self.volume.state, VolumeState::InUse { steady: true, .. });
            self.volume.state = state.clone();
            let is_leaving = matches!(state, VolumeState::InUse { steady: false, .. });
            if was_steady && is_leaving && is_over {
                // No later attempt will look at the volume, and EBS sends no event about its detachment.
                return vec![Call::AwaitDetached(id.to_owned())];
            }
        } else if let Some(source) = self.source.as_mut().filter(|source| source.id.as_deref() == Some(id)) {
            source.state = state.clone();
        } else if operation.is_some_and(|operation| operation <= self.operations) {
            // The volume was given up before CreateVolume's answer came or the volume was found, so it has to be
            // deleted.
            self.pending_deletes.insert(id.to_owned());
        }
        vec![]
    }

    /// Notes an EBS event. It says nothing of attachments, so it counts only while the volume is being created.
    fn volume_reported(&mut self, id: &str, failure: Option<&str>, now: Timestamp) {
        let is_own = self.volume.id.as_deref() == Some(id);
        if self.stage == Stage::Creating && is_own {
            self.volume.state = if failure.is_none() { VolumeState::Available } else { VolumeState::Error };
        }
        if let Some(cause) = failure.filter(|_| is_own || self.pending_deletes.contains(id)) {
            // The advance that follows counts the failure of the volume that is being created. That of a discarded one
            // is already counted.
            let failed = self.refusals + u32::from(is_own);
            self.failed_by_key(cause, failed, now);
        }
    }

    fn deleted(&mut self, id: &str) {
        self.missing.remove(id);
        self.pending_deletes.remove(id);
        self.snapshots.retain(|_, snapshot| snapshot.id.as_deref() != Some(id));
        for volume in [Some(&mut self.volume), self.source.as_mut()].into_iter().flatten() {
            if volume.id.as_deref() == Some(id) {
                volume.state = VolumeState::Absent;
            }
        }
    }
}
