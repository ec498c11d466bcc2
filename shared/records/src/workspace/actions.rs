//! The calls to EC2 about volumes and snapshots. Each may be repeated, except for [`Call::TakeSnapshot`]. That call has
//! no client token (fact 6), so only the invocation that has just committed its request makes it.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::{Fact, Origin, Stage, VolumeState, Workspace};
use crate::workspace::{SnapshotState, WorkspacePlan};

/// How long a detachment may be stuck in `busy` before it is forced. The journal then repairs the file system at the
/// next mount (fact 28).
const FORCE_DETACH_AFTER_SECONDS: i64 = 300;

/// Tries of one call. The buckets of AttachVolume and DetachVolume refill with 5 tokens per second (fact 23), and the
/// reclaim of a zone empties them. The SDK's default of three tries ends after three seconds, which is too soon.
pub const EC2_TRIES: u32 = 5;

/// Returns the pauses between descriptions of a volume that is being detached: 15.5 s in all, of a function's 60 s. The
/// first ones are shorter, for volumes that are not mounted any more.
pub fn detach_pauses() -> impl Iterator<Item = Duration> {
    (1..20).map(|look| (Duration::from_millis(125) * look).min(Duration::from_secs(1)))
}

/// One call to EC2 for a trial's workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// CreateVolume, with a client token.
    CreateVolume(NewVolume),
    /// DescribeVolumes by the operation's tag.
    FindVolume {
        /// The operation.
        operation: u32,
    },
    /// DescribeVolumes.
    DescribeVolume(String),
    /// AttachVolume.
    AttachVolume {
        /// `vol-…`
        volume: String,
        /// `i-…`
        instance: String,
        /// Device name.
        device: String,
    },
    /// DetachVolume.
    DetachVolume {
        /// `vol-…`
        volume: String,
        /// Whether the detachment is forced although the volume is in use.
        force: bool,
    },
    /// DescribeVolumes until the volume is available, for some seconds, because EBS sends no event when it is (fact
    /// 11).
    AwaitDetached(String),
    /// DeleteVolume.
    DeleteVolume(String),
    /// CreateSnapshot, which must not be repeated (fact 6).
    TakeSnapshot {
        /// The operation for the tag, by which the snapshot is looked up.
        operation: u32,
        /// `vol-…`
        volume: String,
        /// Whether an early snapshot was begun since the volume was last mounted.
        saved_early: bool,
    },
    /// DescribeSnapshots by the operation's tag.
    FindSnapshot {
        /// The operation.
        operation: u32,
    },
    /// DescribeSnapshots by id.
    DescribeSnapshot(String),
    /// DeleteSnapshot.
    DeleteSnapshot(String),
}

impl Call {
    /// The call's name in logs and audit entries.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CreateVolume(_) => "create-volume",
            Self::FindVolume { .. } => "find-volume",
            Self::DescribeVolume(_) => "describe-volume",
            Self::AttachVolume { .. } => "attach-volume",
            Self::DetachVolume { .. } => "detach-volume",
            Self::AwaitDetached(_) => "await-detached",
            Self::DeleteVolume(_) => "delete-volume",
            Self::TakeSnapshot { .. } => "take-snapshot",
            Self::FindSnapshot { .. } => "find-snapshot",
            Self::DescribeSnapshot(_) => "describe-snapshot",
            Self::DeleteSnapshot(_) => "delete-snapshot",
        }
    }
}

/// The parameters of CreateVolume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVolume {
    /// The operation, which is part of the client token.
    pub operation: u32,
    /// Availability zone.
    pub zone: String,
    /// GiB of a blank volume. A volume from a snapshot is at least as large as the snapshot's volume.
    pub size_gib: u32,
    /// `snap-…`; absent for a blank volume.
    pub snapshot: Option<String>,
    /// The Name tag of an adopted volume, which its copies get too.
    pub name: Option<String>,
    /// MiB/s at which the volume loads its snapshot; absent for EC2's default rate, which is free.
    pub initialization_rate: Option<u32>,
}

/// Returns a device name for a volume: the recommended `/dev/sd[f-p]`, then `/dev/xvdb[a-z]`
/// (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/device_naming.html>).
pub fn device(number: u32) -> String {
    let letter = |first: u8, offset: u32| char::from(first + u8::try_from(offset).unwrap_or(0));
    match number % DEVICES {
        single @ 0..RECOMMENDED_DEVICES => format!("/dev/sd{}", letter(b'f', single)),
        double => format!("/dev/xvdb{}", letter(b'a', double - RECOMMENDED_DEVICES)),
    }
}

/// How many names AWS recommends for data volumes.
pub(super) const RECOMMENDED_DEVICES: u32 = 11;

/// Number of device names.
pub(super) const DEVICES: u32 = RECOMMENDED_DEVICES + 26;

impl Workspace {
    /// Returns the calls that this record implies, because the state is the outbox.
    ///
    /// These are the calls that are new since `before`. After some facts they are all calls, in their repeatable form:
    /// a snapshot whose request is new is taken, and one that was requested before `lease_ended` is looked up.
    pub fn required_actions(
        &self,
        before: Option<&Self>,
        fact: &Fact,
        plan: &WorkspacePlan,
        now: Timestamp,
        lease_ended: Timestamp,
    ) -> Vec<Call> {
        // A failed deletion must not fail the claim of a waiting attempt, so deletions are repeated only when the
        // record is due.
        let is_due = matches!(fact, Fact::Due);
        let again = is_due || matches!(fact, Fact::Wanted(_));
        let mut calls = self.snapshot_actions(before, again, lease_ended);
        let has_moved =
            before.is_none_or(|before| before.stage != self.stage || before.volume.operation != self.volume.operation);
        if has_moved || again {
            calls.extend(self.stage_actions(has_moved, plan, now));
        }
        if is_due {
            let unanswered = self.unanswered.iter().filter(|(_, since)| **since <= lease_ended);
            calls.extend(unanswered.map(|(operation, _)| Call::FindVolume { operation: *operation }));
        }
        let none = BTreeSet::new();
        let known = if is_due { &none } else { before.map_or(&none, |before| &before.pending_deletes) };
        for id in self.pending_deletes.difference(known) {
            calls.push(match id.starts_with("snap-") {
                true => Call::DeleteSnapshot(id.clone()),
                false => Call::DeleteVolume(id.clone()),
            });
        }
        calls
    }

    fn snapshot_actions(&self, before: Option<&Self>, again: bool, lease_ended: Timestamp) -> Vec<Call> {
        let mut calls = Vec::new();
        for (operation, snapshot) in &self.snapshots {
            let old = before.and_then(|before| before.snapshots.get(operation));
            let is_new = old.is_none_or(|old| old.asked_at != snapshot.asked_at);
            match (snapshot.state, &snapshot.id) {
                (SnapshotState::Asked, _) if is_new => {
                    calls.push(Call::TakeSnapshot {
                        operation: *operation,
                        volume: snapshot.volume.clone(),
                        saved_early: self.is_saved_early(*operation),
                    });
                }
                (SnapshotState::Asked, _) if again && snapshot.asked_at <= lease_ended => {
                    calls.push(Call::FindSnapshot { operation: *operation });
                }
                (SnapshotState::Pending, Some(id)) if again => calls.push(Call::DescribeSnapshot(id.clone())),
                (SnapshotState::Asked | SnapshotState::Pending, _) => {}
                (SnapshotState::Completed | SnapshotState::Failed, _) => {}
            }
        }
        calls
    }

    /// Whether the snapshot follows an early one that was requested just before it.
    fn is_saved_early(&self, operation: u32) -> bool {
        let before = self.snapshots.range(..operation).next_back();
        before.is_some_and(|(_, before)| before.early.is_some() && before.id.is_some())
    }

    fn stage_actions(&self, is_new: bool, plan: &WorkspacePlan, now: Timestamp) -> Vec<Call> {
        let Some(volume) = &self.volume.id else {
            return match &self.stage {
                // Several volumes have failed in a row, so the next one is requested only when the attempt asks again.
                Stage::Creating if is_new && self.refusals > 1 => vec![],
                Stage::Creating => vec![Call::CreateVolume(self.new_volume(plan))],
                Stage::Disposing
                | Stage::Attaching { .. }
                | Stage::Attached { .. }
                | Stage::Detaching { .. }
                | Stage::Detached
                | Stage::AwaitingSnapshot
                | Stage::Kept { .. }
                | Stage::Gone => vec![],
            };
        };
        match &self.stage {
            Stage::Creating => vec![Call::DescribeVolume(volume.clone())],
            Stage::Attaching { to, device: number } if is_new || self.volume.state == VolumeState::Available => {
                let (volume, instance) = (volume.clone(), to.instance.clone());
                vec![Call::AttachVolume { volume, instance, device: device(*number) }]
            }
            Stage::Attaching { .. } => vec![Call::DescribeVolume(volume.clone())],
            Stage::Attached { mounted, .. } if is_new || *mounted => vec![],
            Stage::Attached { .. } => vec![Call::DescribeVolume(volume.clone())],
            Stage::Detaching { since } => {
                let force = now.as_second() - since.as_second() > FORCE_DETACH_AFTER_SECONDS;
                match (&self.volume.state, is_new) {
                    (VolumeState::InUse { steady: true, .. }, _) => {
                        vec![Call::DetachVolume { volume: volume.clone(), force }]
                    }
                    (VolumeState::InUse { .. }, false) if force => {
                        vec![Call::DetachVolume { volume: volume.clone(), force }]
                    }
                    (_, true) => vec![Call::DescribeVolume(volume.clone())],
                    (_, false) => vec![Call::AwaitDetached(volume.clone())],
                }
            }
            Stage::Kept { .. } => match &self.volume.state {
                VolumeState::InUse { steady: true, .. } if !is_new => {
                    vec![Call::DetachVolume { volume: volume.clone(), force: false }]
                }
                VolumeState::Asked
                | VolumeState::Unknown
                | VolumeState::Creating
                | VolumeState::Available
                | VolumeState::InUse { .. }
                | VolumeState::Error
                | VolumeState::Absent => vec![],
            },
            Stage::Detached | Stage::AwaitingSnapshot | Stage::Disposing | Stage::Gone => vec![],
        }
    }

    fn new_volume(&self, plan: &WorkspacePlan) -> NewVolume {
        let snapshot = match &self.volume.origin {
            Origin::Snapshot { snapshot } => Some(snapshot.clone()),
            Origin::Blank | Origin::Snapshots | Origin::Adopted { .. } => None,
        };
        let name = match &plan.origin {
            Origin::Adopted { name, .. } => Some(name.clone()),
            Origin::Blank | Origin::Snapshot { .. } | Origin::Snapshots => None,
        };
        NewVolume {
            operation: self.volume.operation,
            zone: self.volume.zone.clone(),
            size_gib: plan.size_gib,
            initialization_rate: plan.initialization_rate.filter(|_| snapshot.is_some()),
            snapshot,
            name,
        }
    }
}
