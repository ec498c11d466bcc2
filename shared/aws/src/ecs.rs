//! ECS: on which instance does an attempt run, and with which GPUs? Batch's events name only the container instance (fact
//! 13), and in the container the GPUs are not always named (fact 57).

use aws_config::SdkConfig;
use aws_sdk_ecs::Client;
use aws_sdk_ecs::operation::describe_container_instances::DescribeContainerInstancesError as DescribeError;
use aws_sdk_ecs::operation::describe_tasks::DescribeTasksError;
use aws_sdk_ecs::types::{ContainerInstance, Task as TaskOfEcs};
use futures_util::FutureExt;

use super::lazy::{Lazy, lazy};
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::event::TrialRequest;
use spotsweep_control_plane::execute::{Executed, Service, Taken};
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::workspace::{Fact, TrialRef};
use spotsweep_protocol::claim::Task;

/// Finds the instances that attempts are about to run on.
pub fn ecs(config: &SdkConfig) -> impl Service + use<> {
    Ecs(lazy(config, Client::new))
}

#[derive(Debug)]
struct Ecs(Lazy<Client>);

impl Service for Ecs {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::LocateAttempt { trial, attempt, container_instance } => {
                Ok(locate(&self.0, trial, attempt, container_instance).boxed())
            }
            other => Err(Box::new(other)),
        }
    }
}

/// Finds the GPUs of attempts' containers.
pub fn tasks(config: &SdkConfig) -> impl Service + use<> {
    Tasks(lazy(config, Client::new))
}

#[derive(Debug)]
struct Tasks(Lazy<Client>);

impl Service for Tasks {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::FindGpus { request, task } => Ok(find_gpus(&self.0, request, task).boxed()),
            other => Err(Box::new(other)),
        }
    }
}

async fn find_gpus(client: &Client, request: TrialRequest, task: Task) -> Executed {
    let gpus = match cluster(&task.arn, "task") {
        Some(cluster) => gpus(client, cluster, &task).await?,
        None => None,
    };
    Ok(vec![Outcome::GpusFound { request, gpus }])
}

/// UUIDs of a container's GPUs; `None` where ECS does not know it.
async fn gpus(
    client: &Client,
    cluster: &str,
    task: &Task,
) -> Result<Option<Vec<String>>, Box<dyn std::error::Error + Send + Sync>> {
    let found = match client.describe_tasks().cluster(cluster).tasks(&task.arn).send().await {
        Ok(answer) => answer.tasks.unwrap_or_default(),
        Err(error) => match error.as_service_error() {
            Some(
                DescribeTasksError::ClusterNotFoundException(_)
                | DescribeTasksError::InvalidParameterException(_)
                | DescribeTasksError::ClientException(_),
            ) => return Ok(None),
            _other => return Err(error.into()),
        },
    };
    let mut containers = found.iter().flat_map(TaskOfEcs::containers);
    let own = containers.find(|container| container.name() == Some(task.container.as_str()));
    Ok(own.map(|container| container.gpu_ids().to_vec()))
}

async fn locate(client: &Client, trial: TrialRef, attempt: u32, container_instance: String) -> Executed {
    Ok(vec![match place(client, &container_instance).await? {
        Some((instance, zone)) => Outcome::AttemptLocated { trial, attempt, instance, zone },
        None => Outcome::Workspace(trial, Fact::PlaceUnknown),
    }])
}

/// EC2 instance and availability zone; `None` where ECS does not know it (any more): the instance is gone, or the
/// cluster is not this account's.
async fn place(
    client: &Client,
    container_instance: &str,
) -> Result<Option<(String, String)>, Box<dyn std::error::Error + Send + Sync>> {
    Ok(container_instance_of(client, container_instance).await?.as_ref().and_then(instance_and_zone))
}

/// A container instance; `None` where ECS does not know it (any more).
pub(super) async fn container_instance_of(
    client: &Client,
    arn: &str,
) -> Result<Option<ContainerInstance>, Box<dyn std::error::Error + Send + Sync>> {
    let Some(cluster) = cluster(arn, "container-instance") else { return Ok(None) };
    match client.describe_container_instances().cluster(cluster).container_instances(arn).send().await {
        Ok(answer) => Ok(answer.container_instances.unwrap_or_default().into_iter().next()),
        Err(error) => match error.as_service_error() {
            Some(
                DescribeError::ClusterNotFoundException(_)
                | DescribeError::InvalidParameterException(_)
                | DescribeError::ClientException(_),
            ) => Ok(None),
            _other => Err(error.into()),
        },
    }
}

fn instance_and_zone(found: &ContainerInstance) -> Option<(String, String)> {
    let zone = found.attributes().iter().find(|attribute| attribute.name() == "ecs.availability-zone")?;
    Some((found.ec2_instance_id()?.to_owned(), zone.value()?.to_owned()))
}

/// The cluster in an ARN of this kind: `arn:aws:ecs:<region>:<account>:container-instance/<cluster>/<id>`; old ARNs have
/// none (<https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-account-settings.html>).
pub(super) fn cluster<'a>(arn: &'a str, kind: &str) -> Option<&'a str> {
    let (cluster, id) = arn.split_once(&format!(":{kind}/"))?.1.split_once('/')?;
    (!cluster.is_empty() && !id.is_empty()).then_some(cluster)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_stands_in_the_arn() {
        let expected = [
            ("arn:aws:ecs:us-east-1:123456789012:container-instance/Batch_a/0f1e", Some("Batch_a")),
            ("arn:aws-cn:ecs:cn-north-1:123456789012:container-instance/c/0f1e", Some("c")),
            ("arn:aws:ecs:us-east-1:123456789012:container-instance/0f1e", None),
            ("arn:aws:ecs:us-east-1:123456789012:container-instance//0f1e", None),
            ("arn:aws:ecs:us-east-1:123456789012:task/Batch_a/0f1e", None),
            ("", None),
        ];
        for (arn, name) in expected {
            assert_eq!(cluster(arn, "container-instance"), name, "{arn}");
        }
    }
}
