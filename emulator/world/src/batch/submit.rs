//! The call SubmitJob, with the limits of facts 18 and 19.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::container::{Container, ContainerOverrides};
use super::job::{Job, Parent, Run};
use super::{Definition, RetryStrategy};
use crate::throttle::SUBMIT_JOB;
use crate::{ApiError, Service, Timer, World};

const LONGEST_NAME: usize = 128;
const ARRAY_SIZES: std::ops::RangeInclusive<usize> = 2..=10_000;
const LONGEST_OVERRIDES: usize = 8192;
const SHORTEST_TIMEOUT_SECONDS: u64 = 60;
const MOST_TAGS: usize = 50;
const LONGEST_TAG_KEY: usize = 128;
const LONGEST_TAG_VALUE: usize = 256;
/// Most bytes in a SubmitJob request (fact 18).
pub const LARGEST_PAYLOAD: usize = 30 * 1024;

/// The parameters of SubmitJob.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubmitJob {
    /// At most 128 letters, digits, `-` and `_`.
    #[serde(default)]
    pub job_name: String,
    /// Name or ARN.
    #[serde(default)]
    pub job_queue: String,
    /// `name`, `name:revision` or ARN.
    #[serde(default)]
    pub job_definition: String,
    /// The size of an array job; absent for a plain job.
    pub array_properties: Option<ArrayProperties>,
    /// Changes to the definition's container.
    pub container_overrides: Option<ContainerOverrides>,
    /// Replaces the retry strategy of the definition.
    pub retry_strategy: Option<RetryStrategy>,
    /// Replaces the timeout of the definition.
    pub timeout: Option<JobTimeout>,
    /// Values of `Ref::` placeholders.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// Tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Whether the ECS task gets the tags; the definition's value if absent. It is only shown as it was given, because
    /// no tasks are emulated.
    pub propagate_tags: Option<bool>,
}

/// The size of an array job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayProperties {
    /// Number of children, 2 to 10 000.
    pub size: Option<usize>,
}

/// The timeout of each attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobTimeout {
    /// Seconds from RUNNING on, at least 60.
    pub attempt_duration_seconds: u64,
}

impl JobTimeout {
    pub(super) fn checked_seconds(self) -> Result<u64, ApiError> {
        if self.attempt_duration_seconds < SHORTEST_TIMEOUT_SECONDS {
            let message =
                "Error executing request, Exception : Timeout attemptDurationSeconds must be at least 60 seconds";
            return Err(ApiError::client(message));
        }
        Ok(self.attempt_duration_seconds)
    }
}

impl World {
    /// Accepts a job or an array job, and returns its name, id and ARN.
    ///
    /// There is no client token, so the same request twice makes two jobs (fact 1).
    ///
    /// # Errors
    /// `ClientException` for what AWS refuses, `TooManyRequestsException` beyond 50 a second.
    pub fn submit_job(&mut self, request: SubmitJob) -> Result<Value, ApiError> {
        if !self.batch.submissions.take(SUBMIT_JOB, self.now) {
            return Err(ApiError::throttled(Service::Batch));
        }
        check_tags(&request.tags)?;
        check_name("Job name", &request.job_name)?;
        let size = request.array_properties.and_then(|array| array.size);
        if size.is_some_and(|size| !ARRAY_SIZES.contains(&size)) {
            return Err(ApiError::client(
                "Error executing request, Exception : Array size must be between 2 and 10000",
            ));
        }
        let queue = self.queue_named(&request.job_queue)?;
        let definition = self.definition(&request.job_definition)?;
        let job = new_job(self.now, queue, definition, size, request)?;
        Ok(self.accept(job))
    }

    fn accept(&mut self, mut job: Job) -> Value {
        job.id = self.ids.uuid();
        let arn = self.arn("batch", &format!("job/{}", job.id));
        let answer = json!({"jobName": job.name, "jobId": job.id, "jobArn": arn});
        let at = self.batch.jobs.len();
        self.batch.by_id.insert(job.id.clone(), at);
        self.batch.jobs.push(job);
        // The job is SUBMITTED until the scheduler has looked at it. There is no event for that state (fact 3).
        self.after(Duration::ZERO, Timer::Evaluate { job: at });
        answer
    }

    fn queue_named(&self, named: &str) -> Result<String, ApiError> {
        let prefix = self.arn("batch", "job-queue/");
        let name = named.strip_prefix(&prefix).unwrap_or(named);
        match self.batch.queues.get(name) {
            None => Err(ApiError::client(format!("JobQueue {named} not found."))),
            Some(queue) if !queue.enabled => Err(ApiError::client(format!(
                "Error executing request, Exception : JobQueue {name} is not in ENABLED state"
            ))),
            Some(_) => Ok(name.to_owned()),
        }
    }
}

fn new_job(
    created_at: jiff::Timestamp,
    queue: String,
    definition: &Definition,
    size: Option<usize>,
    request: SubmitJob,
) -> Result<Job, ApiError> {
    let overrides = request.container_overrides.unwrap_or_default();
    if json!(overrides).to_string().len() > LONGEST_OVERRIDES {
        return Err(ApiError::client("Container Overrides length must be at most 8192"));
    }
    let retry = request.retry_strategy.unwrap_or_else(|| definition.retry.clone());
    retry.check()?;
    let timeout_seconds = match request.timeout {
        Some(timeout) => Some(timeout.checked_seconds()?),
        None => definition.timeout_seconds,
    };
    let mut parameters = definition.parameters.clone();
    parameters.extend(request.parameters);
    Ok(Job {
        id: String::new(),
        name: request.job_name,
        queue,
        definition_name: definition.name.clone(),
        definition_arn: definition.arn.clone(),
        container: Container::resolve(&definition.container, &overrides, &parameters)?,
        parameters,
        retry,
        timeout_seconds,
        tags: request.tags,
        propagate_tags: request.propagate_tags.unwrap_or(definition.propagate_tags),
        created_at,
        parent: size.map(Parent::new),
        runs: (0..size.unwrap_or(1)).map(|_| Run::new()).collect(),
    })
}

/// Checks a name: up to 128 letters, digits, hyphens and underscores, of which the first is alphanumeric (fact 19).
pub(super) fn check_name(what: &str, name: &str) -> Result<(), ApiError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let valid = name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(allowed);
    if valid {
        return Ok(());
    }
    let message = format!("Error executing request, Exception : {what} should match valid pattern");
    Err(ApiError::client(message))
}

/// Checks tags: the limits of Batch's TagrisTagsMap, and the prefix that AWS reserves (Batch user guide, "Tag your
/// resources").
pub(super) fn check_tags(tags: &BTreeMap<String, String>) -> Result<(), ApiError> {
    let refused = |message: String| Err(ApiError::client(format!("Error executing request, Exception : {message}")));
    if tags.len() > MOST_TAGS {
        return refused(format!("More than {MOST_TAGS} tags specified"));
    }
    for (key, value) in tags {
        if !(1..=LONGEST_TAG_KEY).contains(&key.chars().count()) || value.chars().count() > LONGEST_TAG_VALUE {
            return refused(format!(
                "Tag '{key}' must have a key of 1 to {LONGEST_TAG_KEY} characters and a value of at most {LONGEST_TAG_VALUE}"
            ));
        }
        if key.to_lowercase().starts_with("aws:") {
            return refused(format!("Tag key '{key}' starts with aws:, which is reserved for AWS"));
        }
    }
    Ok(())
}
