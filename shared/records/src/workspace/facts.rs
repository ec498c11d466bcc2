//! What can become known of a workspace.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Place;
use spotsweep_protocol::claim::{Found, NoticeKind, Rollback, Seal};
use spotsweep_protocol::ids::SweepId;

/// A fact about one trial's workspace.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// An attempt runs, or is about to run, there. Known from Batch's STARTING, before the image is pulled.
    Wanted(Place),
    /// ECS does not know the container instance (any more): the attempt's own claim will tell.
    PlaceUnknown,
    /// The instance will be taken, or is likely to be.
    Noticed {
        /// EC2 instance.
        instance: String,
        /// Which warning.
        kind: NoticeKind,
    },
    /// The attempt has mounted the volume and held its checkpoints against the seal.
    Mounted {
        /// The attempt.
        attempt: u32,
        /// `vol-…`
        volume: String,
        /// What lies on it.
        found: Found,
    },
    /// The attempt has sealed its checkpoints and goes on.
    Sealed {
        /// The attempt.
        attempt: u32,
        /// The seal.
        seal: Seal,
    },
    /// The attempt has stopped, sealed, and unmounted.
    Released {
        /// The attempt.
        attempt: u32,
        /// The seal.
        seal: Option<Seal>,
        /// The checkpoint that it has put aside.
        rollback: Option<Rollback>,
    },
    /// The attempt's training command has ended and the volume is unmounted: nothing on it is needed any more, unless
    /// Batch starts another attempt all the same.
    Finished {
        /// The attempt.
        attempt: u32,
    },
    /// EC2 says this of a volume, because it was asked or because something was done to it.
    Volume {
        /// The operation that made it, where the answer is CreateVolume's.
        operation: Option<u32>,
        /// `vol-…`
        id: String,
        /// Its state.
        state: VolumeState,
    },
    /// No volume carries the operation's tag.
    VolumeNotFound {
        /// The operation.
        operation: u32,
    },
    /// EC2 took a volume's initialization rate, so it bills it.
    RateTaken {
        /// The operation that made the volume.
        operation: u32,
        /// Data of the snapshot, or the size of its volume where EC2 does not say.
        bytes: u64,
    },
    /// EBS tells on its own that a volume has been made, or could not be. Late and lost events are usual: this
    /// counts only while the volume is awaited.
    VolumeReported {
        /// `vol-…`
        id: String,
        /// EBS's words where it could not be made, which may be empty; absent where it can be used.
        failure: Option<String>,
    },
    /// EC2 does not give what was asked for.
    Refused(Refusal),
    /// EC2 says this of a snapshot.
    Snapshot {
        /// The operation that made it, where it is known.
        operation: Option<u32>,
        /// `snap-…`
        id: String,
        /// Its state.
        state: SnapshotState,
    },
    /// No snapshot carries the operation's tag.
    SnapshotNotFound {
        /// The operation.
        operation: u32,
    },
    /// A sweep whose trials go on from this one is open.
    Continued {
        /// The sweep.
        by: SweepId,
        /// Until when what is kept is not deleted.
        until: Timestamp,
    },
    /// A sweep that went on from this trial has ended.
    Discontinued {
        /// The sweep.
        by: SweepId,
    },
    /// A volume or snapshot is deleted.
    Deleted(String),
    /// EC2 does not find a volume or snapshot: it is gone, or so new that not every server knows it yet
    /// (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/query-api-troubleshooting.html>, eventual consistency).
    Missing(String),
    /// Look after it: the attempt asks again, or its due time has passed.
    Due,
}

impl Fact {
    /// The fact's name in logs and audit entries.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Wanted(_) => "workspace-wanted",
            Self::PlaceUnknown => "place-unknown",
            Self::Noticed { kind: NoticeKind::Interruption, .. } => "interruption-noticed",
            Self::Noticed { kind: NoticeKind::Rebalance, .. } => "rebalance-noticed",
            Self::Mounted { .. } => "workspace-mounted",
            Self::Sealed { .. } => "workspace-sealed",
            Self::Released { .. } => "workspace-released",
            Self::Finished { .. } => "workspace-finished",
            Self::Volume { .. } => "volume-seen",
            Self::VolumeNotFound { .. } => "volume-not-found",
            Self::RateTaken { .. } => "initialization-rate-taken",
            Self::VolumeReported { .. } => "volume-reported",
            Self::Refused(_) => "workspace-refused",
            Self::Snapshot { .. } => "snapshot-seen",
            Self::SnapshotNotFound { .. } => "snapshot-not-found",
            Self::Continued { .. } => "workspace-continued",
            Self::Discontinued { .. } => "workspace-discontinued",
            Self::Deleted(_) => "resource-deleted",
            Self::Missing(_) => "resource-missing",
            Self::Due => "workspace-due",
        }
    }
}

/// A volume's state, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeState {
    /// CreateVolume has not answered yet.
    Asked,
    /// Not looked at yet.
    Unknown,
    /// Being made.
    Creating,
    /// It is attached to no instance.
    Available,
    /// Attached to an instance, or on the way to or from it.
    InUse {
        /// `i-…`
        instance: String,
        /// Attached for good: neither attaching nor detaching.
        steady: bool,
    },
    /// Its creation failed, or its data is damaged.
    Error,
    /// Deleted, or never there.
    Absent,
}

/// A snapshot's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotState {
    /// CreateSnapshot has not answered yet.
    Asked,
    /// Being copied.
    Pending,
    /// Usable.
    Completed,
    /// Failed, or deleted by a person.
    Failed,
}

impl SnapshotState {
    /// Whether it may still become usable.
    pub fn is_open(self) -> bool {
        match self {
            Self::Asked | Self::Pending => true,
            Self::Completed | Self::Failed => false,
        }
    }
}

/// EC2 refused for a reason that another try in the same moment does not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What was refused.
    pub kind: RefusalKind,
    /// EC2's error code, such as `VolumeLimitExceeded`.
    pub code: String,
    /// EC2's words.
    pub message: String,
    /// Whether no wait changes the answer: see [`RefusalKind::lasts`].
    pub lasts: bool,
}

/// What was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusalKind {
    /// CreateVolume: quota, or the zone has no capacity.
    Volume {
        /// The operation.
        operation: u32,
    },
    /// CreateSnapshot.
    Snapshot {
        /// The operation.
        operation: u32,
    },
    /// AttachVolume: another volume has the device name.
    DeviceTaken {
        /// `vol-…`
        volume: String,
    },
    /// AttachVolume: the instance can't take it, or is gone.
    Instance {
        /// `vol-…`
        volume: String,
    },
}
