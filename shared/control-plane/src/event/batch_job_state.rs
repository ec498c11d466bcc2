//! `Batch Job State Change`: the detail is DescribeJobs' JobDetail (fact 12).

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Deserialize;

use super::{Envelope, Event, Job, ParseError, PartJob, TrialJob, detail};
use spotsweep_protocol::ids::{JobId, JobName, PART_TRIALS, Run};
use spotsweep_records::trial::{Attempt, HOST_GONE, INTERRUPTED_EXIT_CODE, JobStatus, Observation, Reason};

pub(super) const DETAIL_TYPE: &str = "Batch Job State Change";

/// The fields of a job that spotsweep reads, from an event or from an answer of DescribeJobs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobDetail {
    /// The job's name.
    pub job_name: String,
    /// The job's id.
    pub job_id: String,
    /// The job's state.
    pub status: JobStatus,
    /// AWS's reason for the state.
    pub status_reason: Option<String>,
    /// When it started, in milliseconds since 1970.
    pub started_at: Option<i64>,
    /// The attempts that have ended, oldest first.
    #[serde(default)]
    pub attempts: Vec<AttemptDetail>,
    /// The container of the attempt under way, or of the last one.
    #[serde(default)]
    pub container: Container,
    /// The size of an array job.
    pub array_properties: Option<ArrayProperties>,
    /// The tasks, which replace `container` where the definition has `ecsProperties`.
    #[serde(default)]
    pub ecs_properties: EcsProperties,
    /// Whether CancelJob was called for it.
    pub is_cancelled: Option<bool>,
    /// Whether TerminateJob was called for it.
    pub is_terminated: Option<bool>,
}

/// The tasks of a job whose definition has `ecsProperties`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct EcsProperties {
    /// The tasks of the job.
    #[serde(default)]
    pub task_properties: Vec<TaskDetail>,
}

/// The array properties of a job.
#[derive(Deserialize)]
pub struct ArrayProperties {
    /// Number of children; absent for a child.
    pub size: Option<u32>,
}

/// An attempt that has ended.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptDetail {
    /// The container of the attempt.
    #[serde(default)]
    pub container: Container,
    /// The tasks, which replace `container` where the definition has `ecsProperties` (fact 12).
    #[serde(default)]
    pub task_properties: Vec<TaskDetail>,
    /// When it started, in milliseconds since 1970.
    pub started_at: Option<i64>,
    /// When it ended, in milliseconds since 1970.
    pub stopped_at: Option<i64>,
    /// AWS's reason for the end.
    pub status_reason: Option<String>,
}

/// An ECS task of a job.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskDetail {
    /// ARN of the ECS container instance on which it runs or ran.
    pub container_instance_arn: Option<String>,
    /// The task's containers.
    #[serde(default)]
    pub containers: Vec<Container>,
}

/// A container of an attempt.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// ARN of the ECS container instance on which it runs or ran.
    pub container_instance_arn: Option<String>,
    /// The name in the job definition.
    pub name: Option<String>,
    /// Whether its end ends the task; absent means yes.
    pub essential: Option<bool>,
    /// The exit code; absent if no process has ended.
    pub exit_code: Option<i32>,
    /// AWS's reason why it did not start, or why it ended.
    pub reason: Option<String>,
    /// The stream in the log group of the job definition.
    pub log_stream_name: Option<String>,
}

pub(super) fn parse(envelope: Envelope) -> Result<Event, ParseError> {
    let Envelope { source, detail_type, .. } = &envelope;
    let foreign = Event::Unknown { source: source.clone(), detail_type: format!("{detail_type} of a foreign job") };
    Ok(job(detail(DETAIL_TYPE, envelope)?)?.map_or(foreign, Event::JobChanged))
}

/// Returns the job that a JobDetail describes; `None` for a job that is not from spotsweep.
///
/// # Errors
/// Returns an error for a field with a value that AWS does not document.
pub fn job(found: JobDetail) -> Result<Option<Job>, ParseError> {
    let Some(name) = JobName::parse(&found.job_name) else {
        return Ok(None);
    };
    let job = JobId::from(found.job_id.clone());
    let round = name.round();
    let is_parent = job.child.is_none() && found.array_properties.as_ref().is_some_and(|array| array.size.is_some());
    if let (Run::Part(part), true) = (name.run, is_parent) {
        let part = PartJob { sweep: name.sweep, part, job: job.parent, status: found.status };
        return Ok(Some(Job::Part(part)));
    }
    // Batch's arrays are not larger, so a job with a larger index only has a similar name.
    let Some(child) = Some(job.child.unwrap_or(0)).filter(|child| *child < PART_TRIALS) else {
        return Ok(None);
    };
    let index = name.first_index().saturating_add(child);
    let seen = observation(job, found)?;
    Ok(Some(Job::Trial(TrialJob { sweep: name.sweep, index, round, seen })))
}

fn observation(job: JobId, mut found: JobDetail) -> Result<Observation, ParseError> {
    let mut tasks = found.ecs_properties.task_properties;
    let essential = Essential::of(&tasks);
    if !tasks.is_empty() {
        found.container = essential.choose(&mut tasks);
    }
    // If Batch cancels a job because of its time in the queue, the job's reason differs from that of its last attempt.
    let last = found.attempts.last().and_then(|attempt| attempt.status_reason.as_ref());
    let other_end = found.status == JobStatus::Failed && found.status_reason.as_ref() != last;
    let was_stopped = other_end || found.is_cancelled == Some(true) || found.is_terminated == Some(true);
    let attempts = found.attempts.into_iter().map(|found| attempt(found, &essential));
    let ended = attempts.collect::<Result<Vec<_>, _>>()?;
    // Batch keeps the `startedAt` of the previous attempt while the next one waits.
    let is_new = |started: &Timestamp| ended.iter().all(|attempt: &Attempt| attempt.started_at != Some(*started));
    let under_way = found.status == JobStatus::Running;
    let (current, container_instance) = match found.status {
        JobStatus::Starting | JobStatus::Running => {
            let current = Attempt {
                started_at: timestamp(found.started_at)?.filter(|started| under_way && is_new(started)),
                log_stream: found.container.log_stream_name.filter(|_| under_way),
                ..Attempt::default()
            };
            (current, found.container.container_instance_arn)
        }
        JobStatus::Submitted | JobStatus::Pending | JobStatus::Runnable | JobStatus::Succeeded | JobStatus::Failed => {
            (Attempt::default(), None)
        }
    };
    let (status, reason) = (found.status, found.status_reason.map(Reason::from));
    Ok(Observation { job, status, reason, ended, current, container_instance, was_stopped })
}

/// Names of the containers whose end ends the task. The description of an attempt does not say which ones these are.
struct Essential(BTreeSet<Option<String>>);

impl Essential {
    fn of(tasks: &[TaskDetail]) -> Self {
        let containers = tasks.iter().flat_map(|task| &task.containers);
        Self(containers.filter(|one| one.essential != Some(false)).map(|one| one.name.clone()).collect())
    }

    /// Chooses the container whose end is that of the task. When an essential container ends, ECS stops the others with
    /// SIGTERM and SIGKILL (ECS developer guide, "essential"). So a container that has ended in another way counts
    /// first, and before all others one with the runner's exit code for an interruption.
    fn choose(&self, tasks: &mut Vec<TaskDetail>) -> Container {
        let Some(mut task) = tasks.drain(..).next() else { return Container::default() };
        let rank = |one: &Container| match (one.exit_code, &one.reason) {
            (Some(INTERRUPTED_EXIT_CODE), _) => 0,
            (Some(code), _) if code != 0 && !STOPPED.contains(&code) => 1,
            (None, Some(_)) => 1,
            (Some(code), _) if code != 0 => 2,
            (Some(_) | None, _) => 3,
        };
        let is_essential = |one: &Container| self.0.is_empty() || self.0.contains(&one.name);
        task.containers.sort_by_key(|one| (!is_essential(one), rank(one)));
        let mut chosen = task.containers.drain(..).next().unwrap_or_default();
        chosen.container_instance_arn = chosen.container_instance_arn.or(task.container_instance_arn);
        chosen
    }
}

/// Exit codes of a container that was stopped: 128 + SIGKILL, 128 + SIGTERM.
const STOPPED: [i32; 2] = [137, 143];

fn attempt(mut found: AttemptDetail, essential: &Essential) -> Result<Attempt, ParseError> {
    let mut container = found.container;
    if !found.task_properties.is_empty() {
        container = essential.choose(&mut found.task_properties);
    }
    Ok(Attempt {
        started_at: timestamp(found.started_at)?,
        stopped_at: timestamp(found.stopped_at)?,
        exit_code: container.exit_code,
        // A reason that the host is gone explains the end better than the reason of the container.
        reason: match found.status_reason {
            Some(gone) if gone.starts_with(HOST_GONE) => Some(gone.into()),
            other => container.reason.or(other).map(Reason::from),
        },
        log_stream: container.log_stream_name,
        ..Attempt::default()
    })
}

/// Reads a time from milliseconds since 1970. Batch may give 0 where there is no time yet.
fn timestamp(millis: Option<i64>) -> Result<Option<Timestamp>, ParseError> {
    let read = |millis| {
        Timestamp::from_millisecond(millis)
            .map_err(|error| ParseError::Value { kind: DETAIL_TYPE, problem: format!("time {millis}: {error}") })
    };
    millis.filter(|millis| *millis != 0).map(read).transpose()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use serde_json::json;

    use super::*;

    /// A container that is killed with its host may have a reason of its own.
    #[test]
    fn a_reclaim_counts_as_one_whatever_the_container_says() {
        let reclaimed = "Host EC2 (instance i-1) terminated.";
        let ends = [
            (json!({ "reason": "DockerTimeoutError", "exitCode": 137 }), reclaimed, reclaimed, true),
            (json!({}), reclaimed, reclaimed, true),
            (
                json!({ "reason": "OutOfMemoryError", "exitCode": 137 }),
                "Essential container …",
                "OutOfMemoryError",
                false,
            ),
        ];
        for (container, status_reason, expected, is_reclaim) in ends {
            let detail =
                json!({ "container": container, "startedAt": 1, "stoppedAt": 2, "statusReason": status_reason });
            let attempt = attempt(serde_json::from_value(detail).unwrap(), &Essential::of(&[])).unwrap();
            assert_eq!(
                (attempt.reason.as_ref().map(Reason::of_batch), attempt.was_interrupted()),
                (Some(expected), is_reclaim)
            );
        }
    }

    /// Of several containers the essential one that failed counts, whatever their order is.
    #[test]
    fn the_container_that_failed_counts_and_not_the_first() {
        let ended = |name: &str, code: i32| json!({ "name": name, "exitCode": code, "logStreamName": name });
        let cases = [
            (vec![ended("logger", 0), ended("train", 3)], "train", 3),
            (vec![ended("train", 3), ended("logger", 0)], "train", 3),
            (vec![ended("logger", 1), ended("train", 75)], "train", 75),
            (vec![ended("logger", 1), ended("train", 0)], "train", 0),
            (vec![ended("data", 137), ended("train", 75), ended("logger", 0)], "train", 75),
            (vec![ended("data", 143), ended("train", 3)], "train", 3),
            (vec![ended("train", 0), ended("data", 4)], "data", 4),
        ];
        for (containers, name, code) in cases {
            let described =
                ["train", "data", "logger"].map(|name| json!({ "name": name, "essential": name != "logger" }));
            let detail = json!({
                "jobName": "spotsweep-a-0123456789ab-0", "jobId": "1:2", "status": "FAILED",
                "attempts": [{ "taskProperties": [{ "containers": containers }], "startedAt": 1, "stoppedAt": 2 }],
                "ecsProperties": { "taskProperties": [{ "containers": described }] },
            });
            let found = job(serde_json::from_value(detail).unwrap()).unwrap().unwrap();
            let Job::Trial(job) = found else { panic!("{found:?}") };
            let found = &job.seen.ended[0];
            assert_eq!((found.log_stream.as_deref(), found.exit_code), (Some(name), Some(code)), "{containers:?}");
        }
    }
}
