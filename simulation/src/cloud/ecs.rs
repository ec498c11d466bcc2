//! ECS's calls on the World: translates requests and answers.

use serde::Deserialize;
use serde_json::{Value, json};
use spotsweep_control_plane::calls::{CallError, ContainerInstance, Ecs, InCluster, TaskContainer, Wait};
use spotsweep_world::Service;

use super::client::{Client, answer, request};

impl<W: Wait> Ecs for Client<'_, W> {
    async fn describe_container_instances(&self, wanted: InCluster) -> Result<Vec<ContainerInstance>, CallError> {
        let request = request(json!({ "cluster": wanted.cluster, "containerInstances": [wanted.arn] }))?;
        let action = "DescribeContainerInstances";
        let found = self.call(Service::Ecs, action, |world| world.describe_container_instances(&request)).await?;
        let found: Vec<Instance> = answer(&found["containerInstances"])?;
        Ok(found
            .into_iter()
            .map(|found| ContainerInstance {
                instance: found.ec2_instance_id,
                agent_connected: found.agent_connected,
                attributes: found.attributes.into_iter().map(|one| (one.name, one.value)).collect(),
            })
            .collect())
    }

    async fn update_container_instances_state(
        &self,
        wanted: InCluster,
        status: &'static str,
    ) -> Result<Vec<Option<String>>, CallError> {
        let wanted = json!({ "cluster": wanted.cluster, "containerInstances": [wanted.arn], "status": status });
        let (request, action) = (request(wanted)?, "UpdateContainerInstancesState");
        let changed = self.call(Service::Ecs, action, |world| world.update_container_instances_state(&request)).await?;
        let failures = changed["failures"].as_array().into_iter().flatten();
        Ok(failures.map(|failure| failure["reason"].as_str().map(str::to_owned)).collect())
    }

    async fn describe_tasks(&self, wanted: InCluster) -> Result<Vec<TaskContainer>, CallError> {
        let request = request(json!({ "cluster": wanted.cluster, "tasks": [wanted.arn] }))?;
        let found = self.call(Service::Ecs, "DescribeTasks", |world| world.describe_tasks(&request)).await?;
        let tasks = found["tasks"].as_array().into_iter().flatten();
        let containers = tasks.flat_map(|task| task["containers"].as_array().into_iter().flatten());
        containers.map(container).collect()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Instance {
    ec2_instance_id: Option<String>,
    agent_connected: bool,
    #[serde(default)]
    attributes: Vec<Attribute>,
}

#[derive(Deserialize)]
struct Attribute {
    name: String,
    value: Option<String>,
}

fn container(found: &Value) -> Result<TaskContainer, CallError> {
    let gpus = found["gpuIds"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    Ok(TaskContainer { name: answer(&found["name"])?, gpus: gpus.collect() })
}
