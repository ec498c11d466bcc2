//! Amazon EBS: volumes, their attachments, and snapshots.
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

/// The state of EBS.
#[derive(Debug, Default)]
pub(super) struct Ebs {
    pub(super) volumes: BTreeMap<String, Volume>,
    pub(super) snapshots: BTreeMap<String, Snapshot>,
    tokens: BTreeMap<String, Token>,
    attachments_made: u64,
    links: Links,
    /// Whether the bytes are kept outside of the World: see [`World::with_bytes_outside`].
    outside: bool,
    orders: Vec<VolumeOrder>,
}

/// The parameters of CreateVolume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateVolume {
    /// The availability zone.
    pub zone: String,
    /// Size in GiB; that of the snapshot if absent.
    pub size_gib: Option<u32>,
    /// The snapshot with the volume's bytes; absent for an empty volume.
    pub snapshot: Option<String>,
    /// `gp2` (the default, fact 26) or `gp3`.
    pub volume_type: Option<String>,
    /// Whether to encrypt it. A volume from an encrypted snapshot is always encrypted.
    pub encrypted: bool,
    /// The client token, with which the request can be repeated: at most 64 ASCII characters.
    pub client_token: Option<String>,
    /// MiB/s, 100 to 300. It needs a snapshot.
    pub initialization_rate: Option<u32>,
    /// Tags of the volume.
    pub tags: Tags,
}

/// A volume's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeState {
    /// The volume was requested.
    Creating,
    /// The volume is attached to no instance.
    Available,
    /// The volume is attached, or is being attached or detached.
    InUse,
    /// The volume is being deleted.
    Deleting,
    /// The volume could not be created.
    Error,
}

impl VolumeState {
    /// Returns EC2's name of the state.
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
    /// The availability zone, which never changes.
    pub zone: String,
    /// Size in GiB.
    pub size_gib: u32,
    /// The type, such as `gp3`.
    pub volume_type: String,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// The snapshot that it was made from.
    pub snapshot: Option<String>,
    /// VolumeInitializationRate in MiB/s, if one was requested.
    pub initialization_rate: Option<u32>,
    /// When it was requested.
    pub created_at: Timestamp,
    /// When the last block of its snapshot will be loaded. Until then, first reads are slow (fact 25).
    pub initialized_at: Option<Timestamp>,
    /// The state.
    pub state: VolumeState,
    /// The attachment, if there is one.
    pub attachment: Option<Attachment>,
    /// Whether the instance has mounted it. A detachment is then stuck in `busy` (fact 28).
    pub mounted: bool,
    /// Tags.
    pub tags: Tags,
    visible_at: Timestamp,
    /// The snapshots with which it shares blocks, oldest first (fact 4).
    lineage: Vec<String>,
    files: Arc<FileSystem>,
    fails: bool,
}

impl Volume {
    /// Returns the I/O operations per second. For gp3 it is the baseline that the price includes, for gp2 3 for each
    /// GiB, between 100 and 16 000 (EBS user guide, "General Purpose SSD volumes").
    pub fn iops(&self) -> u32 {
        match self.volume_type.as_str() {
            GP3 => GP3_IOPS,
            _gp2 => self.size_gib.saturating_mul(3).clamp(100, 16_000),
        }
    }

    /// Returns the throughput in MiB/s; `None` for gp2, because EC2 shows none.
    pub fn throughput_mib(&self) -> Option<u32> {
        (self.volume_type == GP3).then_some(GP3_THROUGHPUT_MIB)
    }
}

/// An attachment's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentState {
    /// The attachment was requested.
    Attaching,
    /// The device is in place.
    Attached,
    /// The volume is being detached.
    Detaching,
    /// The volume will be detached as soon as the instance unmounts it.
    Busy,
}

impl AttachmentState {
    /// Returns EC2's name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            AttachmentState::Attaching => "attaching",
            AttachmentState::Attached => "attached",
            AttachmentState::Detaching => "detaching",
            AttachmentState::Busy => "busy",
        }
    }
}

/// The attachment of a volume to an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The instance's id.
    pub instance: String,
    /// The name given to AttachVolume, such as `/dev/sdf`.
    pub device: String,
    /// The state.
    pub state: AttachmentState,
    /// When it was requested.
    pub attached_at: Timestamp,
    /// Whether it is detached even if it is mounted.
    pub force: bool,
    /// A number that distinguishes it from earlier attachments of the same volume.
    number: u64,
    /// N of its disk `/dev/nvme<N>n1`, while the disk exists.
    disk: Option<u32>,
}

/// A snapshot's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotState {
    /// The blocks are being copied.
    Pending,
    /// The snapshot can be used.
    Completed,
    /// The snapshot has failed for good.
    Error,
}

impl SnapshotState {
    /// Returns EC2's name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            SnapshotState::Pending => "pending",
            SnapshotState::Completed => "completed",
            SnapshotState::Error => "error",
        }
    }
}

/// An EBS snapshot, with the volume's bytes at the time of the request (fact 24).
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// `snap-` and 17 hex digits.
    pub id: String,
    /// The volume that it was taken of.
    pub volume: String,
    /// The volume's size in GiB.
    pub volume_size_gib: u32,
    /// Whether it is encrypted, like its volume.
    pub encrypted: bool,
    /// The description as it was given.
    pub description: String,
    /// The state.
    pub state: SnapshotState,
    /// The time of the request, whose bytes it has.
    pub started_at: Timestamp,
    /// When it completed or will complete. It is absent while the amount to copy is unknown, and after an error.
    pub completes_at: Option<Timestamp>,
    /// Bytes that have to be copied: the difference to the latest snapshot in the volume's lineage.
    pub changed_bytes: Option<u64>,
    /// Tags.
    pub tags: Tags,
    visible_at: Timestamp,
    lineage: Vec<String>,
    files: Arc<FileSystem>,
    fails: bool,
    /// Whether it was deleted while pending. It is then invisible, but the copy continues (EBS user guide, "Delete an
    /// Amazon EBS snapshot").
    deleted: bool,
}

impl Snapshot {
    /// Returns the bytes of all files in it, including those of earlier snapshots.
    pub fn full_bytes(&self) -> u64 {
        self.files.bytes()
    }
}

impl World {
    /// Returns the volume with this id, unless it is gone. This bypasses the API, without delay or throttling.
    pub fn volume(&self, id: &str) -> Option<&Volume> {
        self.ebs.volumes.get(id)
    }

    /// Returns all volumes, in the order of their ids.
    pub fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.ebs.volumes.values()
    }

    /// Returns the snapshot with this id, unless it is deleted.
    pub fn snapshot_of(&self, id: &str) -> Option<&Snapshot> {
        self.ebs.snapshots.get(id).filter(|snapshot| !snapshot.deleted)
    }

    /// Returns all snapshots that are not deleted, in the order of their ids.
    pub fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        self.ebs.snapshots.values().filter(|snapshot| !snapshot.deleted)
    }

    /// Returns the volumes of an instance, with their attachments.
    pub fn volumes_at<'a>(&'a self, instance: &'a str) -> impl Iterator<Item = (&'a Volume, &'a Attachment)> {
        let attached = self.volumes().filter_map(|volume| Some((volume, volume.attachment.as_ref()?)));
        attached.filter(move |(_, attachment)| attachment.instance == instance)
    }

    fn visible_at(&self) -> Timestamp {
        self.now.saturating_add(self.trouble.visible_after()).unwrap_or(Timestamp::MAX)
    }

    /// Returns the volume, or the error of the API if it is not visible.
    fn find_volume(&mut self, id: &str) -> Result<&mut Volume, ApiError> {
        check_id("volumeId", "vol-", id)?;
        let now = self.now;
        let found = self.ebs.volumes.get_mut(id).filter(|volume| volume.visible_at <= now);
        found.ok_or_else(|| ApiError::ec2("InvalidVolume.NotFound", format!("The volume '{id}' does not exist.")))
    }

    /// Returns the snapshot, or the error of the API if it is not visible.
    fn find_snapshot(&mut self, id: &str) -> Result<&mut Snapshot, ApiError> {
        check_id("snapshotId", "snap-", id)?;
        let now = self.now;
        let found = self.ebs.snapshots.get_mut(id).filter(|snapshot| snapshot.visible_at <= now && !snapshot.deleted);
        found.ok_or_else(|| ApiError::ec2("InvalidSnapshot.NotFound", format!("The snapshot '{id}' does not exist.")))
    }
}

/// Checks an id: `vol-` or `snap-`, and 8 (old) or 17 hex digits.
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
