//! A trial's workspace: the EBS volume with its datasets and checkpoints, which outlives every instance and
//! follows the trial from zone to zone.
//!
//! ```text
//! (absent)        --wanted in z-------------------> Creating          CreateVolume (blank or from a base snapshot)
//! Creating        --available, wanted here--------> Attaching{to}     AttachVolume
//! Creating        --available, not wanted---------> Detached          none: nothing has been written
//! Creating        --failed, or wanted elsewhere---> Creating          CreateVolume (a new one), DeleteVolume (this one)
//! Creating        --given up without an id--------> any               a lease later: DescribeVolumes by its tag
//! Attaching{to}   --attached----------------------> Attached{to}      none: the runner mounts
//! Attaching{to}   --refused on this instance------> Detached          none: the attempt is told to leave
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
//! AwaitingSnapshot--failed for the third time-----> Detached          none: the attempt is told to leave
//! AwaitingSnapshot--wanted in its own zone--------> Detached          none
//! AwaitingSnapshot--notice------------------------> Detached          none: the next attempt says where
//! any             --volume lost-------------------> Creating          CreateVolume (source, newest snapshot, base)
//! any             --trial terminal, to be kept----> Kept{until}       DetachVolume, CreateSnapshot (final), DeleteVolume
//! any             --trial terminal----------------> Disposing         DetachVolume, DeleteVolume, DeleteSnapshot
//! Kept            --its time has passed-----------> Disposing         DeleteSnapshot
//! Disposing       --all deleted-------------------> Gone              none
//! ```
//! The record is level-triggered: an event only enters a fact, and [`Workspace::advance`] then goes through the table as far as
//! the facts reach. So lost, late and repeated events change when something happens, never what. A stale fact can
//! repeat a harmless command; the two that destroy, DeleteVolume and DeleteSnapshot, hang on facts that never become
//! untrue: mounted and verified, completed, terminal.

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

/// The tag of everything that is made for a sweep. The roles in `infra/control-plane.yaml` reach only what carries it.
pub const SWEEP_TAG: &str = "spotsweep:sweep";

/// The tag of a volume or snapshot with its trial's index.
pub const TRIAL_TAG: &str = "spotsweep:trial";

/// The tag of a volume or snapshot with the operation that made it, by which it is found again.
pub const OPERATION_TAG: &str = "spotsweep:operation";

/// A trial of a sweep. It is stored as `<sweep>/<index>`.
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

/// One volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// The operation that made it: part of its client token. 0 for an adopted one.
    pub operation: u32,
    /// `vol-…`, once CreateVolume has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Availability zone, for life.
    pub zone: String,
    /// What it was made from.
    pub origin: Origin,
    /// What EC2 last said of it.
    pub state: VolumeState,
    /// Whether an attempt has ever mounted it: from then on its bytes exist nowhere else.
    #[serde(default, skip_serializing_if = "is_default")]
    pub used: bool,
    /// The operation of the snapshot that holds all its bytes; forgotten with the next mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_by: Option<u32>,
}

/// One snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// `snap-…`, once CreateSnapshot has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The volume it is of.
    pub volume: String,
    /// How far it is.
    pub state: SnapshotState,
    /// When it was asked for; CreateSnapshot has no token, so only the lease tells whether that was carried out.
    pub asked_at: Timestamp,
    /// The attempt whose notice asked for it early; absent for a final one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early: Option<u32>,
}

/// An attempt and where it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The trial's attempt, from 1.
    pub attempt: u32,
    /// EC2 instance: `i-…`
    pub instance: String,
    /// Availability zone.
    pub zone: String,
}

/// Where a workspace stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "kebab-case")]
pub enum Stage {
    /// The volume is being made.
    Creating,
    /// It is being attached.
    Attaching {
        /// The attempt that gets it.
        to: Place,
        /// Which of the device names is tried.
        device: u32,
    },
    /// It is attached; the attempt mounts and uses it.
    Attached {
        /// The attempt that has it.
        to: Place,
        /// The device name.
        device: u32,
        /// Whether the attempt has said that it is mounted and verified.
        mounted: bool,
    },
    /// It is being detached.
    Detaching {
        /// Since when; a detachment that is stuck for long is forced (fact 28).
        since: Timestamp,
    },
    /// It is attached to no instance.
    Detached,
    /// It is wanted in another zone, and its snapshot is not complete.
    AwaitingSnapshot,
    /// The trial is over, and what it has trained is kept in a snapshot.
    Kept {
        /// Since when.
        since: Timestamp,
        /// When the snapshot is deleted.
        until: Timestamp,
    },
    /// The trial is over: everything is being deleted.
    Disposing,
    /// Nothing is left of it.
    Gone,
}

impl Stage {
    /// The stage's name in logs and answers.
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

/// A trial's workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Where it stands.
    pub stage: Stage,
    /// The volume that holds, or will hold, the newest bytes.
    pub volume: Volume,
    /// Where a copy comes from, until the copy is mounted and verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Volume>,
    /// By operation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub snapshots: BTreeMap<u32, Snapshot>,
    /// How many volumes and snapshots have been asked for: names each of them.
    pub operations: u32,
    /// The newest attempt, and where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Place>,
    /// Instances under an interruption notice, and since when: nothing is attached to them any more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub under_notice: BTreeMap<String, Timestamp>,
    /// Sweeps that go on from what is kept of it: each is looked up before that is deleted.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub continued_by: BTreeSet<SweepId>,
    /// The newest attempt that has given it back: it is not to have it again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub left_by: u32,
    /// Whether the volume is its user's, made by hand: it stays when all else goes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub user_owned: bool,
    /// Whether the copy under way is the second one: the first did not hold what was sealed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub second_copy: bool,
    /// Whether training has ended, so that nothing needs to be saved any more.
    #[serde(default, skip_serializing_if = "is_default")]
    pub finished: bool,
    /// Volumes and snapshots to delete.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub pending_deletes: BTreeSet<String>,
    /// Operations whose volume was given up before its id was known, and since when: each is looked for a lease later,
    /// when every call for it has ended and describe calls do not lag behind any more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unanswered: BTreeMap<u32, Timestamp>,
    /// What EC2 did not find, and since when. Only what it does not find for a whole lease is gone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, Timestamp>,
    /// The newest seal that an attempt has told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
    /// Refusals since the last success: quota, capacity.
    #[serde(default, skip_serializing_if = "is_default")]
    pub refusals: u32,
    /// Since when EC2 refuses the newest attempt's volume for a reason that no wait changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_since: Option<Timestamp>,
    /// Why no attempt can have it, where that is certain and nothing is lost by it: the trial fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Why the newest attempt can't have it, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// What EC2 bills for initialization rates so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub initialized: Initialized,
    /// Fallbacks that were taken, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Snapshot data that volumes have loaded at a rate that was asked for: billed per GiB, in full once the volume is there
/// (fact 25).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Initialized {
    /// The newest operation that is counted: an answer that comes twice counts once.
    pub operation: u32,
    /// Bytes of all of them together.
    pub bytes: u64,
}

/// Notes kept of one trial; later ones are in its history.
const MAX_NOTES: usize = 20;

impl Workspace {
    /// A workspace that its first attempt has just asked for.
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
            // An adopted volume may still be attached to wherever it was filled: that is looked at first.
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

    /// Ids of everything that events may be about.
    pub fn resources(&self) -> impl Iterator<Item = &str> {
        let volumes = [Some(&self.volume), self.source.as_ref()].into_iter().flatten();
        let volumes = volumes.filter_map(|volume| volume.id.as_deref());
        let snapshots = self.snapshots.values().filter_map(|snapshot| snapshot.id.as_deref());
        let instance = self.wanted.iter().map(|place| place.instance.as_str());
        volumes.chain(snapshots).chain(instance)
    }

    /// Whether something is under way, so that it is looked after soon.
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

    /// Whether nothing of it is left but what is kept on purpose.
    pub fn is_clean(&self) -> bool {
        matches!(self.stage, Stage::Gone | Stage::Kept { .. })
    }

    /// Whether nothing of it is left.
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
