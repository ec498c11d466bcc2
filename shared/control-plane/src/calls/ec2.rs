//! Amazon EC2 and EBS. States are EC2's words for them.

use std::fmt::Debug;
use std::future::Future;

use jiff::Timestamp;

use super::{CallError, Page};

/// A tag: key and value.
pub type Tag = (String, String);

/// A filter: any of its values must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Such as `tag:Name`.
    pub name: String,
    /// Values.
    pub values: Vec<String>,
}

impl Filter {
    /// A filter with one value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), values: vec![value.into()] }
    }
}

/// CreateVolume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateVolume {
    /// Availability zone.
    pub zone: String,
    /// Such as `gp3`.
    pub volume_type: &'static str,
    /// GiB.
    pub size_gib: u32,
    /// Whether to encrypt it; where not, it is encrypted as its snapshot is.
    pub encrypted: bool,
    /// `snap-…`, of which it has the bytes.
    pub snapshot: Option<String>,
    /// MiB/s at which it loads its snapshot.
    pub initialization_rate: Option<u32>,
    /// Makes the call repeatable.
    pub client_token: String,
    /// Tags.
    pub tags: Vec<Tag>,
}

/// CreateSnapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateSnapshot {
    /// `vol-…`
    pub volume: String,
    /// Description.
    pub description: String,
    /// Tags.
    pub tags: Vec<Tag>,
}

/// AttachVolume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachVolume {
    /// `vol-…`
    pub volume: String,
    /// `i-…`
    pub instance: String,
    /// Device name.
    pub device: String,
}

/// DescribeVolumes: a page of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescribeVolumes {
    /// Only these, where there are any.
    pub ids: Vec<String>,
    /// Only those that match all of them.
    pub filters: Vec<Filter>,
    /// From the page before.
    pub next_token: Option<String>,
}

/// DescribeSnapshots: a page of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescribeSnapshots {
    /// Only these, where there are any.
    pub ids: Vec<String>,
    /// Only the account's own.
    pub own: bool,
    /// Only those that match all of them.
    pub filters: Vec<Filter>,
    /// From the page before.
    pub next_token: Option<String>,
}

/// A volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Volume {
    /// `vol-…`
    pub id: String,
    /// State.
    pub state: String,
    /// Availability zone.
    pub zone: Option<String>,
    /// GiB.
    pub size_gib: Option<u32>,
    /// Tags.
    pub tags: Vec<Tag>,
    /// Where it is attached.
    pub attachments: Vec<Attachment>,
}

/// A volume's place at an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attachment {
    /// `i-…`
    pub instance: Option<String>,
    /// State.
    pub state: String,
}

/// A snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// `snap-…`
    pub id: String,
    /// State.
    pub state: String,
    /// GiB of the volume that it is of.
    pub volume_size_gib: Option<u32>,
    /// Bytes of all its blocks, not only of those that it added to the one before.
    pub full_bytes: Option<u64>,
}

/// An instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instance {
    /// State.
    pub state: String,
}

/// What EC2 says of an instance's health.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceStatus {
    /// The instance's state.
    pub state: String,
    /// The status checks of its host.
    pub system: String,
    /// Its own status checks.
    pub instance: String,
}

/// DescribeSpotPriceHistory: a page of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeSpotPrices {
    /// Of these instance types.
    pub instance_types: Vec<String>,
    /// Such as `Linux/UNIX`.
    pub product: &'static str,
    /// From then on.
    pub since: Timestamp,
    /// From the page before.
    pub next_token: Option<String>,
}

/// A spot price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpotPriceRow {
    /// Instance type.
    pub instance_type: String,
    /// Availability zone.
    pub zone: String,
    /// When it began.
    pub from: Timestamp,
    /// USD for an hour, as a text.
    pub usd: String,
}

/// EC2, as the control plane uses it.
pub trait Ec2: Debug + Send + Sync {
    /// Makes a volume.
    fn create_volume(&self, wanted: CreateVolume) -> impl Future<Output = Result<Volume, CallError>> + Send;

    /// Shows volumes.
    fn describe_volumes(&self, wanted: DescribeVolumes)
    -> impl Future<Output = Result<Page<Volume>, CallError>> + Send;

    /// Attaches a volume.
    fn attach_volume(&self, wanted: AttachVolume) -> impl Future<Output = Result<Attachment, CallError>> + Send;

    /// Detaches a volume; with force, although it is in use.
    fn detach_volume(&self, volume: String, force: bool) -> impl Future<Output = Result<Attachment, CallError>> + Send;

    /// Deletes a volume.
    fn delete_volume(&self, volume: String) -> impl Future<Output = Result<(), CallError>> + Send;

    /// Takes a snapshot. It has no client token (fact 6), so an implementation makes one try.
    fn create_snapshot(&self, wanted: CreateSnapshot) -> impl Future<Output = Result<Snapshot, CallError>> + Send;

    /// Shows snapshots.
    fn describe_snapshots(
        &self,
        wanted: DescribeSnapshots,
    ) -> impl Future<Output = Result<Page<Snapshot>, CallError>> + Send;

    /// Deletes a snapshot.
    fn delete_snapshot(&self, snapshot: String) -> impl Future<Output = Result<(), CallError>> + Send;

    /// Shows one instance.
    fn describe_instances(&self, instance: String) -> impl Future<Output = Result<Vec<Instance>, CallError>> + Send;

    /// Shows the status of one instance, whatever its state.
    fn describe_instance_status(
        &self,
        instance: String,
    ) -> impl Future<Output = Result<Vec<InstanceStatus>, CallError>> + Send;

    /// Ends an instance.
    fn terminate_instances(&self, instance: String) -> impl Future<Output = Result<(), CallError>> + Send;

    /// Shows spot prices, and when each began.
    fn describe_spot_price_history(
        &self,
        wanted: DescribeSpotPrices,
    ) -> impl Future<Output = Result<Page<SpotPriceRow>, CallError>> + Send;
}
