//! When a volume is given up: for another zone, for a failed copy, or because it is lost.
//!
//! A trial falls back in this order: its own volume; the source of an unverified copy; the newest completed snapshot;
//! what every trial of the sweep starts from. Each of these except the first is noted on the trial, so a trial never
//! silently starts from nothing.

use jiff::Timestamp;

use super::refusals::MAX_REFUSALS;
use super::{Origin, Stage, Surroundings, Volume, VolumeState, Workspace};

impl Workspace {
    /// Gives up a volume that was never mounted, for one in the zone where it is wanted.
    pub(super) fn abandon(&mut self, now: Timestamp) -> Stage {
        let zone = self.wanted.as_ref().map_or_else(|| self.volume.zone.clone(), |place| place.zone.clone());
        if self.source.as_ref().is_some_and(|source| source.zone == zone) {
            self.return_to_source(now);
            return self.stage.clone();
        }
        self.discard(self.volume.clone(), now);
        self.renew(zone, self.volume.origin.clone());
        Stage::Creating
    }

    /// Requests another volume after a creation that failed once CreateVolume had answered. The used token is refused
    /// for hours (fact 26), so the next volume has a new operation. After several failures the attempt has to leave.
    pub(super) fn after_failed_volume(&mut self, now: Timestamp) {
        if self.unavailable.is_some() {
            return;
        }
        self.refusals += 1;
        let zone = self.volume.zone.clone();
        self.note(format!("volume {} could not be made in {zone}", self.volume.id.as_deref().unwrap_or_default()));
        self.discard(self.volume.clone(), now);
        if self.refusals >= MAX_REFUSALS {
            self.unavailable = Some(format!("{MAX_REFUSALS} volumes could not be made in {zone}"));
        }
        self.renew(zone, self.volume.origin.clone());
    }

    /// Gives up a copy and uses its source again, which still has all bytes.
    pub(super) fn return_to_source(&mut self, now: Timestamp) {
        if let Some(source) = self.source.take() {
            let copy = std::mem::replace(&mut self.volume, source);
            self.discard(copy, now);
            // The next copy has to come from a new snapshot.
            if self.second_copy {
                self.volume.saved_by = None;
            }
            self.stage = Stage::Detached;
        }
    }

    /// Starts a copy in another zone. The source stays until the copy is mounted and verified.
    pub(super) fn copy_from(&mut self, snapshot: String, zone: String) {
        let source = self.volume.clone();
        self.renew(zone, Origin::Snapshot { snapshot });
        self.source = Some(source);
    }

    /// Replaces the present volume by a new one, which is yet to be created.
    pub(super) fn renew(&mut self, zone: String, origin: Origin) {
        let operation = self.next_operation();
        self.volume =
            Volume { operation, id: None, zone, origin, state: VolumeState::Asked, used: false, saved_by: None };
    }

    /// Adds a volume to the pending deletes. If its id is not known, it will be looked up, because EC2 may have created
    /// it although no answer came or a repeated call was refused.
    pub(super) fn discard(&mut self, volume: Volume, now: Timestamp) {
        match volume.id {
            Some(id) if volume.state != VolumeState::Absent => {
                self.pending_deletes.insert(id);
            }
            Some(_) => {}
            None => {
                self.unanswered.insert(volume.operation, now);
            }
        }
    }

    /// Falls back to the next source, because the volume is gone or broken.
    pub(super) fn lost(&mut self, around: Surroundings<'_>) -> Stage {
        let (id, zone) = (self.volume.id.clone().unwrap_or_default(), self.volume.zone.clone());
        if self.source.is_some() {
            self.note(format!("volume {id} is lost before it was verified: going back to its source"));
            self.return_to_source(around.now);
            return self.stage.clone();
        }
        self.discard(self.volume.clone(), around.now);
        let zone = self.wanted.as_ref().map_or(zone, |place| place.zone.clone());
        let origin = match self.newest_completed() {
            Some(snapshot) => {
                self.note(format!("volume {id} is lost: going on from its snapshot {snapshot}"));
                Origin::Snapshot { snapshot }
            }
            None => {
                if self.volume.used {
                    self.note(format!("volume {id} is lost and has no snapshot: the trial starts from the beginning"));
                }
                match around.plan.origin_of(around.snapshot) {
                    Some(origin @ Origin::Snapshot { .. }) => origin,
                    Some(Origin::Blank | Origin::Snapshots | Origin::Adopted { .. }) | None => Origin::Blank,
                }
            }
        };
        self.renew(zone, origin);
        Stage::Creating
    }
}
