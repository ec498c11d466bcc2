//! Amazon ECS.

use std::fmt::Debug;
use std::future::Future;

use super::CallError;

/// A container instance or a task, with its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InCluster {
    /// The cluster's name.
    pub cluster: String,
    /// ARN.
    pub arn: String,
}

/// A container instance, which is ECS's record of an EC2 instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerInstance {
    /// `i-…`
    pub instance: Option<String>,
    /// Whether its ECS agent is connected.
    pub agent_connected: bool,
    /// The names of its attributes, with their values if they have one.
    pub attributes: Vec<(String, Option<String>)>,
}

/// One container of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskContainer {
    /// The container's name in the task.
    pub name: String,
    /// UUIDs of the GPUs that it has.
    pub gpus: Vec<String>,
}

/// The calls to ECS that the control plane makes.
pub trait Ecs: Debug + Send + Sync {
    /// Describes a container instance, if ECS knows it.
    fn describe_container_instances(
        &self,
        wanted: InCluster,
    ) -> impl Future<Output = Result<Vec<ContainerInstance>, CallError>> + Send;

    /// Sets the status of a container instance, and returns the reason for each one that was not changed.
    fn update_container_instances_state(
        &self,
        wanted: InCluster,
        status: &'static str,
    ) -> impl Future<Output = Result<Vec<Option<String>>, CallError>> + Send;

    /// Describes the containers of a task, if ECS knows it.
    fn describe_tasks(&self, wanted: InCluster) -> impl Future<Output = Result<Vec<TaskContainer>, CallError>> + Send;
}
