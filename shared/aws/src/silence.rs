//! Instances of attempts whose runners do not report: what ECS and EC2 say of them, and the end of dead ones.

use aws_config::SdkConfig;
use aws_sdk_ec2::types::{InstanceStateName, InstanceStatus as Status, SummaryStatus};
use futures_util::FutureExt;

use super::BoxError;
use super::call_error::call_error;
use super::lazy::{Lazy, lazy};
use super::{batch, ec2, ecs};
use spotsweep_control_plane::calls::CallError;
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::execute::{Executed, Service, Taken};
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::trial::{AgentState, Host, InstanceStatus};
use spotsweep_control_plane::workspace::TrialRef;
use spotsweep_protocol::ids::{DescribedJob, JobId};

/// EC2's code for an instance that it does not know (any more).
const NOT_FOUND: &str = "InvalidInstanceID.NotFound";

/// Looks at the instances of attempts, and ends them.
pub fn hosts(config: &SdkConfig) -> impl Service + use<> {
    Hosts {
        batch: lazy(config, aws_sdk_batch::Client::new),
        ecs: lazy(config, aws_sdk_ecs::Client::new),
        ec2: lazy(config, ec2::client),
    }
}

#[derive(Debug)]
struct Hosts {
    batch: Lazy<aws_sdk_batch::Client>,
    ecs: Lazy<aws_sdk_ecs::Client>,
    ec2: Lazy<aws_sdk_ec2::Client>,
}

impl Service for Hosts {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::CheckInstance { trial, attempt, job, instance } => {
                Ok(self.check(trial, attempt, job, instance).boxed())
            }
            Command::EndInstance { trial, attempt, instance } => Ok(self.end(trial, attempt, instance).boxed()),
            other => Err(Box::new(other)),
        }
    }
}

impl Hosts {
    async fn check(&self, trial: TrialRef, attempt: u32, job: JobId, known: Option<String>) -> Executed {
        let described = DescribedJob { sweep: trial.sweep.clone(), index: Some(trial.index), job };
        let host = match batch::host(&self.batch, described, attempt).await? {
            Some(container_instance) => Some(self.look(&container_instance, known).await?),
            None => None,
        };
        Ok(vec![Outcome::InstanceChecked { trial, attempt, host }])
    }

    async fn look(&self, container_instance: &str, known: Option<String>) -> Result<Host, BoxError> {
        let found = ecs::container_instance_of(&self.ecs, container_instance).await?;
        let agent = match &found {
            Some(found) if found.agent_connected() => AgentState::Connected,
            Some(_) => AgentState::Disconnected,
            None => AgentState::Unknown,
        };
        let instance = found.and_then(|found| found.ec2_instance_id).or(known);
        let status = match &instance {
            Some(instance) => self.status(instance).await?,
            None => InstanceStatus::Unknown,
        };
        Ok(Host { instance, agent, status })
    }

    /// Without `IncludeAllInstances` EC2 shows running instances only.
    async fn status(&self, instance: &str) -> Result<InstanceStatus, BoxError> {
        let request = self.ec2.describe_instance_status().instance_ids(instance).include_all_instances(true);
        match request.send().await.map_err(call_error) {
            Ok(answer) => Ok(answer.instance_statuses().first().map_or(InstanceStatus::Unknown, status_of)),
            Err(CallError::Refused { code, .. }) if code == NOT_FOUND => Ok(InstanceStatus::Gone),
            Err(failure) => Err(failure.into()),
        }
    }

    /// A refusal of EC2's is an outcome. An instance that is gone needs no end.
    async fn end(&self, trial: TrialRef, attempt: u32, instance: String) -> Executed {
        let refusal = match self.ec2.terminate_instances().instance_ids(instance).send().await.map_err(call_error) {
            Ok(_) => None,
            Err(CallError::Refused { code, .. }) if code == NOT_FOUND => None,
            Err(CallError::Refused { code, message }) => Some(format!("{code}: {message}")),
            Err(failure) => return Err(failure.into()),
        };
        Ok(vec![Outcome::InstanceEnded { trial, attempt, refusal }])
    }
}

fn status_of(found: &Status) -> InstanceStatus {
    use InstanceStateName::{Pending, Running, ShuttingDown, Stopped, Stopping, Terminated};
    let has_failed = |summary: Option<&SummaryStatus>| summary == Some(&SummaryStatus::Impaired);
    let system = found.system_status().and_then(|summary| summary.status());
    let own = found.instance_status().and_then(|summary| summary.status());
    match found.instance_state().and_then(|state| state.name()) {
        Some(ShuttingDown | Terminated) => InstanceStatus::Gone,
        Some(Stopping | Stopped) => InstanceStatus::Stopped,
        Some(Pending | Running) if has_failed(system) || has_failed(own) => InstanceStatus::Impaired,
        Some(_) | None => InstanceStatus::NotImpaired,
    }
}
