//! ECS's calls over its SDK: it maps the fields of requests and answers.

use aws_config::SdkConfig;
use aws_sdk_ecs::Client;
use aws_sdk_ecs::types::ContainerInstanceStatus;
use spotsweep_control_plane::calls::{CallError, ContainerInstance, Ecs, InCluster, TaskContainer};

use super::call_error::call_error;
use super::lazy::{Lazy, lazy};

/// The calls to ECS over its SDK.
#[derive(Debug)]
pub(super) struct EcsSdk(Lazy<Client>);

impl EcsSdk {
    pub(super) fn new(config: &SdkConfig) -> Self {
        Self(lazy(config, Client::new))
    }
}

impl Ecs for EcsSdk {
    async fn describe_container_instances(&self, wanted: InCluster) -> Result<Vec<ContainerInstance>, CallError> {
        let request = self.0.describe_container_instances().cluster(wanted.cluster).container_instances(wanted.arn);
        let found = request.send().await.map_err(call_error)?;
        let instances = found.container_instances.unwrap_or_default().into_iter();
        Ok(instances
            .map(|instance| ContainerInstance {
                instance: instance.ec2_instance_id,
                agent_connected: instance.agent_connected,
                attributes: instance
                    .attributes
                    .unwrap_or_default()
                    .into_iter()
                    .map(|one| (one.name, one.value))
                    .collect(),
            })
            .collect())
    }

    async fn update_container_instances_state(
        &self,
        wanted: InCluster,
        status: &'static str,
    ) -> Result<Vec<Option<String>>, CallError> {
        let request = self.0.update_container_instances_state().cluster(wanted.cluster).container_instances(wanted.arn);
        let answer = request.status(ContainerInstanceStatus::from(status)).send().await.map_err(call_error)?;
        Ok(answer.failures.unwrap_or_default().into_iter().map(|failure| failure.reason).collect())
    }

    async fn describe_tasks(&self, wanted: InCluster) -> Result<Vec<TaskContainer>, CallError> {
        let found =
            self.0.describe_tasks().cluster(wanted.cluster).tasks(wanted.arn).send().await.map_err(call_error)?;
        let containers =
            found.tasks.unwrap_or_default().into_iter().flat_map(|task| task.containers.unwrap_or_default());
        Ok(containers
            .map(|found| TaskContainer {
                name: found.name.unwrap_or_default(),
                gpus: found.gpu_ids.unwrap_or_default(),
            })
            .collect())
    }
}
