//! ECS: finds the instance and the GPUs of an attempt. Batch's events name only the container instance (fact 13), and
//! inside of the container the GPUs are not always named (fact 57).

use super::{Executed, Service, Taken};
use crate::calls::{CallError, ContainerInstance, Ecs, InCluster};
use crate::command::Command;
use crate::event::TrialRequest;
use crate::outcome::Outcome;
use spotsweep_protocol::claim::Task;
use spotsweep_records::workspace::{Fact, TrialRef};

/// Returns the service that finds the instances on which attempts are placed.
pub fn ecs(ecs: impl Ecs) -> impl Service {
    Instances(ecs)
}

#[derive(Debug)]
struct Instances<C>(C);

impl<C: Ecs> Service for Instances<C> {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::LocateAttempt { trial, attempt, container_instance } => {
                Ok(Box::pin(locate(&self.0, trial, attempt, container_instance)))
            }
            other => Err(Box::new(other)),
        }
    }
}

/// Returns the service that finds the GPUs of attempts' containers.
pub fn tasks(ecs: impl Ecs) -> impl Service {
    Tasks(ecs)
}

#[derive(Debug)]
struct Tasks<C>(C);

impl<C: Ecs> Service for Tasks<C> {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::FindGpus { request, task } => Ok(Box::pin(find_gpus(&self.0, request, task))),
            other => Err(Box::new(other)),
        }
    }
}

async fn find_gpus(ecs: &impl Ecs, request: TrialRequest, task: Task) -> Executed {
    let gpus = match in_cluster(task.arn, "task") {
        Some(wanted) => gpus(ecs, wanted, &task.container).await?,
        None => None,
    };
    Ok(vec![Outcome::GpusFound { request, gpus }])
}

/// Returns the UUIDs of a container's GPUs; `None` if ECS does not know the container.
async fn gpus(ecs: &impl Ecs, task: InCluster, container: &str) -> Result<Option<Vec<String>>, CallError> {
    let found = known(ecs.describe_tasks(task).await)?;
    Ok(found.into_iter().find(|found| found.name == container).map(|found| found.gpus))
}

/// Returns an attempt's place, or `PlaceUnknown` if ECS does not know it because the instance is gone or the cluster is
/// not this account's.
async fn locate(ecs: &impl Ecs, trial: TrialRef, attempt: u32, container_instance: String) -> Executed {
    let found = container_instance_of(ecs, container_instance).await?;
    Ok(vec![match found.and_then(instance_and_zone) {
        Some((instance, zone)) => Outcome::AttemptLocated { trial, attempt, instance, zone },
        None => Outcome::Workspace(trial, Fact::PlaceUnknown),
    }])
}

/// Describes a container instance; `None` if ECS does not know it, or does not know it any more.
pub(super) async fn container_instance_of(ecs: &impl Ecs, arn: String) -> Result<Option<ContainerInstance>, CallError> {
    let Some(wanted) = in_cluster(arn, CONTAINER_INSTANCE) else { return Ok(None) };
    Ok(known(ecs.describe_container_instances(wanted).await)?.into_iter().next())
}

/// Returns an empty list if ECS does not know the cluster or rejects the ARN.
fn known<T>(answer: Result<Vec<T>, CallError>) -> Result<Vec<T>, CallError> {
    match answer {
        Err(error) if error.refusal().is_some_and(|code| UNKNOWN.contains(&code)) => Ok(Vec::new()),
        answer => answer,
    }
}

pub(super) const UNKNOWN: [&str; 3] = ["ClientException", "ClusterNotFoundException", "InvalidParameterException"];

fn instance_and_zone(found: ContainerInstance) -> Option<(String, String)> {
    let zone = found.attributes.into_iter().find(|(name, _)| name == "ecs.availability-zone")?;
    Some((found.instance?, zone.1?))
}

/// The kind of a container instance in its ARN.
pub(super) const CONTAINER_INSTANCE: &str = "container-instance";

/// Returns an ARN of this kind with its cluster: `arn:aws:ecs:<region>:<account>:container-instance/<cluster>/<id>`.
/// ARNs in the old format name no cluster
/// (<https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-account-settings.html>).
pub(super) fn in_cluster(arn: String, kind: &str) -> Option<InCluster> {
    let (cluster, id) = arn.split_once(&format!(":{kind}/"))?.1.split_once('/')?;
    let cluster = Some(cluster).filter(|cluster| !cluster.is_empty() && !id.is_empty())?.to_owned();
    Some(InCluster { cluster, arn })
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
            let found = in_cluster(arn.to_owned(), CONTAINER_INSTANCE).map(|found| found.cluster);
            assert_eq!(found.as_deref(), name, "{arn}");
        }
    }
}
