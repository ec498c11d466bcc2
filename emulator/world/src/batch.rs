//! AWS Batch: compute environments, job queues, job definitions and jobs.

use crate::ids::RunRef;
use std::collections::{BTreeMap, HashMap, VecDeque};

use serde_json::{Map, Value};

mod container;
mod definition;
mod describe;
mod job;
mod lifecycle;
mod list;
mod retry;
mod setup;
mod stop;
mod submit;

use super::AttemptKey;
use super::catalog::Resources;
use super::throttle::TokenBucket;
pub use container::{ContainerOverrides, ResourceRequirement, Variable};
pub use definition::{DescribeJobDefinitions, LARGEST_DEFINITION, RegisterJobDefinition};
pub use describe::DescribeJobs;
pub use job::Status;
pub(crate) use job::{Attempt, Job, Stopping};
pub use list::{JobFilter, ListJobs};
pub use retry::{EvaluateOnExit, RetryStrategy};
pub use setup::{ComputeEnvironmentOrder, CreateComputeEnvironment, CreateJobQueue, Describe};
pub use stop::{StopJob, StopJobs};
pub use submit::{ArrayProperties, JobTimeout, LARGEST_PAYLOAD, SubmitJob};

/// The state of Batch.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) environments: BTreeMap<String, Environment>,
    pub(super) queues: BTreeMap<String, Queue>,
    /// Revisions by name. Revision n is at index n - 1.
    definitions: BTreeMap<String, Vec<Definition>>,
    pub(super) jobs: Vec<Job>,
    by_id: HashMap<String, usize>,
    submissions: TokenBucket,
}

/// A managed compute environment.
#[derive(Debug)]
pub(super) struct Environment {
    pub(super) enabled: bool,
    pub(super) spot: bool,
    pub(super) min_vcpus: u32,
    pub(super) max_vcpus: u32,
    /// The types in the order of the request.
    pub(super) instance_types: Vec<(String, Resources)>,
    /// Subnets with their zones, in the order of the request.
    pub(super) subnets: Vec<(String, String)>,
    pub(super) instance_tags: Vec<(String, String)>,
    /// Name of its ECS cluster.
    pub(super) cluster: String,
    detail: Value,
}

/// A job queue. It is first in, first out, and retries go to the front (fact 18).
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) enabled: bool,
    pub(super) priority: i32,
    /// Names of compute environments, in the order in which they are tried.
    pub(super) environments: Vec<String>,
    pub(super) runnable: VecDeque<RunRef>,
    detail: Value,
}

/// One revision of a job definition.
#[derive(Debug)]
struct Definition {
    arn: String,
    name: String,
    revision: usize,
    active: bool,
    container: Map<String, Value>,
    parameters: BTreeMap<String, String>,
    retry: RetryStrategy,
    timeout_seconds: Option<u64>,
    tags: BTreeMap<String, String>,
    propagate_tags: bool,
}

/// The job or run that a job id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    /// An array job as a whole.
    Parent(usize),
    /// A plain job or an array child.
    Run(RunRef),
}

impl Batch {
    fn find(&self, id: &str) -> Option<Named> {
        let (parent, index) = match id.split_once(':') {
            Some((parent, index)) => (parent, Some(index.parse::<usize>().ok()?)),
            None => (id, None),
        };
        let at = *self.by_id.get(parent)?;
        let job = &self.jobs[at];
        match (&job.parent, index) {
            (Some(_), None) => Some(Named::Parent(at)),
            (Some(_), Some(index)) if index < job.runs.len() => Some(Named::Run(RunRef { job: at, index })),
            (None, None) => Some(Named::Run(RunRef { job: at, index: 0 })),
            (Some(_), Some(_)) | (None, Some(_)) => None,
        }
    }

    fn run(&self, run: RunRef) -> &job::Run {
        &self.jobs[run.job].runs[run.index]
    }

    fn run_mut(&mut self, run: RunRef) -> &mut job::Run {
        &mut self.jobs[run.job].runs[run.index]
    }

    pub(super) fn wanted(&self, run: RunRef) -> Resources {
        self.jobs[run.job].container.resources
    }

    pub(super) fn run_id(&self, run: RunRef) -> String {
        self.jobs[run.job].run_id(run.index)
    }

    /// Returns the attempt that has not ended, if there is one.
    pub(super) fn current(&self, run: RunRef) -> Option<&Attempt> {
        self.run(run).current()
    }

    /// Returns the attempt whose container runs, if there is one.
    pub(super) fn running_attempt(&self, run: RunRef) -> Option<AttemptKey> {
        let attempt = self.run(run).current()?;
        attempt.started_at?;
        Some(AttemptKey { job: self.run_id(run), attempt: attempt.number })
    }
}

/// Returns the page size of a request: 1 to `most`, which is also the default.
fn page_size(asked: Option<usize>, most: usize) -> Result<usize, super::ApiError> {
    match asked.unwrap_or(most) {
        size if (1..=most).contains(&size) => Ok(size),
        size => Err(super::ApiError::client(format!("maxResults must be between 1 and {most}, not {size}"))),
    }
}

/// Returns one page of `all`, and the token of the next one, which contains its position.
fn page<T>(all: Vec<T>, limit: usize, token: Option<&str>) -> Result<(Vec<T>, Option<String>), super::ApiError> {
    let start = match token {
        None | Some("") => 0,
        Some(token) => token
            .strip_prefix("next-")
            .and_then(|at| at.parse::<usize>().ok())
            .ok_or_else(|| super::ApiError::client("Invalid NextToken"))?,
    };
    let next = (start + limit < all.len()).then(|| format!("next-{}", start + limit));
    Ok((all.into_iter().skip(start).take(limit).collect(), next))
}
