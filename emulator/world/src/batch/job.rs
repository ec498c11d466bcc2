//! Jobs, array children and attempts.
//!
//! A [`Job`] is what one SubmitJob made: a plain job has one [`Run`], an array job one per child and
//! a parent's progress of its own.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::container::Container;
use super::retry::RetryStrategy;

/// Where a job is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Not yet seen by the scheduler.
    Submitted,
    /// Array parents only (there are no dependencies here): some child is at work.
    Pending,
    /// Waiting for an instance.
    Runnable,
    /// On an instance, pulling its image.
    Starting,
    /// Its container runs.
    Running,
    /// Exit code 0.
    Succeeded,
    /// Failed for good, cancelled or terminated.
    Failed,
}

impl Status {
    /// All of them, in the order of a life.
    pub const ALL: [Status; 7] = [
        Status::Submitted,
        Status::Pending,
        Status::Runnable,
        Status::Starting,
        Status::Running,
        Status::Succeeded,
        Status::Failed,
    ];

    /// AWS's word for it.
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

    /// The status that AWS calls `word`.
    pub fn parse(word: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether nothing follows.
    pub fn is_terminal(self) -> bool {
        matches!(self, Status::Succeeded | Status::Failed)
    }
}

/// The part that plain jobs, children and parents have in common.
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

/// One container's way to run: a plain job, or a child of an array job.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) progress: Progress,
    pub(crate) attempts: Vec<Attempt>,
}

impl Run {
    pub(super) fn new() -> Self {
        Run { progress: Progress::new(), attempts: Vec::new() }
    }

    /// The attempt that has not ended.
    pub(crate) fn current(&self) -> Option<&Attempt> {
        self.attempts.last().filter(|attempt| attempt.end.is_none())
    }

    pub(super) fn current_mut(&mut self) -> Option<&mut Attempt> {
        self.attempts.last_mut().filter(|attempt| attempt.end.is_none())
    }
}

/// One try at a run, on one instance.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// 1 for the first.
    pub(crate) number: u32,
    pub(crate) instance: String,
    pub(crate) environment: String,
    pub(crate) container_instance_arn: String,
    /// ECS's ARN of the container run, in ECS's word: taskArn.
    pub(crate) ecs_arn: String,
    pub(crate) log_stream: String,
    /// UUIDs of its GPUs.
    pub(crate) gpus: Vec<String>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) stopping: Option<Stopping>,
    pub(crate) end: Option<End>,
}

/// Why a running container was told to stop.
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

/// An array job's own progress.
#[derive(Debug)]
pub(crate) struct Parent {
    pub(crate) progress: Progress,
    /// Children by status.
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

/// What one SubmitJob made.
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
    /// The id of a run: `<parent>:<index>` for a child (fact 3).
    pub(crate) fn run_id(&self, index: usize) -> String {
        match self.parent {
            Some(_) => format!("{}:{index}", self.id),
            None => self.id.clone(),
        }
    }
}
