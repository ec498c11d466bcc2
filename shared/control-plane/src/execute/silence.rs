//! Looks up the instances of silent attempts at ECS and EC2, and terminates dead ones.

use super::batch::host;
use super::ecs::container_instance_of;
use super::{Executed, Service, Taken};
use crate::calls::{self, Batch, CallError, Ec2, Ecs};
use crate::command::Command;
use crate::outcome::Outcome;
use spotsweep_protocol::ids::{DescribedJob, JobId};
use spotsweep_records::trial::{AgentState, Host, InstanceStatus};
use spotsweep_records::workspace::TrialRef;

/// EC2's error code for an instance that it does not know, or does not know any more.
const NOT_FOUND: &str = "InvalidInstanceID.NotFound";

/// Returns the service that looks up the instances of attempts, and terminates them.
pub fn hosts(batch: impl Batch, ecs: impl Ecs, ec2: impl Ec2) -> impl Service {
    Hosts { batch, ecs, ec2 }
}

#[derive(Debug)]
struct Hosts<B, E, C> {
    batch: B,
    ecs: E,
    ec2: C,
}

impl<B: Batch, E: Ecs, C: Ec2> Service for Hosts<B, E, C> {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::CheckInstance { trial, attempt, job, instance } => {
                Ok(Box::pin(self.check(trial, attempt, job, instance)))
            }
            Command::EndInstance { trial, attempt, instance } => Ok(Box::pin(self.end(trial, attempt, instance))),
            other => Err(Box::new(other)),
        }
    }
}

impl<B: Batch, E: Ecs, C: Ec2> Hosts<B, E, C> {
    async fn check(&self, trial: TrialRef, attempt: u32, job: JobId, known: Option<String>) -> Executed {
        let described = DescribedJob { sweep: trial.sweep.clone(), index: Some(trial.index), job };
        let host = match host(&self.batch, described, attempt).await? {
            Some(container_instance) => Some(self.look(container_instance, known).await?),
            None => None,
        };
        Ok(vec![Outcome::InstanceChecked { trial, attempt, host }])
    }

    async fn look(&self, container_instance: String, known: Option<String>) -> Result<Host, CallError> {
        let found = container_instance_of(&self.ecs, container_instance).await?;
        let agent = match &found {
            Some(found) if found.agent_connected => AgentState::Connected,
            Some(_) => AgentState::Disconnected,
            None => AgentState::Unknown,
        };
        let instance = found.and_then(|found| found.instance).or(known);
        let status = match &instance {
            Some(instance) => self.status(instance.clone()).await?,
            None => InstanceStatus::Unknown,
        };
        Ok(Host { instance, agent, status })
    }

    async fn status(&self, instance: String) -> Result<InstanceStatus, CallError> {
        match self.ec2.describe_instance_status(instance).await {
            Ok(found) => Ok(found.first().map_or(InstanceStatus::Unknown, status_of)),
            Err(error) if error.refusal() == Some(NOT_FOUND) => Ok(InstanceStatus::Gone),
            Err(error) => Err(error),
        }
    }

    /// Terminates an instance. A refusal by EC2 is an outcome, and an instance that is gone counts as terminated.
    async fn end(&self, trial: TrialRef, attempt: u32, instance: String) -> Executed {
        let refusal = match self.ec2.terminate_instances(instance).await {
            Ok(()) => None,
            Err(CallError::Refused { code, .. }) if code == NOT_FOUND => None,
            Err(CallError::Refused { code, message }) => Some(format!("{code}: {message}")),
            Err(error) => return Err(error.into()),
        };
        Ok(vec![Outcome::InstanceEnded { trial, attempt, refusal }])
    }
}

fn status_of(found: &calls::InstanceStatus) -> InstanceStatus {
    match found.state.as_str() {
        "shutting-down" | "terminated" => InstanceStatus::Gone,
        "stopping" | "stopped" => InstanceStatus::Stopped,
        "pending" | "running" if found.system == IMPAIRED || found.instance == IMPAIRED => InstanceStatus::Impaired,
        _runs_or_unknown => InstanceStatus::NotImpaired,
    }
}

const IMPAIRED: &str = "impaired";
