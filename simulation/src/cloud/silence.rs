//! Instances of attempts whose runners do not report, with the calls that the AWS executor makes.

use serde_json::json;
use spotsweep_control_plane::event::Job;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::trial::{AgentState, Host, InstanceStatus};
use spotsweep_control_plane::workspace::TrialRef;
use spotsweep_protocol::ids::{DescribedJob, JobId};
use spotsweep_world::{InstanceState, Selection, Service};

use super::answer::NoAnswer;
use super::{Cloud, Executed};
use crate::injected_bug::InjectedBug;

impl Cloud {
    pub(super) async fn check_instance(
        &self,
        trial: TrialRef,
        attempt: u32,
        job: JobId,
        known: Option<String>,
    ) -> Executed {
        let described = DescribedJob { sweep: trial.sweep.clone(), index: Some(trial.index), job };
        let host = match self.host(described, attempt).await? {
            Some(container_instance) => Some(self.look_at(&container_instance, known).await?),
            None => None,
        };
        Ok(vec![Outcome::InstanceChecked { trial, attempt, host }])
    }

    /// ARN of the container instance on which Batch has placed an attempt.
    pub(super) async fn host(
        &self,
        job: DescribedJob,
        attempt: u32,
    ) -> Result<Option<String>, Box<dyn std::error::Error + Send + Sync>> {
        let found = self.describe(vec![job]).await?;
        Ok(found.iter().find_map(|outcome| match outcome {
            Outcome::JobDescribed(Job::Trial(job)) => job.host(attempt).map(str::to_owned),
            _another => None,
        }))
    }

    async fn look_at(
        &self,
        container_instance: &str,
        known: Option<String>,
    ) -> Result<Host, Box<dyn std::error::Error + Send + Sync>> {
        let cluster = container_instance.rsplit('/').nth(1).unwrap_or_default();
        let wanted = serde_json::from_value(json!({ "cluster": cluster, "containerInstances": [container_instance] }))?;
        let action = "DescribeContainerInstances";
        let found = self.aws(Service::Ecs, action, |world| world.describe_container_instances(&wanted)).await??;
        let found = &found["containerInstances"][0];
        let agent = match found["agentConnected"].as_bool() {
            Some(true) => AgentState::Connected,
            Some(false) => AgentState::Disconnected,
            None => AgentState::Unknown,
        };
        let instance = found["ec2InstanceId"].as_str().map(str::to_owned).or(known);
        let status = match &instance {
            Some(instance) => self.instance_status(instance.clone()).await?,
            None => InstanceStatus::Unknown,
        };
        if self.injected_bug() == Some(InjectedBug::TrustSilence) {
            return Ok(Host { instance, agent: AgentState::Disconnected, status: InstanceStatus::Impaired });
        }
        Ok(Host { instance, agent, status })
    }

    async fn instance_status(&self, instance: String) -> Result<InstanceStatus, NoAnswer> {
        let wanted = Selection { ids: vec![instance], ..Selection::default() };
        let status = self.ec2("DescribeInstanceStatus", |world| {
            let (found, _) = world.describe_instance_status(&wanted, true)?;
            Ok(found.first().map(|found| (found.state, found.impaired)))
        });
        Ok(match status.await? {
            Ok(Some((InstanceState::ShuttingDown | InstanceState::Terminated, _))) => InstanceStatus::Gone,
            Ok(Some((InstanceState::Pending | InstanceState::Running, true))) => InstanceStatus::Impaired,
            Ok(Some((InstanceState::Pending | InstanceState::Running, false))) => InstanceStatus::NotImpaired,
            Ok(None) => InstanceStatus::Unknown,
            Err(error) if error.code == "InvalidInstanceID.NotFound" => InstanceStatus::Gone,
            Err(error) => return Err(error.into()),
        })
    }

    pub(super) async fn end_instance(&self, trial: TrialRef, attempt: u32, instance: String) -> Executed {
        let keeps = self.injected_bug() == Some(InjectedBug::KeepDead);
        let ids = if keeps { Vec::new() } else { vec![instance] };
        let refusal = match self.ec2("TerminateInstances", |world| world.terminate_instances(&ids)).await? {
            Ok(_) => None,
            Err(_) if keeps => None,
            Err(error) if error.code == "InvalidInstanceID.NotFound" => None,
            Err(error) => Some(error.to_string()),
        };
        Ok(vec![Outcome::InstanceEnded { trial, attempt, refusal }])
    }
}
