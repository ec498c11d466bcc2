//! Amazon ECS.

use std::fmt::Debug;
use std::future::Future;

use super::CallError;

/// A container instance or a task, and the cluster that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InCluster {
    /// The cluster's name.
    pub cluster: String,
    /// ARN.
    pub arn: String,
}

/// A container instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerInstance {
    /// `i-…`
    pub instance: Option<String>,
    /// Whether its ECS agent is connected.
    pub agent_connected: bool,
    /// Attributes: names, and values where they have one.
    pub attributes: Vec<(String, Option<String>)>,
}

/// A container of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskContainer {
    /// Its name in the task.
    pub name: String,
    /// UUIDs of its GPUs.
    pub gpus: Vec<String>,
}

/// ECS, as the control plane uses it.
pub trait Ecs: Debug + Send + Sync {
    /// Shows a container instance, where ECS knows it.
    fn describe_container_instances(
        &self,
        wanted: InCluster,
    ) -> impl Future<Output = Result<Vec<ContainerInstance>, CallError>> + Send;

    /// Gives a container instance another status; for each that it has not changed, the reason.
    fn update_container_instances_state(
        &self,
        wanted: InCluster,
        status: &'static str,
    ) -> impl Future<Output = Result<Vec<Option<String>>, CallError>> + Send;

    /// Shows the containers of a task, where ECS knows it.
    fn describe_tasks(&self, wanted: InCluster) -> impl Future<Output = Result<Vec<TaskContainer>, CallError>> + Send;
}
