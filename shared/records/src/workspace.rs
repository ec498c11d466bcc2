//! A trial's workspace: the EBS volume with its datasets and checkpoints, which outlives every instance and follows the
//! trial from zone to zone.
//!
//! ```text
//! (absent)        --wanted in z-------------------> Creating          CreateVolume (blank or from a base snapshot)
//! Creating        --available, wanted here--------> Attaching{to}     AttachVolume
//! Creating        --available, not wanted---------> Detached          none: nothing has been written
//! Creating        --failed, or wanted elsewhere---> Creating          CreateVolume (a new one), DeleteVolume (this one)
//! Creating        --given up without an id--------> any               a lease later: DescribeVolumes by its tag
//! Attaching{to}   --attached----------------------> Attached{to}      none: the runner mounts
//! Attaching{to}   --refused on this instance------> Detached          none: the attempt has to leave
//! Attaching{to}   --notice, not attached yet------> Detached          none: the attempt waits for the instance's end
//! Attached{to}    --notice------------------------> Attached{to}      CreateSnapshot (early: makes the final delta small)
//! Attached{to}    --mounted and verified----------> Attached{to}      DeleteVolume (source), DeleteSnapshot (superseded)
//! Attached{to}    --mounted, not what was sealed--> Detaching         once: copied again from the source
//! Attached{to}    --released----------------------> Detaching         CreateSnapshot (final), DetachVolume
//! Attached{to}    --attempt over, newer attempt---> Detaching         DetachVolume
//! Detaching       --available---------------------> Detached          CreateSnapshot (final), where none was taken
//! Detached        --wanted in its zone------------> Attaching{to}     AttachVolume: no copy at all
//! Detached        --wanted in another zone--------> AwaitingSnapshot  none
//! AwaitingSnapshot--completed---------------------> Creating          CreateVolume (from snapshot), source kept
//! AwaitingSnapshot--failed------------------------> AwaitingSnapshot  CreateSnapshot (again), three times in all
//! AwaitingSnapshot--failed for the third time-----> Detached          none: the attempt has to leave
//! AwaitingSnapshot--wanted in its own zone--------> Detached          none
//! AwaitingSnapshot--notice------------------------> Detached          none: the next attempt says where
//! any             --volume lost-------------------> Creating          CreateVolume (source, newest snapshot, base)
//! any             --trial terminal, to be kept----> Kept{until}       DetachVolume, CreateSnapshot (final), DeleteVolume
//! any             --trial terminal----------------> Disposing         DetachVolume, DeleteVolume, DeleteSnapshot
//! Kept            --its time has passed-----------> Disposing         DeleteSnapshot
//! Disposing       --all deleted-------------------> Gone              none
//! ```
//! The record is level-triggered: an event only adds a fact, and [`Workspace::advance`] then goes through the table as
//! far as the facts allow. So lost, late and repeated events change when something happens, but never what happens. A
//! stale fact can repeat a harmless command. The two commands that destroy, DeleteVolume and DeleteSnapshot, depend on
//! facts that stay true: mounted and verified, completed, terminal.

mod actions;
mod advance;
mod apply;
mod facts;
mod fall_back;
mod keep;
mod plan;
mod refusals;
mod snapshots;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::stored::is_default;
use spotsweep_protocol::claim::Seal;
use spotsweep_protocol::ids::{SweepId, trial_named};

pub use actions::{Call, EC2_TRIES, NewVolume, detach_pauses, device};
pub use advance::Surroundings;
pub use facts::{Fact, Refusal, RefusalKind, SnapshotState, VolumeState};
pub use keep::{Kept, LONGEST_KEPT_DAYS};
pub use plan::{Keep, Origin, WorkspacePlan};
pub use refusals::{is_denied, is_of_key};

/// The tag of everything that is made for a sweep. The roles in `infra/control-plane.yaml` allow changes only to
/// resources with this tag.
pub const SWEEP_TAG: &str = "spotsweep:sweep";

/// The tag of a volume or snapshot with its trial's index.
pub const TRIAL_TAG: &str = "spotsweep:trial";

/// The tag of a volume or snapshot with the operation that made it. It is looked up by this tag.
pub const OPERATION_TAG: &str = "spotsweep:operation";

/// A sweep and one of its trials. It is stored as `<sweep>/<index>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TrialRef {
    /// The sweep.
    pub sweep: SweepId,
    /// Index within the sweep, from 0.
    pub index: u32,
}

impl std::fmt::Display for TrialRef {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.sweep, self.index)
    }
}

impl From<TrialRef> for String {
    fn from(trial: TrialRef) -> Self {
        trial.to_string()
    }
}

impl TryFrom<String> for TrialRef {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (sweep, index) = trial_named(&text).ok_or_else(|| format!("{text:?} names no trial"))?;
        Ok(Self { sweep, index })
    }
}

/// One EBS volume of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// The number of the operation that made the volume, which is part of its client token. It is 0 for an adopted one.
    pub operation: u32,
    /// `vol-…`, once CreateVolume has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Availability zone, which never changes.
    pub zone: String,
    /// What the volume was made from.
    pub origin: Origin,
    /// The state that EC2 has reported last.
    pub state: VolumeState,
    /// Whether an attempt has ever mounted the volume. Since then it may hold bytes that exist nowhere else.
    #[serde(default, skip_serializing_if = "is_default")]
    pub used: bool,
    /// The operation of the snapshot that holds all bytes of the volume; removed at the next mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_by: Option<u32>,
}

/// One EBS snapshot of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// `snap-…`, once CreateSnapshot has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The volume that it was taken of.
    pub volume: String,
    /// Its progress.
    pub state: SnapshotState,
    /// When it was requested. CreateSnapshot has no token, so only after the lease is it certain that no call is under
    /// way.
    pub asked_at: Timestamp,
    /// The attempt whose interruption notice led to an early snapshot; absent for a final one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early: Option<u32>,
}

/// An attempt, with the instance and zone where it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The trial's attempt, from 1.
    pub attempt: u32,
    /// EC2 instance: `i-…`
    pub instance: String,
    /// Availability zone.
    pub zone: String,
}

/// A workspace's stage in the table at the head of this file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "kebab-case")]
pub enum Stage {
    /// The volume is being created.
    Creating,
    /// The volume is being attached.
    Attaching {
        /// The attempt that gets the volume.
        to: Place,
        /// The number of the device name that is tried.
        device: u32,
    },
    /// The volume is attached, and the attempt mounts and uses it.
    Attached {
        /// The attempt that has the volume.
        to: Place,
        /// The number of the device name.
        device: u32,
        /// Whether the attempt has reported that the volume is mounted and verified.
        mounted: bool,
    },
    /// The volume is being detached.
    Detaching {
        /// When that began. A detachment that is stuck for long is forced (fact 28).
        since: Timestamp,
    },
    /// The volume is attached to no instance.
    Detached,
    /// The volume is wanted in another zone, and its snapshot is not complete.
    AwaitingSnapshot,
    /// The trial has ended, and a snapshot of what it has trained is kept.
    Kept {
        /// When the trial ended.
        since: Timestamp,
        /// When the snapshot is deleted.
        until: Timestamp,
    },
    /// The trial has ended, and everything is being deleted.
    Disposing,
    /// Nothing of the workspace is left.
    Gone,
}

impl Stage {
    /// Returns the stage's name for logs and answers.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Attaching { .. } => "attaching",
            Self::Attached { .. } => "attached",
            Self::Detaching { .. } => "detaching",
            Self::Detached => "detached",
            Self::AwaitingSnapshot => "awaiting-snapshot",
            Self::Kept { .. } => "kept",
            Self::Disposing => "disposing",
            Self::Gone => "gone",
        }
    }
}

/// A trial's workspace, as the trial's record has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// The stage.
    pub stage: Stage,
    /// The volume that holds, or will hold, the newest bytes.
    pub volume: Volume,
    /// The volume from which a copy is made, until the copy is mounted and verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Volume>,
    /// The snapshots by the operation that made them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub snapshots: BTreeMap<u32, Snapshot>,
    /// How many volumes and snapshots were requested. This number names the next one's operation.
    pub operations: u32,
    /// The newest attempt, and where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Place>,
    /// Instances under an interruption notice, with the time of the notice. No volume is attached to them any more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub under_notice: BTreeMap<String, Timestamp>,
    /// Sweeps that continue from the kept snapshot. Each is looked up before the snapshot is deleted.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub continued_by: BTreeSet<SweepId>,
    /// The newest attempt that has released the volume. It does not get the volume again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub left_by: u32,
    /// Whether the volume is an adopted one, which is never deleted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub user_owned: bool,
    /// Whether the copy under way is the second one, because the first did not hold what was sealed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub second_copy: bool,
    /// Whether the training has ended, so that nothing has to be saved any more.
    #[serde(default, skip_serializing_if = "is_default")]
    pub finished: bool,
    /// Volumes and snapshots that have to be deleted.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub pending_deletes: BTreeSet<String>,
    /// Operations whose volume was given up before its id was known, with the time of that. Each is looked up one lease
    /// later, when every call for it has ended and describe calls show its result.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unanswered: BTreeMap<u32, Timestamp>,
    /// Resources that EC2 did not find, with the first time. A resource is gone only if EC2 does not find it for a
    /// whole lease.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, Timestamp>,
    /// The newest seal that an attempt has reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
    /// How often EC2 has refused since the last success, for a quota or for capacity.
    #[serde(default, skip_serializing_if = "is_default")]
    pub refusals: u32,
    /// Since when EC2 has refused the newest attempt's volume for a permanent reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_since: Option<Timestamp>,
    /// Why no attempt can have the volume. It is set only if that is certain and nothing is lost, and the trial then
    /// fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Why the newest attempt cannot have the volume, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// What EC2 has billed for initialization rates so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub initialized: Initialized,
    /// Notes for people, such as fall-backs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Snapshot data that volumes have loaded at a requested rate. EC2 bills it per GiB, in full once the volume exists
/// (fact 25).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Initialized {
    /// The newest operation that was counted, so that a repeated answer does not count twice.
    pub operation: u32,
    /// Bytes of all these volumes together.
    pub bytes: u64,
}

/// How many notes are kept of one trial. Later ones are only in its history.
const MAX_NOTES: usize = 20;

impl Workspace {
    /// Makes the workspace that the trial's first attempt wants.
    pub fn new(origin: Origin, wanted: Place, now: Timestamp) -> Self {
        let adopted = matches!(origin, Origin::Adopted { .. });
        let (id, zone) = match &origin {
            Origin::Adopted { volume, zone, .. } => (Some(volume.clone()), zone.clone()),
            Origin::Blank | Origin::Snapshot { .. } | Origin::Snapshots => (None, wanted.zone.clone()),
        };
        let volume = Volume {
            operation: u32::from(!adopted),
            id,
            zone,
            origin,
            state: if adopted { VolumeState::Unknown } else { VolumeState::Asked },
            used: adopted,
            saved_by: None,
        };
        Self {
            // An adopted volume may still be attached to the instance on which it was filled, so its state is looked up
            // first.
            stage: if adopted { Stage::Detaching { since: now } } else { Stage::Creating },
            operations: volume.operation,
            volume,
            source: None,
            snapshots: BTreeMap::new(),
            wanted: Some(wanted),
            under_notice: BTreeMap::new(),
            continued_by: BTreeSet::new(),
            left_by: 0,
            user_owned: adopted,
            second_copy: false,
            finished: false,
            pending_deletes: BTreeSet::new(),
            unanswered: BTreeMap::new(),
            missing: BTreeMap::new(),
            seal: None,
            refusals: 0,
            refused_since: None,
            refused: None,
            unavailable: None,
            initialized: Initialized::default(),
            notes: Vec::new(),
        }
    }

    /// Returns the ids of all resources that events can be about.
    pub fn resources(&self) -> impl Iterator<Item = &str> {
        let volumes = [Some(&self.volume), self.source.as_ref()].into_iter().flatten();
        let volumes = volumes.filter_map(|volume| volume.id.as_deref());
        let snapshots = self.snapshots.values().filter_map(|snapshot| snapshot.id.as_deref());
        let instance = self.wanted.iter().map(|place| place.instance.as_str());
        volumes.chain(snapshots).chain(instance)
    }

    /// Whether something is under way, so that the workspace is due soon.
    pub fn is_moving(&self) -> bool {
        let settled = match &self.stage {
            Stage::Attached { .. } | Stage::Kept { .. } | Stage::Gone => true,
            Stage::Detached => self.wanted.is_none(),
            Stage::Creating
            | Stage::Attaching { .. }
            | Stage::Detaching { .. }
            | Stage::AwaitingSnapshot
            | Stage::Disposing => false,
        };
        let is_clean = self.pending_deletes.is_empty() && self.unanswered.is_empty();
        !settled || !is_clean || self.snapshots.values().any(|snapshot| snapshot.state.is_open())
    }

    /// Whether nothing of the workspace is left except what is kept on purpose.
    pub fn is_clean(&self) -> bool {
        matches!(self.stage, Stage::Gone | Stage::Kept { .. })
    }

    /// Whether nothing of the workspace is left.
    pub fn is_gone(&self) -> bool {
        self.stage == Stage::Gone
    }

    fn note(&mut self, text: impl Into<String>) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(text.into());
        }
    }

    fn next_operation(&mut self) -> u32 {
        self.operations += 1;
        self.operations
    }
}
