//! Drains instances, so that they take no further container.

use super::batch::host;
use super::ecs::{CONTAINER_INSTANCE, UNKNOWN, in_cluster};
use super::{Executed, Service, Taken};
use crate::calls::{Batch, CallError, Ecs};
use crate::command::Command;
use crate::event::TrialRequest;
use crate::outcome::{Drained, Outcome};
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::ids::DescribedJob;

/// Returns the service that drains the instances of attempts.
pub fn drains(batch: impl Batch, ecs: impl Ecs) -> impl Service {
    Drains { batch, ecs }
}

#[derive(Debug)]
struct Drains<B, E> {
    batch: B,
    ecs: E,
}

impl<B: Batch, E: Ecs> Service for Drains<B, E> {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::DrainInstance(request) => Ok(Box::pin(self.drain(request))),
            other => Err(Box::new(other)),
        }
    }
}

impl<B: Batch, E: Ecs> Drains<B, E> {
    async fn drain(&self, request: TrialRequest) -> Executed {
        let (sweep, index, job) = (request.sweep.clone(), Some(request.index), request.job.clone());
        let drained = match host(&self.batch, DescribedJob { sweep, index, job }, request.attempt).await? {
            Some(instance) => self.drain_host(instance).await?,
            None => Drained::NotPlaced,
        };
        Ok(vec![Outcome::InstanceDrained { request, drained }])
    }

    /// Drains a container instance. A refusal by ECS is an outcome. If a retry may have another answer it is an error,
    /// and the runner asks again.
    async fn drain_host(&self, instance: String) -> Result<Drained, CallError> {
        let Some(wanted) = in_cluster(instance.clone(), CONTAINER_INSTANCE) else {
            return Ok(Drained::Refused(format!("{instance} names no cluster")));
        };
        match self.ecs.update_container_instances_state(wanted, "DRAINING").await {
            Ok(failures) => Ok(match failures.into_iter().next() {
                // The container instance is gone, so it takes no further container either.
                Some(Some(reason)) if reason == MISSING => Drained::Yes(instance),
                Some(reason) => Drained::Refused(reason.unwrap_or_else(|| "no reason given".to_owned())),
                None => Drained::Yes(instance),
            }),
            Err(error) if error.refusal().is_some_and(is_refusal) => Ok(Drained::Refused(chain(&error))),
            Err(error) => Err(error),
        }
    }
}

/// The reason of a failure for a container instance that ECS does not know
/// (<https://docs.aws.amazon.com/AmazonECS/latest/developerguide/api_failures_messages.html>).
const MISSING: &str = "MISSING";

fn is_refusal(code: &str) -> bool {
    UNKNOWN.contains(&code) || code == "AccessDeniedException"
}
