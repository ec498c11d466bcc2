//! Amazon EBS: volumes, their attachments, snapshots.
//!
//! ```text
//! volume      creating → available ⇄ in-use, available → deleting → gone; creating → error → gone
//! attachment  attaching → attached → detaching → none; attached → busy (mounted) → detaching
//! snapshot    pending → completed | error
//! ```
//! (EBS user guide, "Volume states"; EC2 API reference, VolumeAttachment and Snapshot.)

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

mod attachment;
mod bytes;
mod create;
mod delete;
mod describe;
mod file_system;
mod leftovers;
mod links;
mod order;
mod prepared;
mod snapshot;
mod tags;
mod token;

use super::{ApiError, World};
pub use attachment::{AttachVolume, DetachVolume};
pub use bytes::NotAttached;
pub use file_system::{File, FileSystem, Opened, View};
pub use leftovers::{LeftAttachment, LeftSnapshot, LeftVolume, Leftovers};
use links::Links;
pub use order::VolumeOrder;
pub use snapshot::CreateSnapshot;
pub use tags::Tags;
use token::Token;

const GP3: &str = "gp3";
const GP3_IOPS: u32 = 3000;
const GP3_THROUGHPUT_MIB: u32 = 125;

/// All that EBS remembers.
#[derive(Debug, Default)]
pub(super) struct Ebs {
    pub(super) volumes: BTreeMap<String, Volume>,
    pub(super) snapshots: BTreeMap<String, Snapshot>,
    tokens: BTreeMap<String, Token>,
    attachments_made: u64,
    links: Links,
    /// Whether the bytes are kept outside: see [`World::with_bytes_outside`].
    outside: bool,
    orders: Vec<VolumeOrder>,
}

/// Parameters of CreateVolume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateVolume {
    /// Where.
    pub zone: String,
    /// GiB; the snapshot's if absent.
    pub size_gib: Option<u32>,
    /// Its bytes; none for an empty volume.
    pub snapshot: Option<String>,
    /// `gp2` (the default, fact 26) or `gp3`.
    pub volume_type: Option<String>,
    /// A volume of an encrypted snapshot is encrypted anyway.
    pub encrypted: bool,
    /// Makes the request repeatable: at most 64 ASCII characters.
    pub client_token: Option<String>,
    /// MiB/s, 100 to 300, with a snapshot only.
    pub initialization_rate: Option<u32>,
    /// Tags of the volume.
    pub tags: Tags,
}

/// Where a volume is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeState {
    /// Requested.
    Creating,
    /// Attached to nothing.
    Available,
    /// Attached, or on the way to or from an instance.
    InUse,
    /// On the way out.
    Deleting,
    /// Could not be made.
    Error,
}

impl VolumeState {
    /// EC2's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            VolumeState::Creating => "creating",
            VolumeState::Available => "available",
            VolumeState::InUse => "in-use",
            VolumeState::Deleting => "deleting",
            VolumeState::Error => "error",
        }
    }
}

/// An EBS volume.
#[derive(Debug, Clone)]
pub struct Volume {
    /// `vol-` and 17 hex digits.
    pub id: String,
    /// Its availability zone, for life.
    pub zone: String,
    /// Size in GiB.
    pub size_gib: u32,
    /// Such as `gp3`.
    pub volume_type: String,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// The snapshot that it was made from.
    pub snapshot: Option<String>,
    /// VolumeInitializationRate in MiB/s, if one was asked for.
    pub initialization_rate: Option<u32>,
    /// When it was requested.
    pub created_at: Timestamp,
    /// When the last block of its snapshot will be there: until then, first reads are slow (fact 25).
    pub initialized_at: Option<Timestamp>,
    /// State.
    pub state: VolumeState,
    /// Where it is attached.
    pub attachment: Option<Attachment>,
    /// Whether the instance has mounted it: then a detach hangs in `busy` (fact 28).
    pub mounted: bool,
    /// Tags.
    pub tags: Tags,
    visible_at: Timestamp,
    /// The snapshots whose blocks it shares, oldest first (fact 4).
    lineage: Vec<String>,
    files: Arc<FileSystem>,
    fails: bool,
}

impl Volume {
    /// I/O operations a second: of gp3 the baseline that the price includes, of gp2 3 for each GiB between 100 and
    /// 16 000 (EBS user guide, "General Purpose SSD volumes").
    pub fn iops(&self) -> u32 {
        match self.volume_type.as_str() {
            GP3 => GP3_IOPS,
            _gp2 => self.size_gib.saturating_mul(3).clamp(100, 16_000),
        }
    }

    /// Throughput in MiB/s; EC2 shows none for gp2.
    pub fn throughput_mib(&self) -> Option<u32> {
        (self.volume_type == GP3).then_some(GP3_THROUGHPUT_MIB)
    }
}

/// Where an attachment is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentState {
    /// Requested.
    Attaching,
    /// The device is there.
    Attached,
    /// On the way off.
    Detaching,
    /// To be detached as soon as the instance unmounts it.
    Busy,
}

impl AttachmentState {
    /// EC2's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            AttachmentState::Attaching => "attaching",
            AttachmentState::Attached => "attached",
            AttachmentState::Detaching => "detaching",
            AttachmentState::Busy => "busy",
        }
    }
}

/// A volume's place at an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The instance.
    pub instance: String,
    /// The name given to AttachVolume, such as `/dev/sdf`.
    pub device: String,
    /// State.
    pub state: AttachmentState,
    /// When it was requested.
    pub attached_at: Timestamp,
    /// Whether it is to come off even where it is mounted.
    pub force: bool,
    /// Tells it from earlier attachments of the same volume.
    number: u64,
    /// N of its disk `/dev/nvme<N>n1`, while the disk is there.
    disk: Option<u32>,
}

/// Where a snapshot is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotState {
    /// Its blocks are being copied.
    Pending,
    /// Usable.
    Completed,
    /// Failed for good.
    Error,
}

impl SnapshotState {
    /// EC2's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            SnapshotState::Pending => "pending",
            SnapshotState::Completed => "completed",
            SnapshotState::Error => "error",
        }
    }
}

/// An EBS snapshot: the volume's bytes as of the request (fact 24).
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// `snap-` and 17 hex digits.
    pub id: String,
    /// The volume it was taken of.
    pub volume: String,
    /// The volume's size in GiB.
    pub volume_size_gib: u32,
    /// Whether it is encrypted: as its volume.
    pub encrypted: bool,
    /// As given.
    pub description: String,
    /// State.
    pub state: SnapshotState,
    /// The point in time that it shows.
    pub started_at: Timestamp,
    /// When it completed or will complete; absent while the amount to copy is unknown, and on error.
    pub completes_at: Option<Timestamp>,
    /// What had to be copied: the difference to the latest snapshot in the volume's lineage.
    pub changed_bytes: Option<u64>,
    /// Tags.
    pub tags: Tags,
    visible_at: Timestamp,
    lineage: Vec<String>,
    files: Arc<FileSystem>,
    fails: bool,
    /// Deleted while pending: out of sight, but in progress (EBS user guide, "Delete an Amazon EBS
    /// snapshot").
    deleted: bool,
}

impl Snapshot {
    /// Bytes of everything on it, not only of what it added to the one before.
    pub fn full_bytes(&self) -> u64 {
        self.files.bytes()
    }
}

impl World {
    /// The volume with this id, unless it is gone. Looks behind the API: no delay, no throttling.
    pub fn volume(&self, id: &str) -> Option<&Volume> {
        self.ebs.volumes.get(id)
    }

    /// All volumes, in the order of their ids.
    pub fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.ebs.volumes.values()
    }

    /// The snapshot with this id, unless it is deleted.
    pub fn snapshot_of(&self, id: &str) -> Option<&Snapshot> {
        self.ebs.snapshots.get(id).filter(|snapshot| !snapshot.deleted)
    }

    /// All snapshots that are not deleted, in the order of their ids.
    pub fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        self.ebs.snapshots.values().filter(|snapshot| !snapshot.deleted)
    }

    /// The volumes at an instance.
    pub fn volumes_at<'a>(&'a self, instance: &'a str) -> impl Iterator<Item = (&'a Volume, &'a Attachment)> {
        let attached = self.volumes().filter_map(|volume| Some((volume, volume.attachment.as_ref()?)));
        attached.filter(move |(_, attachment)| attachment.instance == instance)
    }

    fn visible_at(&self) -> Timestamp {
        self.now.saturating_add(self.trouble.visible_after()).unwrap_or(Timestamp::MAX)
    }

    /// The volume as the API finds it.
    fn find_volume(&mut self, id: &str) -> Result<&mut Volume, ApiError> {
        check_id("volumeId", "vol-", id)?;
        let now = self.now;
        let found = self.ebs.volumes.get_mut(id).filter(|volume| volume.visible_at <= now);
        found.ok_or_else(|| ApiError::ec2("InvalidVolume.NotFound", format!("The volume '{id}' does not exist.")))
    }

    /// The snapshot as the API finds it.
    fn find_snapshot(&mut self, id: &str) -> Result<&mut Snapshot, ApiError> {
        check_id("snapshotId", "snap-", id)?;
        let now = self.now;
        let found = self.ebs.snapshots.get_mut(id).filter(|snapshot| snapshot.visible_at <= now && !snapshot.deleted);
        found.ok_or_else(|| ApiError::ec2("InvalidSnapshot.NotFound", format!("The snapshot '{id}' does not exist.")))
    }
}

/// `vol-` or `snap-` and 8 (old) or 17 hex digits.
fn check_id(parameter: &str, prefix: &str, id: &str) -> Result<(), ApiError> {
    if id.is_empty() {
        let message = format!("The request must contain the parameter {parameter}");
        return Err(ApiError::ec2("MissingParameter", message));
    }
    let digits = id.strip_prefix(prefix).unwrap_or_default();
    if matches!(digits.len(), 8 | 17) && digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return Ok(());
    }
    let message = format!("Value ({id}) for parameter {parameter} is invalid. Expected: '{prefix}...'.");
    Err(ApiError::ec2("InvalidParameterValue", message))
}
