//! Batch's calls over its SDK: it maps the fields of requests and answers.

mod definition;
mod detail;

use aws_config::SdkConfig;
use aws_sdk_batch::Client;
use aws_sdk_batch::config::Builder;
use aws_sdk_batch::config::retry::RetryConfig;
use aws_sdk_batch::types::{
    self, ArrayProperties, ContainerOverrides, EvaluateOnExit, JobDefinitionType, JobTimeout, JqState, KeyValuePair,
    KeyValuesPair, ResourceRequirement, ResourceType, RetryAction, RetryStrategy,
};
use spotsweep_control_plane::calls::{
    Batch, CallError, ComputeEnvironment, DescribeJobDefinitions, JobDefinition, JobQueue, ListJobs, ListedJob,
    NotStopped, Page, RegisterJobDefinition, StopJobs, SubmitJob,
};
use spotsweep_control_plane::event::batch_job_state::JobDetail;
use spotsweep_records::trial::{RetryOn, RetryRule};

use self::definition::{job_definition, own_tags};
use self::detail::job_detail;
use super::call_error::call_error;
use super::fields::{next, number, some};
use super::lazy::{Lazy, lazy};

/// The calls to Batch over its SDK.
#[derive(Debug)]
pub(super) struct BatchSdk(Lazy<Client>);

impl BatchSdk {
    pub(super) fn new(config: &SdkConfig) -> Self {
        Self(lazy(config, Client::new))
    }
}

impl Batch for BatchSdk {
    type Properties = types::JobDefinition;

    /// The SDK's own retries are off, because a call that timed out may have taken effect.
    async fn submit_job(&self, wanted: SubmitJob) -> Result<String, CallError> {
        let once = Builder::new().retry_config(RetryConfig::disabled());
        let pair = |(name, value)| KeyValuePair::builder().name(name).value(value).build();
        let resource = |(kind, value): (String, String)| {
            ResourceRequirement::builder().r#type(ResourceType::from(kind.as_str())).value(value).build()
        };
        let overrides = ContainerOverrides::builder()
            .set_environment(Some(wanted.variables().map(pair).collect()))
            .set_command(wanted.command)
            .set_resource_requirements(some(wanted.resources.into_iter().map(resource).collect()));
        let array = |size| ArrayProperties::builder().size(number(size)).build();
        let timeout = |seconds| JobTimeout::builder().attempt_duration_seconds(number(seconds)).build();
        let request = self
            .0
            .submit_job()
            .job_name(wanted.name)
            .job_queue(wanted.queue)
            .job_definition(wanted.definition)
            .set_array_properties(wanted.array_size.map(array))
            .retry_strategy(retry_strategy(wanted.attempts, wanted.retry_rules))
            .set_timeout(wanted.timeout_seconds.map(timeout))
            .container_overrides(overrides.build())
            .set_tags(Some(wanted.tags.into_iter().collect()))
            .propagate_tags(true);
        let submitted = request.customize().config_override(once).send().await.map_err(call_error)?;
        submitted.job_id.ok_or_else(|| CallError::unclear("SubmitJob answered without a job id"))
    }

    async fn list_jobs(&self, wanted: ListJobs) -> Result<Page<ListedJob>, CallError> {
        let filter = KeyValuesPair::builder().name("JOB_NAME").values(wanted.name).build();
        let request = self.0.list_jobs().job_queue(wanted.queue).filters(filter).set_next_token(wanted.next_token);
        let found = request.send().await.map_err(call_error)?;
        let listed = found.job_summary_list.unwrap_or_default().into_iter();
        let items = listed.filter_map(|job| {
            Some(ListedJob { id: job.job_id?, name: job.job_name.unwrap_or_default(), created_at: job.created_at })
        });
        Ok(Page { items: items.collect(), next_token: next(found.next_token) })
    }

    async fn describe_jobs(&self, ids: Vec<String>) -> Result<Vec<JobDetail>, CallError> {
        let found = self.0.describe_jobs().set_jobs(Some(ids)).send().await.map_err(call_error)?;
        let jobs = found.jobs.unwrap_or_default().into_iter().map(job_detail);
        jobs.collect::<Result<_, _>>().map_err(|error| CallError::Unclear(error.into()))
    }

    async fn describe_job_definitions(
        &self,
        wanted: DescribeJobDefinitions,
    ) -> Result<Page<JobDefinition<Self::Properties>>, CallError> {
        let request = self.0.describe_job_definitions().set_job_definitions(some(wanted.named));
        let request = request.set_job_definition_name(wanted.name).set_status(wanted.status.map(str::to_owned));
        let found = request.set_next_token(wanted.next_token).send().await.map_err(call_error)?;
        let items = found.job_definitions.unwrap_or_default().into_iter().map(job_definition).collect();
        Ok(Page { items, next_token: next(found.next_token) })
    }

    /// The SDK's own retries are off, because each try registers another revision.
    async fn register_job_definition(
        &self,
        wanted: RegisterJobDefinition<Self::Properties>,
    ) -> Result<String, CallError> {
        let once = Builder::new().retry_config(RetryConfig::disabled());
        let RegisterJobDefinition { name, image, properties: mut like } = wanted;
        if let Some(container) = &mut like.container_properties {
            container.image = Some(image);
        }
        let request = self
            .0
            .register_job_definition()
            .job_definition_name(name)
            .set_type(like.r#type.as_deref().map(JobDefinitionType::from))
            .set_container_properties(like.container_properties)
            .set_parameters(like.parameters)
            .set_retry_strategy(like.retry_strategy)
            .set_timeout(like.timeout)
            .set_scheduling_priority(like.scheduling_priority)
            .set_propagate_tags(like.propagate_tags)
            .set_platform_capabilities(like.platform_capabilities)
            .set_tags(like.tags.map(own_tags));
        let registered = request.customize().config_override(once).send().await.map_err(call_error)?;
        let arn = registered.job_definition_arn;
        arn.ok_or_else(|| CallError::unclear("RegisterJobDefinition answered without an ARN"))
    }

    async fn describe_job_queues(&self, queue: String) -> Result<Vec<JobQueue>, CallError> {
        let found = self.0.describe_job_queues().job_queues(queue).send().await.map_err(call_error)?;
        Ok(found.job_queues.unwrap_or_default().into_iter().map(job_queue).collect())
    }

    async fn describe_compute_environments(&self, named: Vec<String>) -> Result<Vec<ComputeEnvironment>, CallError> {
        let request = self.0.describe_compute_environments().set_compute_environments(Some(named));
        let found = request.send().await.map_err(call_error)?;
        Ok(found.compute_environments.unwrap_or_default().into_iter().map(compute_environment).collect())
    }

    async fn terminate_jobs(&self, wanted: StopJobs) -> Result<Vec<NotStopped>, CallError> {
        let request = self.0.terminate_jobs().set_jobs(Some(wanted.jobs)).reason(wanted.reason);
        let answer = request.send().await.map_err(call_error)?;
        let errors = answer.errors.unwrap_or_default().into_iter();
        Ok(errors.map(|error| not_stopped(error.job, error.code, error.message)).collect())
    }

    async fn cancel_jobs(&self, wanted: StopJobs) -> Result<Vec<NotStopped>, CallError> {
        let request = self.0.cancel_jobs().set_jobs(Some(wanted.jobs)).reason(wanted.reason);
        let answer = request.send().await.map_err(call_error)?;
        let errors = answer.errors.unwrap_or_default().into_iter();
        Ok(errors.map(|error| not_stopped(error.job, error.code, error.message)).collect())
    }
}

fn job_queue(found: types::JobQueueDetail) -> JobQueue {
    let order = found.compute_environment_order.unwrap_or_default().into_iter();
    JobQueue {
        state: found.state.as_ref().map(JqState::as_str).unwrap_or_default().to_owned(),
        environments: order.filter_map(|one| one.compute_environment).collect(),
    }
}

fn compute_environment(found: types::ComputeEnvironmentDetail) -> ComputeEnvironment {
    let resources = found.compute_resources.map(|found| (found.instance_types, found.tags)).unwrap_or_default();
    ComputeEnvironment {
        instance_types: resources.0.unwrap_or_default(),
        instance_tags: resources.1.unwrap_or_default().into_iter().collect(),
    }
}

fn not_stopped(job: Option<String>, code: Option<String>, message: Option<String>) -> NotStopped {
    let [job, code, message] = [job, code, message].map(Option::unwrap_or_default);
    NotStopped { job, code, message }
}

fn retry_strategy(attempts: u8, rules: Vec<RetryRule>) -> RetryStrategy {
    let rules = rules.into_iter().map(|RetryRule { on, pattern, retries }| {
        let rule = EvaluateOnExit::builder().action(if retries { RetryAction::Retry } else { RetryAction::Exit });
        match on {
            RetryOn::StatusReason => rule.on_status_reason(pattern),
            RetryOn::ExitCode => rule.on_exit_code(pattern),
            RetryOn::Reason => rule.on_reason(pattern),
        }
        .build()
    });
    RetryStrategy::builder().attempts(attempts.into()).set_evaluate_on_exit(Some(rules.collect())).build()
}
