//! Instances that are to take no further container.

use aws_config::SdkConfig;
use aws_sdk_ecs::operation::update_container_instances_state::UpdateContainerInstancesStateError as UpdateError;
use aws_sdk_ecs::types::ContainerInstanceStatus;
use futures_util::FutureExt;

use super::BoxError;
use super::lazy::{Lazy, lazy};
use super::{batch, ecs};
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::event::TrialRequest;
use spotsweep_control_plane::execute::{Executed, Service, Taken};
use spotsweep_control_plane::outcome::{Drained, Outcome};
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::ids::DescribedJob;

/// Drains the instances of attempts.
pub fn drains(config: &SdkConfig) -> impl Service + use<> {
    Drains { batch: lazy(config, aws_sdk_batch::Client::new), ecs: lazy(config, aws_sdk_ecs::Client::new) }
}

#[derive(Debug)]
struct Drains {
    batch: Lazy<aws_sdk_batch::Client>,
    ecs: Lazy<aws_sdk_ecs::Client>,
}

impl Service for Drains {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::DrainInstance(request) => Ok(self.drain(request).boxed()),
            other => Err(Box::new(other)),
        }
    }
}

impl Drains {
    async fn drain(&self, request: TrialRequest) -> Executed {
        let (sweep, index, job) = (request.sweep.clone(), Some(request.index), request.job.clone());
        let host = batch::host(&self.batch, DescribedJob { sweep, index, job }, request.attempt);
        let drained = match host.await? {
            Some(instance) => self.drain_host(instance).await?,
            None => Drained::NotPlaced,
        };
        Ok(vec![Outcome::InstanceDrained { request, drained }])
    }

    /// A refusal of ECS's is an outcome. What may be answered otherwise in a moment is an error: the runner asks again.
    async fn drain_host(&self, instance: String) -> Result<Drained, BoxError> {
        let Some(cluster) = ecs::cluster(&instance, "container-instance") else {
            return Ok(Drained::Refused(format!("{instance} names no cluster")));
        };
        let request = self.ecs.update_container_instances_state().cluster(cluster).container_instances(&instance);
        match request.status(ContainerInstanceStatus::Draining).send().await {
            Ok(answer) => Ok(match answer.failures().first() {
                // It is gone, so it takes nothing more either.
                Some(failure) if failure.reason() == Some(MISSING) => Drained::Yes(instance),
                Some(failure) => Drained::Refused(failure.reason().unwrap_or("no reason given").to_owned()),
                None => Drained::Yes(instance),
            }),
            Err(error) => match error.as_service_error() {
                Some(refusal) if is_refusal(refusal) => Ok(Drained::Refused(chain(refusal))),
                Some(_) | None => Err(error.into()),
            },
        }
    }
}

/// The reason of a failure where ECS does not know the container instance
/// (<https://docs.aws.amazon.com/AmazonECS/latest/developerguide/api_failures_messages.html>).
const MISSING: &str = "MISSING";

fn is_refusal(error: &UpdateError) -> bool {
    use aws_sdk_ecs::error::ProvideErrorMetadata;
    matches!(
        error,
        UpdateError::ClientException(_)
            | UpdateError::ClusterNotFoundException(_)
            | UpdateError::InvalidParameterException(_)
    ) || error.code() == Some("AccessDeniedException")
}
