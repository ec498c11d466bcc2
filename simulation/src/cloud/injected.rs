//! Changes that an injected bug makes to the calls of commands and to their outcomes.

use spotsweep_control_plane::calls::{
    AttachVolume, Attachment, Batch, CallError, ComputeEnvironment, ContainerInstance, CreateSnapshot, CreateVolume,
    DescribeInstanceTypes, DescribeJobDefinitions, DescribeSnapshots, DescribeSpotPrices, DescribeVolumes, Ec2, Ecs,
    InCluster, Instance, InstanceStatus, InstanceTypeInfo, JobDefinition, JobQueue, ListJobs, ListedJob, NotStopped,
    Page, RegisterJobDefinition, Snapshot, SpotPriceRow, StopJobs, SubmitJob, Tag, TaskContainer, Volume,
};
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::event::batch_job_state::JobDetail;
use spotsweep_control_plane::execute::Services;
use spotsweep_control_plane::handle::{ExecuteError, Executor};
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_records::trial::{AgentState, InstanceStatus as InstanceHealth};
use spotsweep_records::workspace::{Fact, OPERATION_TAG, TRIAL_TAG, is_denied};
use spotsweep_world::ebs::SnapshotState;

use super::Cloud;
use crate::injected_bug::InjectedBug;

/// Calls with an injected bug.
#[derive(Debug, Clone, Copy)]
pub(super) struct WithBug<'a, C> {
    pub(super) calls: C,
    pub(super) cloud: &'a Cloud,
}

impl<C> WithBug<'_, C> {
    fn has(&self, bug: InjectedBug) -> bool {
        self.cloud.injected_bug() == Some(bug)
    }

    /// Applies the bugs of the creation of a volume from a snapshot.
    fn change_copy(&self, from: &mut String, tags: &[Tag]) {
        let mut world = self.cloud.world();
        if self.has(InjectedBug::DeleteSourceEarly) {
            let source = world.snapshot_of(from).map(|snapshot| snapshot.volume.clone()).unwrap_or_default();
            // If the call is repeated, the volume is already deleted.
            let _ = world.delete_volume(&source);
        }
        if self.has(InjectedBug::CopyOldSnapshot) {
            let trial = tags.iter().find(|(key, _)| key == TRIAL_TAG).map(|(_, index)| index);
            let ours = world.snapshots().filter(|snapshot| {
                snapshot.tags.0.get(TRIAL_TAG) == trial && snapshot.state == SnapshotState::Completed
            });
            if let Some(oldest) = ours.min_by_key(|snapshot| snapshot.started_at) {
                from.clone_from(&oldest.id);
            }
        }
    }

    /// Turns a denied deletion into a success if the bug says so.
    fn deleted(&self, answer: Result<(), CallError>) -> Result<(), CallError> {
        match answer {
            Err(error) if self.has(InjectedBug::ForgetDenied) && error.refusal().is_some_and(is_denied) => Ok(()),
            answer => answer,
        }
    }
}

impl<C: Ec2> WithBug<'_, C> {
    /// The oldest volume of the trial whose operation is looked up, even if the volume is being deleted.
    async fn oldest_of_trial(&self, mut wanted: DescribeVolumes) -> Result<Page<Volume>, CallError> {
        for filter in &mut wanted.filters {
            // The name of an operation begins with the name of its trial.
            filter.values = filter
                .values
                .iter()
                .map(|name| match name.rsplit_once('/') {
                    Some((trial, _operation)) => format!("{trial}/*"),
                    None => name.clone(),
                })
                .collect();
        }
        let mut page = self.calls.describe_volumes(wanted).await?;
        let made_at = |volume: &Volume| self.cloud.world().volume(&volume.id).map(|found| found.created_at);
        page.items.sort_by_key(made_at);
        page.items.truncate(1);
        Ok(page)
    }
}

impl<C: Ec2> Ec2 for WithBug<'_, C> {
    async fn create_volume(&self, mut wanted: CreateVolume) -> Result<Volume, CallError> {
        if let Some(from) = &mut wanted.snapshot {
            self.change_copy(from, &wanted.tags);
        }
        if self.has(InjectedBug::KeepRate) {
            let is_another_try = wanted.snapshot.is_some() && wanted.initialization_rate.is_none();
            if is_another_try && self.cloud.world().trouble().refuse_initialization_rate {
                return Err(CallError::answered(400, "ResourceLimitExceeded".to_owned(), String::new()));
            }
        }
        self.calls.create_volume(wanted).await
    }

    async fn describe_volumes(&self, wanted: DescribeVolumes) -> Result<Page<Volume>, CallError> {
        if self.has(InjectedBug::AskAgainAndAgain) && !wanted.ids.is_empty() {
            for _ in 0..50 {
                let _ = self.calls.describe_volumes(wanted.clone()).await;
            }
        }
        let is_look_up = wanted.filters.iter().any(|filter| filter.name.strip_prefix("tag:") == Some(OPERATION_TAG));
        if is_look_up && self.has(InjectedBug::TakeOldest) {
            return self.oldest_of_trial(wanted).await;
        }
        let is_skipped = is_look_up && self.has(InjectedBug::SkipLookUp);
        let found = self.calls.describe_volumes(wanted).await?;
        Ok(if is_skipped { Page { items: Vec::new(), next_token: None } } else { found })
    }

    async fn attach_volume(&self, wanted: AttachVolume) -> Result<Attachment, CallError> {
        self.calls.attach_volume(wanted).await
    }

    async fn detach_volume(&self, volume: String, force: bool) -> Result<Attachment, CallError> {
        self.calls.detach_volume(volume, force).await
    }

    async fn delete_volume(&self, volume: String) -> Result<(), CallError> {
        if self.has(InjectedBug::KeepEverything) {
            return Ok(());
        }
        self.deleted(self.calls.delete_volume(volume).await)
    }

    async fn create_snapshot(&self, wanted: CreateSnapshot) -> Result<Snapshot, CallError> {
        self.calls.create_snapshot(wanted).await
    }

    async fn describe_snapshots(&self, wanted: DescribeSnapshots) -> Result<Page<Snapshot>, CallError> {
        let is_skipped = self.has(InjectedBug::SkipLookUp) && wanted.own;
        let found = self.calls.describe_snapshots(wanted).await?;
        Ok(if is_skipped { Page { items: Vec::new(), next_token: None } } else { found })
    }

    async fn delete_snapshot(&self, snapshot: String) -> Result<(), CallError> {
        if self.has(InjectedBug::KeepEverything) {
            return Ok(());
        }
        self.deleted(self.calls.delete_snapshot(snapshot).await)
    }

    async fn describe_instance_status(&self, instance: String) -> Result<Vec<InstanceStatus>, CallError> {
        self.calls.describe_instance_status(instance).await
    }

    async fn describe_spot_price_history(&self, wanted: DescribeSpotPrices) -> Result<Page<SpotPriceRow>, CallError> {
        self.calls.describe_spot_price_history(wanted).await
    }

    async fn describe_instance_types(
        &self,
        wanted: DescribeInstanceTypes,
    ) -> Result<Page<InstanceTypeInfo>, CallError> {
        self.calls.describe_instance_types(wanted).await
    }

    async fn terminate_instances(&self, instance: String) -> Result<(), CallError> {
        if self.has(InjectedBug::KeepDead) {
            return Ok(());
        }
        self.calls.terminate_instances(instance).await
    }

    async fn describe_instances(&self, instance: String) -> Result<Vec<Instance>, CallError> {
        self.calls.describe_instances(instance).await
    }
}

impl<C: Batch> Batch for WithBug<'_, C> {
    type Properties = C::Properties;

    async fn submit_job(&self, wanted: SubmitJob) -> Result<String, CallError> {
        self.calls.submit_job(wanted).await
    }

    async fn list_jobs(&self, wanted: ListJobs) -> Result<Page<ListedJob>, CallError> {
        let mut page = self.calls.list_jobs(wanted).await?;
        if self.has(InjectedBug::OverlookJobs) {
            page.items.clear();
        }
        Ok(page)
    }

    async fn describe_jobs(&self, ids: Vec<String>) -> Result<Vec<JobDetail>, CallError> {
        self.calls.describe_jobs(ids).await
    }

    async fn describe_job_definitions(
        &self,
        wanted: DescribeJobDefinitions,
    ) -> Result<Page<JobDefinition<Self::Properties>>, CallError> {
        self.calls.describe_job_definitions(wanted).await
    }

    async fn register_job_definition(
        &self,
        wanted: RegisterJobDefinition<Self::Properties>,
    ) -> Result<String, CallError> {
        self.calls.register_job_definition(wanted).await
    }

    async fn describe_job_queues(&self, queue: String) -> Result<Vec<JobQueue>, CallError> {
        self.calls.describe_job_queues(queue).await
    }

    async fn describe_compute_environments(&self, named: Vec<String>) -> Result<Vec<ComputeEnvironment>, CallError> {
        self.calls.describe_compute_environments(named).await
    }

    async fn terminate_jobs(&self, wanted: StopJobs) -> Result<Vec<NotStopped>, CallError> {
        self.calls.terminate_jobs(wanted).await
    }

    async fn cancel_jobs(&self, wanted: StopJobs) -> Result<Vec<NotStopped>, CallError> {
        self.calls.cancel_jobs(wanted).await
    }
}

impl<C: Ecs> Ecs for WithBug<'_, C> {
    async fn describe_container_instances(&self, wanted: InCluster) -> Result<Vec<ContainerInstance>, CallError> {
        self.calls.describe_container_instances(wanted).await
    }

    async fn update_container_instances_state(
        &self,
        wanted: InCluster,
        status: &'static str,
    ) -> Result<Vec<Option<String>>, CallError> {
        if self.has(InjectedBug::KeepUnfit) {
            return Ok(Vec::new());
        }
        self.calls.update_container_instances_state(wanted, status).await
    }

    async fn describe_tasks(&self, wanted: InCluster) -> Result<Vec<TaskContainer>, CallError> {
        self.calls.describe_tasks(wanted).await
    }
}

/// Commands whose outcomes an injected bug misreads.
#[derive(Debug)]
pub(super) struct Misread<'a> {
    pub(super) services: Services<'a>,
    pub(super) bug: Option<InjectedBug>,
}

impl Executor for Misread<'_> {
    async fn execute(&self, command: Command) -> Result<Vec<Outcome>, ExecuteError> {
        let mut outcomes = self.services.execute(command).await?;
        if self.bug == Some(InjectedBug::LoseIds) {
            outcomes
                .retain(|outcome| !matches!(outcome, Outcome::Workspace(_, Fact::Volume { operation: Some(_), .. })));
        }
        outcomes.iter_mut().for_each(|outcome| self.misread(outcome));
        Ok(outcomes)
    }
}

impl Misread<'_> {
    fn misread(&self, outcome: &mut Outcome) {
        match (self.bug, outcome) {
            (Some(InjectedBug::TakeAllForPassing), Outcome::Workspace(_, Fact::Refused(refusal))) => {
                refusal.lasts = false;
            }
            (Some(InjectedBug::TakeAllForLasting), Outcome::Workspace(_, Fact::Refused(refusal))) => {
                refusal.lasts = true;
            }
            (Some(InjectedBug::TrustSilence), Outcome::InstanceChecked { host: Some(host), .. }) => {
                (host.agent, host.status) = (AgentState::Disconnected, InstanceHealth::Impaired);
            }
            (Some(InjectedBug::DropPages), Outcome::PagesRead { trials, .. }) => {
                *trials = trials.iter().take(trials.len().max(2) - 1).cloned().collect();
            }
            _as_it_is => {}
        }
    }
}
