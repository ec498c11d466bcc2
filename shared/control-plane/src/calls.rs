//! The calls to AWS that commands consist of, with one trait for each service. A method is one call: it takes a request
//! and returns the answer, or a [`CallError`]. Its implementations choose nothing. [`crate::execute`] decides what a
//! command does with an answer. The traits are implemented by the SDKs (crate `spotsweep-aws`) and by the emulator's
//! World (crate `spotsweep-simulation`).

mod batch;
mod draw;
mod ec2;
mod ecs;
mod error;
mod events;
mod pricing;
mod s3;
mod secrets_manager;
mod ssm;
mod sts;
mod wait;

pub use batch::{
    Batch, ComputeEnvironment, DescribeJobDefinitions, JobDefinition, JobQueue, ListJobs, ListedJob, NotStopped,
    RegisterJobDefinition, StopJobs, SubmitJob,
};
pub use draw::Draw;
pub use ec2::{
    AttachVolume, Attachment, CreateSnapshot, CreateVolume, DescribeInstanceTypes, DescribeSnapshots,
    DescribeSpotPrices, DescribeVolumes, Ec2, FILTER_VALUES, Filter, Instance, InstanceStatus, InstanceTypeInfo,
    Snapshot, SpotPriceRow, Tag, Volume,
};
pub use ecs::{ContainerInstance, Ecs, InCluster, TaskContainer};
pub use error::CallError;
pub use events::{EventBridge, EventEntry, Publish, Sns};
pub use pricing::{GetProducts, Pricing};
pub use s3::{Body, GetObject, ListObjects, ListedObject, NO_SUCH_KEY, Object, ObjectsPage, Part, Place, S3};
pub use secrets_manager::{DescribedSecret, SecretsManager};
pub use ssm::{DescribeParameters, Parameter, Ssm};
pub use sts::{AssumeRole, Sts};
pub use wait::Wait;

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items of this page.
    pub items: Vec<T>,
    /// The token of the next page; absent after the last one.
    pub next_token: Option<String>,
}
