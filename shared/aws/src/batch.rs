//! AWS Batch: submit once, find again, describe, terminate.

use std::error::Error;

use aws_config::SdkConfig;
use aws_sdk_batch::Client;
use aws_sdk_batch::config::retry::RetryConfig;
use aws_sdk_batch::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_batch::operation::submit_job::SubmitJobError;
use aws_sdk_batch::types::{
    ArrayProperties, ContainerOverrides, EvaluateOnExit, JobTimeout, KeyValuePair, KeyValuesPair, ResourceRequirement,
    ResourceType, RetryAction, RetryStrategy,
};
use futures_util::FutureExt;

use super::lazy::{Lazy, lazy};
use spotsweep_control_plane::command::{Command, STOPPED_IDS, Submission};
use spotsweep_control_plane::event;
use spotsweep_control_plane::execute::{Executed, Service, Taken};
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::throttle::{Limit, submit_pauses};
use spotsweep_control_plane::trial::{RetryOn, RetryRule, retry_rules};
use spotsweep_protocol::ids::{DescribedJob, JobName, SweepId};
use spotsweep_protocol::stop::StopReason;

/// Ids that one DescribeJobs takes (fact 19).
const DESCRIBE_IDS: usize = 100;

/// Submits, finds, describes and ends jobs.
pub fn batch(config: &SdkConfig) -> impl Service + use<> {
    Batch(lazy(config, Client::new))
}

#[derive(Debug)]
struct Batch(Lazy<Client>);

impl Service for Batch {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        let client = &self.0;
        Ok(match *command {
            Command::SubmitPart(submission) => submit(client, submission).boxed(),
            Command::FindPart { name, queue } => find(client, name, queue).boxed(),
            Command::TerminateJobs { sweep, jobs, reason } => terminate(client, sweep, jobs, reason).boxed(),
            Command::CancelWaiting { sweep, jobs, reason } => cancel(client, sweep, jobs, reason).boxed(),
            Command::DescribeJobs(jobs) => describe(client, jobs).boxed(),
            other => return Err(Box::new(other)),
        })
    }
}

/// SubmitJob without the SDK's own retries: a call that timed out may have taken effect, and there
/// is no token to tell (fact 1). What is unclear is an error, and is looked up before the next try.
async fn submit(client: &Client, submission: Submission) -> Executed {
    let name = submission.name.clone();
    let mut pauses = submit_pauses();
    loop {
        let once = aws_sdk_batch::config::Builder::new().retry_config(RetryConfig::disabled());
        let error = match request(client, &submission).customize().config_override(once).send().await {
            Ok(answer) => {
                let job = answer.job_id.ok_or("SubmitJob answered without a job id")?;
                return Ok(vec![Outcome::PartSubmitted { name, job }]);
            }
            Err(error) => error,
        };
        match &error {
            SdkError::ServiceError(service) if is_throttled(service.raw().status().as_u16(), error.code()) => {
                match pauses.next() {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => return Err(error.into()),
                }
            }
            SdkError::ServiceError(service) => match service.err() {
                SubmitJobError::ClientException(refusal) => {
                    let message = refusal.message().unwrap_or("no reason given").to_owned();
                    return Ok(vec![Outcome::PartRefused { name, message }]);
                }
                _ => return Err(error.into()),
            },
            _ => return Err(error.into()),
        }
    }
}

fn is_throttled(status: u16, code: Option<&str>) -> bool {
    status == 429 || code.and_then(Limit::of).is_some()
}

fn request(
    client: &Client,
    submission: &Submission,
) -> aws_sdk_batch::operation::submit_job::builders::SubmitJobFluentBuilder {
    let pair = |(name, value)| KeyValuePair::builder().name(name).value(value).build();
    let resource = |(kind, value): &(String, String)| {
        ResourceRequirement::builder().r#type(ResourceType::from(kind.as_str())).value(value).build()
    };
    let overrides = ContainerOverrides::builder()
        .set_command(submission.command.clone())
        .set_environment(Some(submission.variables().map(pair).collect()))
        .set_resource_requirements(
            (!submission.resources.is_empty()).then(|| submission.resources.iter().map(resource).collect()),
        )
        .build();
    let array = || ArrayProperties::builder().size(i32::try_from(submission.trials).unwrap_or(i32::MAX)).build();
    let tags = submission.tags.iter().cloned().collect();
    client
        .submit_job()
        .job_name(submission.name.to_string())
        .job_queue(&submission.queue)
        .job_definition(&submission.definition)
        .set_array_properties((submission.trials > 1).then(array))
        .retry_strategy(retry_strategy(submission.attempts))
        .set_timeout(submission.timeout_seconds.map(|seconds| {
            JobTimeout::builder().attempt_duration_seconds(i32::try_from(seconds).unwrap_or(i32::MAX)).build()
        }))
        .container_overrides(overrides)
        .set_tags(Some(tags))
        .propagate_tags(true)
}

fn retry_strategy(attempts: u8) -> RetryStrategy {
    let rules = retry_rules().into_iter().map(|RetryRule { on, pattern, retries }| {
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

/// ListJobs by name: the filter ignores case, and the job's state does not matter to it (fact 1).
async fn find(client: &Client, name: JobName, queue: String) -> Executed {
    let wanted = name.to_string();
    let filter = KeyValuesPair::builder().name("JOB_NAME").values(&wanted).build();
    let mut jobs = client.list_jobs().job_queue(queue).filters(filter).into_paginator().items().send();
    let mut found: Vec<(Option<i64>, String)> = Vec::new();
    while let Some(job) = jobs.next().await {
        let job = job?;
        if job.job_name() == Some(wanted.as_str()) {
            found.extend(job.job_id.map(|id| (job.created_at, id)));
        }
    }
    Ok(match found.into_iter().min() {
        Some((_, job)) => vec![Outcome::PartSubmitted { name, job }],
        None => vec![Outcome::PartNotFound { name }],
    })
}

/// An answer of 200 may have errors of single jobs
/// (<https://docs.aws.amazon.com/batch/latest/APIReference/API_TerminateJobs.html>). Each job may be ended again, so the
/// whole step is repeated then.
async fn terminate(client: &Client, sweep: SweepId, jobs: Vec<String>, reason: StopReason) -> Executed {
    for some in jobs.chunks(STOPPED_IDS) {
        let request = client.terminate_jobs().set_jobs(Some(some.to_vec())).reason(reason.for_batch());
        if let Some(failed) = request.send().await?.errors().first() {
            return Err(not_stopped(failed.job(), failed.code(), failed.message()));
        }
    }
    Ok(vec![Outcome::JobsTerminated(sweep)])
}

/// Of an array job CancelJobs cancels the children that have not begun
/// (<https://docs.aws.amazon.com/batch/latest/APIReference/API_CancelJobs.html>). Errors as for [`terminate`].
async fn cancel(client: &Client, sweep: SweepId, jobs: Vec<String>, reason: StopReason) -> Executed {
    for some in jobs.chunks(STOPPED_IDS) {
        let request = client.cancel_jobs().set_jobs(Some(some.to_vec())).reason(reason.for_batch());
        if let Some(failed) = request.send().await?.errors().first() {
            return Err(not_stopped(failed.job(), failed.code(), failed.message()));
        }
    }
    Ok(vec![Outcome::WaitingCancelled(sweep)])
}

fn not_stopped(job: Option<&str>, code: Option<&str>, message: Option<&str>) -> Box<dyn Error + Send + Sync> {
    let [job, code, message] = [job, code, message].map(Option::unwrap_or_default);
    format!("job {job} was not ended: {code}: {message}").into()
}

pub(super) async fn describe(client: &Client, jobs: Vec<DescribedJob>) -> Executed {
    let mut outcomes = Vec::new();
    for some in jobs.chunks(DESCRIBE_IDS) {
        let ids = some.iter().map(|wanted| wanted.job.to_string()).collect();
        let answer = client.describe_jobs().set_jobs(Some(ids)).send().await?;
        let found = answer.jobs.unwrap_or_default();
        for wanted in some {
            let id = wanted.job.to_string();
            if !found.iter().any(|job| job.job_id() == Some(id.as_str())) {
                outcomes.push(Outcome::JobUnknown(wanted.clone()));
            }
        }
        for job in found {
            outcomes.extend(event::batch_job_state::job(job_detail(job)?)?.map(Outcome::JobDescribed));
        }
    }
    Ok(outcomes)
}

/// ARN of the ECS container instance on which Batch has placed an attempt of a trial, while the attempt is under way.
#[cfg(feature = "ecs")]
pub(super) async fn host(
    client: &Client,
    job: DescribedJob,
    attempt: u32,
) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
    let found = describe(client, vec![job]).await?;
    Ok(found.iter().find_map(|outcome| match outcome {
        Outcome::JobDescribed(event::Job::Trial(job)) => job.host(attempt).map(str::to_owned),
        _another => None,
    }))
}

/// The SDK's JobDetail as the event's: both are the same document (fact 12).
fn job_detail(
    job: aws_sdk_batch::types::JobDetail,
) -> Result<event::batch_job_state::JobDetail, Box<dyn Error + Send + Sync>> {
    use event::batch_job_state::{ArrayProperties, AttemptDetail, Container, EcsProperties, JobDetail, TaskDetail};
    let attempt = |found: aws_sdk_batch::types::AttemptDetail| AttemptDetail {
        container: found.container.map(container).unwrap_or_default(),
        task_properties: found
            .task_properties
            .unwrap_or_default()
            .into_iter()
            .map(|task| TaskDetail {
                container_instance_arn: task.container_instance_arn,
                containers: task.containers.unwrap_or_default().into_iter().map(task_container).collect(),
            })
            .collect(),
        started_at: found.started_at,
        stopped_at: found.stopped_at,
        status_reason: found.status_reason,
    };
    let described = |task: aws_sdk_batch::types::EcsTaskDetails| TaskDetail {
        container_instance_arn: task.container_instance_arn,
        containers: task.containers.unwrap_or_default().into_iter().map(described_container).collect(),
    };
    let tasks = job.ecs_properties.and_then(|properties| properties.task_properties).unwrap_or_default();
    let status = job.status.as_ref().map(|status| status.as_str().to_owned()).unwrap_or_default();
    Ok(JobDetail {
        job_name: job.job_name.unwrap_or_default(),
        job_id: job.job_id.unwrap_or_default(),
        is_cancelled: job.is_cancelled,
        is_terminated: job.is_terminated,
        status: serde_json::from_value(status.into())?,
        status_reason: job.status_reason,
        started_at: job.started_at,
        attempts: job.attempts.unwrap_or_default().into_iter().map(attempt).collect(),
        container: job
            .container
            .map(|found| Container {
                container_instance_arn: found.container_instance_arn,
                exit_code: found.exit_code,
                reason: found.reason,
                log_stream_name: found.log_stream_name,
                ..Container::default()
            })
            .unwrap_or_default(),
        array_properties: job
            .array_properties
            .map(|array| ArrayProperties { size: array.size.and_then(|size| u32::try_from(size).ok()) }),
        ecs_properties: EcsProperties { task_properties: tasks.into_iter().map(described).collect() },
    })
}

fn container(found: aws_sdk_batch::types::AttemptContainerDetail) -> event::batch_job_state::Container {
    event::batch_job_state::Container {
        container_instance_arn: found.container_instance_arn,
        exit_code: found.exit_code,
        reason: found.reason,
        log_stream_name: found.log_stream_name,
        ..Default::default()
    }
}

fn task_container(found: aws_sdk_batch::types::AttemptTaskContainerDetails) -> event::batch_job_state::Container {
    event::batch_job_state::Container {
        name: found.name,
        exit_code: found.exit_code,
        reason: found.reason,
        log_stream_name: found.log_stream_name,
        ..Default::default()
    }
}

fn described_container(found: aws_sdk_batch::types::TaskContainerDetails) -> event::batch_job_state::Container {
    event::batch_job_state::Container {
        name: found.name,
        essential: found.essential,
        exit_code: found.exit_code,
        reason: found.reason,
        log_stream_name: found.log_stream_name,
        ..Default::default()
    }
}
