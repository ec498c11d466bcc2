//! The calls on AWS that commands are made of, with one trait for each service. A method is one call: it takes a request
//! and gives the answer, or a [`CallError`]. Its implementations choose nothing. What a command does with an answer is in
//! [`crate::execute`], for the SDKs (crate `spotsweep-aws`) as for the emulator's World (crate `spotsweep-simulation`).

mod batch;
mod draw;
mod ec2;
mod ecs;
mod error;
mod events;
mod pricing;
mod s3;
mod sts;
mod wait;

pub use batch::{
    Batch, DescribeJobDefinitions, JobDefinition, JobQueue, ListJobs, ListedJob, NotStopped, StopJobs, SubmitJob,
};
pub use draw::Draw;
pub use ec2::{
    AttachVolume, Attachment, CreateSnapshot, CreateVolume, DescribeSnapshots, DescribeSpotPrices, DescribeVolumes,
    Ec2, Filter, Instance, InstanceStatus, Snapshot, SpotPriceRow, Tag, Volume,
};
pub use ecs::{ContainerInstance, Ecs, InCluster, TaskContainer};
pub use error::CallError;
pub use events::{EventBridge, EventEntry, Publish, Sns};
pub use pricing::{GetProducts, Pricing};
pub use s3::{Body, GetObject, NO_SUCH_KEY, Object, Part, Place, S3};
pub use sts::{AssumeRole, Sts};
pub use wait::Wait;

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Asks for the next page; none after the last one.
    pub next_token: Option<String>,
}
