//! Jobs, array children and attempts.
//!
//! A [`Job`] is what one SubmitJob has made. A plain job has one [`Run`]. An array job has one for each child, and a
//! progress of its own as the parent.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::container::Container;
use super::retry::RetryStrategy;

/// A job's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// The scheduler has not looked at the job yet.
    Submitted,
    /// Some child of an array parent is not terminal. Other jobs are never pending, because there are no dependencies
    /// here.
    Pending,
    /// The job waits for an instance.
    Runnable,
    /// The job is placed on an instance, and its image is being pulled.
    Starting,
    /// Its container runs.
    Running,
    /// The container ended with exit code 0.
    Succeeded,
    /// The job has failed for good, or was cancelled or terminated.
    Failed,
}

impl Status {
    /// All statuses, in the order in which a job passes through them.
    pub const ALL: [Status; 7] = [
        Status::Submitted,
        Status::Pending,
        Status::Runnable,
        Status::Starting,
        Status::Running,
        Status::Succeeded,
        Status::Failed,
    ];

    /// Returns AWS's name of the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Submitted => "SUBMITTED",
            Status::Pending => "PENDING",
            Status::Runnable => "RUNNABLE",
            Status::Starting => "STARTING",
            Status::Running => "RUNNING",
            Status::Succeeded => "SUCCEEDED",
            Status::Failed => "FAILED",
        }
    }

    /// Returns the status with this name.
    pub fn parse(word: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether the status is final.
    pub fn is_terminal(self) -> bool {
        matches!(self, Status::Succeeded | Status::Failed)
    }
}

/// The fields that plain jobs, children and parents have in common.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    pub(crate) status: Status,
    pub(crate) reason: Option<String>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) stopped_at: Option<Timestamp>,
    pub(crate) cancelled: bool,
    pub(crate) terminated: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Progress {
            status: Status::Submitted,
            reason: None,
            started_at: None,
            stopped_at: None,
            cancelled: false,
            terminated: false,
        }
    }
}

/// The run of a plain job or of one child of an array job, with all its attempts.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) progress: Progress,
    pub(crate) attempts: Vec<Attempt>,
}

impl Run {
    pub(super) fn new() -> Self {
        Run { progress: Progress::new(), attempts: Vec::new() }
    }

    /// Returns the attempt that has not ended.
    pub(crate) fn current(&self) -> Option<&Attempt> {
        self.attempts.last().filter(|attempt| attempt.end.is_none())
    }

    pub(super) fn current_mut(&mut self) -> Option<&mut Attempt> {
        self.attempts.last_mut().filter(|attempt| attempt.end.is_none())
    }
}

/// One attempt of a run, on one instance.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// The attempt's number, from 1.
    pub(crate) number: u32,
    pub(crate) instance: String,
    pub(crate) environment: String,
    pub(crate) container_instance_arn: String,
    /// ECS's ARN of the task.
    pub(crate) ecs_arn: String,
    pub(crate) log_stream: String,
    /// UUIDs of the container's GPUs.
    pub(crate) gpus: Vec<String>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) stopping: Option<Stopping>,
    pub(crate) end: Option<End>,
}

/// Why a running container is being stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stopping {
    TimedOut,
    Terminated(String),
}

/// How an attempt ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct End {
    pub(crate) stopped_at: Timestamp,
    pub(crate) exit_code: Option<i32>,
    /// The container's reason, such as `CannotPullContainerError: …`.
    pub(crate) reason: Option<String>,
    pub(crate) status_reason: String,
}

/// The progress of an array job as a whole.
#[derive(Debug)]
pub(crate) struct Parent {
    pub(crate) progress: Progress,
    /// Number of children by status.
    pub(crate) summary: BTreeMap<Status, usize>,
}

impl Parent {
    pub(super) fn new(size: usize) -> Self {
        Parent { progress: Progress::new(), summary: BTreeMap::from([(Status::Submitted, size)]) }
    }

    pub(super) fn moved(&mut self, from: Status, to: Status) {
        if let Some(count) = self.summary.get_mut(&from) {
            *count -= 1;
        }
        *self.summary.entry(to).or_default() += 1;
    }

    pub(super) fn summary_json(&self) -> Value {
        let counts = Status::ALL
            .into_iter()
            .map(|status| (status.as_str().to_owned(), self.summary.get(&status).copied()))
            .map(|(word, count)| (word, json!(count.unwrap_or(0))));
        Value::Object(counts.collect::<Map<_, _>>())
    }
}

/// What one SubmitJob has made.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) queue: String,
    pub(crate) definition_name: String,
    pub(crate) definition_arn: String,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) container: Container,
    pub(crate) retry: RetryStrategy,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) propagate_tags: bool,
    pub(crate) created_at: Timestamp,
    pub(crate) parent: Option<Parent>,
    pub(crate) runs: Vec<Run>,
}

impl Job {
    /// Returns the id of a run: `<parent>:<index>` for a child (fact 3).
    pub(crate) fn run_id(&self, index: usize) -> String {
        match self.parent {
            Some(_) => format!("{}:{index}", self.id),
            None => self.id.clone(),
        }
    }
}
