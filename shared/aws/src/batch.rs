//! AWS Batch: look up, submit once, find again, describe, terminate.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_batch::Client;
use aws_sdk_batch::config::retry::RetryConfig;
use aws_sdk_batch::error::SdkError;
use aws_sdk_batch::operation::describe_job_definitions::DescribeJobDefinitionsError;
use aws_sdk_batch::operation::submit_job::SubmitJobError;
use aws_sdk_batch::types::{
    ArrayProperties, ContainerOverrides, EvaluateOnExit, JobDefinition, JobQueueDetail, JobTimeout, JqState,
    KeyValuePair, KeyValuesPair, ResourceRequirement, ResourceType, RetryAction, RetryStrategy,
};
use futures_util::FutureExt;

use super::ebs;
use super::executor::{Executed, Service, Taken};
use super::lazy::{Lazy, lazy};
use super::origin::{self, Resolved};
use spotsweep_control_plane::command::{Command, Submission};
use spotsweep_control_plane::event;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::sweep::Prepared;
use spotsweep_control_plane::trial::{RetryOn, RetryRule, retry_rules};
use spotsweep_protocol::ids::{DescribedJob, JobName, SweepId};
use spotsweep_protocol::stop::StopReason;

/// What stands before the name in a job definition's ARN.
const ARN_RESOURCE: &str = ":job-definition/";

/// Ids that one DescribeJobs takes (fact 19).
const DESCRIBE_IDS: usize = 100;

/// Throttled SubmitJob calls are repeated this often; a throttled call has had no effect.
const THROTTLED_TRIES: u32 = 5;

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

/// Looks up what a sweep is to run on and with.
pub fn targets(config: &SdkConfig) -> impl Service + use<> {
    Targets { batch: lazy(config, Client::new), ec2: lazy(config, ebs::client) }
}

#[derive(Debug)]
struct Targets {
    batch: Lazy<Client>,
    ec2: Lazy<aws_sdk_ec2::Client>,
}

impl Service for Targets {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::CheckTarget { sweep, prepared } => {
                Ok(check_target(&self.batch, &self.ec2, sweep, prepared).boxed())
            }
            other => Err(Box::new(other)),
        }
    }
}

/// Whether everything is there that a sweep is to run on and with.
async fn check_target(client: &Client, ec2: &aws_sdk_ec2::Client, sweep: SweepId, mut prepared: Prepared) -> Executed {
    let plan = &prepared.plan;
    let (definition, queue, workspace) = tokio::try_join!(
        active_definition(client, &plan.definition),
        valid_queue(client, &plan.queue),
        origin::resolve(ec2, plan.workspace.as_ref()),
    )?;
    let mut problems = Vec::new();
    match definition.and_then(|found| found.job_definition_arn) {
        Some(pinned) => prepared.plan.definition = pinned,
        None => {
            let message = format!("there is no active job definition {:?} in this account and region", plan.definition);
            let help = "register it in AWS Batch, or name another one under `spotsweep: {job_definition: …}`, as name, \
                name:revision or ARN";
            problems.push(prepared.file.problem_at("job_definition", message, help));
        }
    }
    let plan = &prepared.plan;
    let queue_problem = match &queue {
        None => Some(format!("there is no job queue {:?}", plan.queue)),
        Some(found) if found.state() != Some(&JqState::Enabled) => {
            Some(format!("job queue {:?} is disabled", plan.queue))
        }
        Some(_) => None,
    };
    if let Some(message) = queue_problem {
        let help = "create or enable it in AWS Batch, or name another one under `spotsweep: {queue: …}`";
        problems.push(prepared.file.problem_at("queue", message, help));
    }
    match workspace {
        Resolved::Plan(workspace) => prepared.plan.workspace = workspace,
        Resolved::Problem { message, help } => {
            problems.push(prepared.file.problem_at("workspace", message, help));
        }
    }
    Ok(vec![Outcome::TargetChecked { sweep, prepared, problems }])
}

/// The definition, at its newest active revision where none is named. DescribeJobDefinitions takes revisions, or a name
/// with a status, and no mixture of both (Batch API reference).
async fn active_definition(
    client: &Client,
    named: &str,
) -> Result<Option<JobDefinition>, Box<dyn std::error::Error + Send + Sync>> {
    let short = named.rsplit_once(ARN_RESOURCE).filter(|_| named.starts_with("arn:")).map_or(named, |(_, short)| short);
    let request = client.describe_job_definitions();
    let request = match short.rsplit_once(':') {
        // By its ARN: another region or account is then refused, or not found.
        Some(_revision) => request.job_definitions(named),
        None => request.job_definition_name(short).status("ACTIVE"),
    };
    let found = match request.into_paginator().items().send().collect::<Result<Vec<_>, _>>().await {
        // No name that Batch takes is no definition either.
        Err(error) if error.as_service_error().is_some_and(DescribeJobDefinitionsError::is_client_exception) => {
            return Ok(None);
        }
        found => found?,
    };
    let active = found.into_iter().filter(|definition| definition.status() == Some("ACTIVE"));
    let is_meant = |definition: &JobDefinition| {
        let arn = definition.job_definition_arn().unwrap_or_default();
        !named.starts_with("arn:") || arn == named || arn.rsplit_once(':').is_some_and(|(latest, _)| latest == named)
    };
    Ok(active.filter(is_meant).max_by_key(|definition| definition.revision()))
}

async fn valid_queue(
    client: &Client,
    name: &str,
) -> Result<Option<JobQueueDetail>, Box<dyn std::error::Error + Send + Sync>> {
    let found = client.describe_job_queues().job_queues(name).send().await?;
    Ok(found.job_queues.unwrap_or_default().into_iter().next())
}

/// SubmitJob without the SDK's own retries: a call that timed out may have taken effect, and there
/// is no token to tell (fact 1). What is unclear is an error, and is looked up before the next try.
async fn submit(client: &Client, submission: Submission) -> Executed {
    let name = submission.name.clone();
    for attempt in 1..=THROTTLED_TRIES {
        let once = aws_sdk_batch::config::Builder::new().retry_config(RetryConfig::disabled());
        let answer = request(client, &submission).customize().config_override(once).send().await;
        let error = match answer {
            Ok(answer) => {
                let job = answer.job_id.ok_or("SubmitJob answered without a job id")?;
                return Ok(vec![Outcome::PartSubmitted { name, job }]);
            }
            Err(error) => error,
        };
        match &error {
            SdkError::ServiceError(service)
                if is_throttle(service.raw().status().as_u16()) && attempt < THROTTLED_TRIES =>
            {
                tokio::time::sleep(Duration::from_millis(200 << attempt)).await;
            }
            SdkError::ServiceError(service) => match service.err() {
                SubmitJobError::ClientException(refusal) if !is_throttle(service.raw().status().as_u16()) => {
                    let message = refusal.message().unwrap_or("no reason given").to_owned();
                    return Ok(vec![Outcome::PartRefused { name, message }]);
                }
                _ => return Err(error.into()),
            },
            _ => return Err(error.into()),
        }
    }
    Err("SubmitJob is throttled".into())
}

fn is_throttle(status: u16) -> bool {
    status == 429
}

fn request(
    client: &Client,
    submission: &Submission,
) -> aws_sdk_batch::operation::submit_job::builders::SubmitJobFluentBuilder {
    let pair = |(name, value): &(String, String)| KeyValuePair::builder().name(name).value(value).build();
    let resource = |(kind, value): &(String, String)| {
        ResourceRequirement::builder().r#type(ResourceType::from(kind.as_str())).value(value).build()
    };
    let overrides = ContainerOverrides::builder()
        .set_command(submission.command.clone())
        .set_environment(Some(submission.environment.iter().map(pair).collect()))
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

async fn terminate(client: &Client, sweep: SweepId, jobs: Vec<String>, reason: StopReason) -> Executed {
    for job in jobs {
        client.terminate_job().job_id(job).reason(reason.for_batch()).send().await?;
    }
    Ok(vec![Outcome::JobsTerminated(sweep)])
}

/// Of an array job CancelJob cancels the children that have not begun
/// (<https://docs.aws.amazon.com/batch/latest/APIReference/API_CancelJob.html>).
async fn cancel(client: &Client, sweep: SweepId, jobs: Vec<String>, reason: StopReason) -> Executed {
    for job in jobs {
        client.cancel_job().job_id(job).reason(reason.for_batch()).send().await?;
    }
    Ok(vec![Outcome::WaitingCancelled(sweep)])
}

async fn describe(client: &Client, jobs: Vec<DescribedJob>) -> Executed {
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

/// The SDK's JobDetail as the event's: both are the same document (fact 12).
fn job_detail(
    job: aws_sdk_batch::types::JobDetail,
) -> Result<event::batch_job_state::JobDetail, Box<dyn std::error::Error + Send + Sync>> {
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
