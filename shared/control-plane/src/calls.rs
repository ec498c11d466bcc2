//! The calls on AWS that commands are made of, with one trait for each service. A method is one call: it takes a request
//! and gives the answer, or a [`CallError`]. Its implementations choose nothing. What a command does with an answer is in
//! [`crate::execute`], for the SDKs (crate `spotsweep-aws`) as for the emulator's World (crate `spotsweep-simulation`).

mod batch;
mod ec2;
mod ecs;
mod error;
mod wait;

pub use batch::{
    Batch, DescribeJobDefinitions, JobDefinition, JobQueue, ListJobs, ListedJob, NotStopped, StopJobs, SubmitJob,
};
pub use ec2::{
    AttachVolume, Attachment, CreateSnapshot, CreateVolume, DescribeSnapshots, DescribeVolumes, Ec2, Filter, Instance,
    InstanceStatus, Snapshot, Tag, Volume,
};
pub use ecs::{ContainerInstance, Ecs, InCluster, TaskContainer};
pub use error::CallError;
pub use wait::Wait;

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Asks for the next page; none after the last one.
    pub next_token: Option<String>,
}
