//! Amazon EC2 and EBS. States are the names that EC2 uses.

use std::fmt::Debug;
use std::future::Future;

use jiff::Timestamp;

use super::{CallError, Page};

/// How many values one filter may have (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html>).
pub const FILTER_VALUES: usize = 200;

/// Key and value of a tag.
pub type Tag = (String, String);

/// A filter, which matches if any of its values does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The filter's name, such as `tag:Name`.
    pub name: String,
    /// The values, which may contain wildcards.
    pub values: Vec<String>,
}

impl Filter {
    /// Makes a filter with one value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), values: vec![value.into()] }
    }
}

/// The parameters of CreateVolume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateVolume {
    /// Availability zone.
    pub zone: String,
    /// The type, such as `gp3`.
    pub volume_type: &'static str,
    /// Size in GiB.
    pub size_gib: u32,
    /// Whether the volume has to be encrypted. If not, it is encrypted if its snapshot is.
    pub encrypted: bool,
    /// `snap-…`, from which the volume is made.
    pub snapshot: Option<String>,
    /// MiB/s at which the volume loads its snapshot; absent for EC2's default rate.
    pub initialization_rate: Option<u32>,
    /// The client token, with which the call can be repeated.
    pub client_token: String,
    /// Tags.
    pub tags: Vec<Tag>,
}

/// The parameters of CreateSnapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateSnapshot {
    /// `vol-…`
    pub volume: String,
    /// Description.
    pub description: String,
    /// Tags.
    pub tags: Vec<Tag>,
}

/// The parameters of AttachVolume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachVolume {
    /// `vol-…`
    pub volume: String,
    /// `i-…`
    pub instance: String,
    /// Device name.
    pub device: String,
}

/// The parameters of DescribeVolumes for one page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescribeVolumes {
    /// The ids that are wanted; empty for all volumes.
    pub ids: Vec<String>,
    /// Filters that all have to match.
    pub filters: Vec<Filter>,
    /// The token from the page before.
    pub next_token: Option<String>,
}

/// The parameters of DescribeSnapshots for one page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescribeSnapshots {
    /// The ids that are wanted; empty for all snapshots.
    pub ids: Vec<String>,
    /// Whether only the account's own snapshots are wanted.
    pub own: bool,
    /// Filters that all have to match.
    pub filters: Vec<Filter>,
    /// The token from the page before.
    pub next_token: Option<String>,
}

/// A volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Volume {
    /// `vol-…`
    pub id: String,
    /// EC2's name of the state.
    pub state: String,
    /// Availability zone.
    pub zone: Option<String>,
    /// Size in GiB.
    pub size_gib: Option<u32>,
    /// Tags.
    pub tags: Vec<Tag>,
    /// Its attachments to instances.
    pub attachments: Vec<Attachment>,
}

/// The attachment of a volume to an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attachment {
    /// `i-…`
    pub instance: Option<String>,
    /// EC2's name of the state.
    pub state: String,
}

/// A snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// `snap-…`
    pub id: String,
    /// EC2's name of the state.
    pub state: String,
    /// Size of its volume in GiB.
    pub volume_size_gib: Option<u32>,
    /// Bytes of all its blocks, including those of earlier snapshots.
    pub full_bytes: Option<u64>,
}

/// An instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instance {
    /// EC2's name of the state.
    pub state: String,
}

/// EC2's report about an instance's health.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceStatus {
    /// EC2's name of the instance's state.
    pub state: String,
    /// Result of the status checks of its host.
    pub system: String,
    /// Result of its own status checks.
    pub instance: String,
}

/// The parameters of DescribeSpotPriceHistory for one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeSpotPrices {
    /// The instance types whose prices are wanted.
    pub instance_types: Vec<String>,
    /// The product, such as `Linux/UNIX`.
    pub product: &'static str,
    /// The start of the wanted time.
    pub since: Timestamp,
    /// The token from the page before.
    pub next_token: Option<String>,
}

/// A Spot price of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpotPriceRow {
    /// Instance type.
    pub instance_type: String,
    /// Availability zone.
    pub zone: String,
    /// When the price began.
    pub from: Timestamp,
    /// USD per hour, as text.
    pub usd: String,
}

/// The parameters of DescribeInstanceTypes for one page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescribeInstanceTypes {
    /// Filters that all have to match.
    pub filters: Vec<Filter>,
    /// The token from the page before.
    pub next_token: Option<String>,
}

/// An instance type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceTypeInfo {
    /// Its name, such as `g5.xlarge`.
    pub name: String,
    /// Size of all NVMe disks that such an instance has of its own, in GB (10^9 bytes); absent where it has none.
    pub nvme_gb: Option<u64>,
    /// The number of its GPUs.
    pub gpus: u32,
}

/// The calls to EC2 that the control plane makes.
pub trait Ec2: Debug + Send + Sync {
    /// Creates a volume.
    fn create_volume(&self, wanted: CreateVolume) -> impl Future<Output = Result<Volume, CallError>> + Send;

    /// Describes volumes.
    fn describe_volumes(&self, wanted: DescribeVolumes)
    -> impl Future<Output = Result<Page<Volume>, CallError>> + Send;

    /// Attaches a volume.
    fn attach_volume(&self, wanted: AttachVolume) -> impl Future<Output = Result<Attachment, CallError>> + Send;

    /// Detaches a volume. With `force` it is detached although it is in use.
    fn detach_volume(&self, volume: String, force: bool) -> impl Future<Output = Result<Attachment, CallError>> + Send;

    /// Deletes a volume.
    fn delete_volume(&self, volume: String) -> impl Future<Output = Result<(), CallError>> + Send;

    /// Takes a snapshot. It has no client token (fact 6), so an implementation makes one try.
    fn create_snapshot(&self, wanted: CreateSnapshot) -> impl Future<Output = Result<Snapshot, CallError>> + Send;

    /// Describes snapshots.
    fn describe_snapshots(
        &self,
        wanted: DescribeSnapshots,
    ) -> impl Future<Output = Result<Page<Snapshot>, CallError>> + Send;

    /// Deletes a snapshot.
    fn delete_snapshot(&self, snapshot: String) -> impl Future<Output = Result<(), CallError>> + Send;

    /// Describes one instance.
    fn describe_instances(&self, instance: String) -> impl Future<Output = Result<Vec<Instance>, CallError>> + Send;

    /// Describes the status of one instance, whatever its state is.
    fn describe_instance_status(
        &self,
        instance: String,
    ) -> impl Future<Output = Result<Vec<InstanceStatus>, CallError>> + Send;

    /// Terminates an instance.
    fn terminate_instances(&self, instance: String) -> impl Future<Output = Result<(), CallError>> + Send;

    /// Lists Spot prices with the times at which they began.
    fn describe_spot_price_history(
        &self,
        wanted: DescribeSpotPrices,
    ) -> impl Future<Output = Result<Page<SpotPriceRow>, CallError>> + Send;

    /// Describes the region's instance types.
    fn describe_instance_types(
        &self,
        wanted: DescribeInstanceTypes,
    ) -> impl Future<Output = Result<Page<InstanceTypeInfo>, CallError>> + Send;
}
