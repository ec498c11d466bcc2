//! The facts that can become known of a workspace.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Place;
use spotsweep_protocol::claim::{Found, NoticeKind, Rollback, Seal};
use spotsweep_protocol::ids::SweepId;

/// A fact about one trial's workspace.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// An attempt runs in this place, or is about to. Batch's STARTING shows it before the image is pulled.
    Wanted(Place),
    /// ECS does not know the container instance, or does not know it any more. The attempt's claim will have its place.
    PlaceUnknown,
    /// The instance is under an interruption notice or has a rebalance recommendation.
    Noticed {
        /// EC2 instance.
        instance: String,
        /// Which of the two it is.
        kind: NoticeKind,
    },
    /// The attempt has mounted the volume and compared its checkpoints with the seal.
    Mounted {
        /// The attempt's number.
        attempt: u32,
        /// `vol-…`
        volume: String,
        /// The checkpoints on it.
        found: Found,
    },
    /// The attempt has sealed its checkpoints and continues.
    Sealed {
        /// The attempt's number.
        attempt: u32,
        /// The list of the sealed checkpoints.
        seal: Seal,
    },
    /// The attempt has stopped, sealed its checkpoints, and unmounted the volume.
    Released {
        /// The attempt's number.
        attempt: u32,
        /// The list of the sealed checkpoints, if it has sealed any.
        seal: Option<Seal>,
        /// The checkpoint that it has quarantined for a rollback.
        rollback: Option<Rollback>,
    },
    /// The attempt's training command has ended and the volume is unmounted. Nothing on it is needed any more, unless
    /// Batch starts another attempt nevertheless.
    Finished {
        /// The attempt's number.
        attempt: u32,
    },
    /// EC2 has reported a volume's state, in a description or in the answer to a call that changed it.
    Volume {
        /// The operation that made the volume, if the answer names it.
        operation: Option<u32>,
        /// `vol-…`
        id: String,
        /// The state.
        state: VolumeState,
    },
    /// No volume has the operation's tag.
    VolumeNotFound {
        /// The operation.
        operation: u32,
    },
    /// EC2 has accepted a volume's initialization rate, so it bills for it.
    RateTaken {
        /// The operation that made the volume.
        operation: u32,
        /// Bytes of the snapshot's data, or the size of its volume if EC2 does not report them.
        bytes: u64,
    },
    /// An EBS event says that a volume was created, or that its creation failed. Such events are often late or lost, so
    /// this counts only while the volume is being created.
    VolumeReported {
        /// `vol-…`
        id: String,
        /// EBS's text about the failure, which may be empty; absent if the volume was created.
        failure: Option<String>,
    },
    /// EC2 has refused a call.
    Refused(Refusal),
    /// EC2 has reported a snapshot's state.
    Snapshot {
        /// The operation that made it, if that is known.
        operation: Option<u32>,
        /// `snap-…`
        id: String,
        /// The state.
        state: SnapshotState,
    },
    /// No snapshot has the operation's tag.
    SnapshotNotFound {
        /// The operation.
        operation: u32,
    },
    /// An open sweep has trials that continue from this one.
    Continued {
        /// That sweep.
        by: SweepId,
        /// Until when the kept snapshot must not be deleted.
        until: Timestamp,
    },
    /// A sweep that continued from this trial has ended.
    Discontinued {
        /// That sweep.
        by: SweepId,
    },
    /// A volume or snapshot is deleted.
    Deleted(String),
    /// EC2 does not find a volume or snapshot. It is gone, or so new that not every server knows it yet
    /// (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/query-api-troubleshooting.html>, eventual consistency).
    Missing(String),
    /// The attempt asks again, or the record's due time has passed, so that everything is looked up.
    Due,
}

impl Fact {
    /// Returns the fact's name for logs and audit entries.
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

/// A volume's state, as far as it matters to a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeState {
    /// CreateVolume has not answered yet.
    Asked,
    /// The state was not looked up yet.
    Unknown,
    /// The volume is being created.
    Creating,
    /// The volume is attached to no instance.
    Available,
    /// The volume is attached to an instance, or is being attached or detached.
    InUse {
        /// `i-…`
        instance: String,
        /// Whether it is attached, and neither attaching nor detaching.
        steady: bool,
    },
    /// The creation failed, or the data is damaged.
    Error,
    /// The volume is deleted, or never existed.
    Absent,
}

/// The progress of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotState {
    /// CreateSnapshot has not answered yet.
    Asked,
    /// EBS copies the data.
    Pending,
    /// The snapshot can be used.
    Completed,
    /// The snapshot failed, or a person has deleted it.
    Failed,
}

impl SnapshotState {
    /// Whether the snapshot can still be completed.
    pub fn is_open(self) -> bool {
        match self {
            Self::Asked | Self::Pending => true,
            Self::Completed | Self::Failed => false,
        }
    }
}

/// A refusal of EC2 that an immediate retry does not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The call that was refused.
    pub kind: RefusalKind,
    /// EC2's error code, such as `VolumeLimitExceeded`.
    pub code: String,
    /// EC2's message.
    pub message: String,
    /// Whether the refusal is permanent: see [`RefusalKind::lasts`].
    pub lasts: bool,
}

/// The call that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusalKind {
    /// CreateVolume, for example because of a quota or because the zone has no capacity.
    Volume {
        /// The operation.
        operation: u32,
    },
    /// CreateSnapshot.
    Snapshot {
        /// The operation.
        operation: u32,
    },
    /// AttachVolume, because another volume has the device name.
    DeviceTaken {
        /// `vol-…`
        volume: String,
        /// `i-…`
        instance: String,
    },
    /// AttachVolume, because the instance cannot take the volume or is gone.
    Instance {
        /// `vol-…`
        volume: String,
        /// `i-…`
        instance: String,
    },
}
