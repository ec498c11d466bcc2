//! AWS Batch.

use std::fmt::Debug;
use std::future::Future;

use super::{CallError, Page};
use crate::event::batch_job_state::JobDetail;
use spotsweep_protocol::secret::{Secret, TOKEN_VARIABLE};
use spotsweep_records::trial::RetryRule;

/// SubmitJob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitJob {
    /// The job's name.
    pub name: String,
    /// Job queue.
    pub queue: String,
    /// Job definition.
    pub definition: String,
    /// Children of an array job.
    pub array_size: Option<u32>,
    /// Attempts of each child.
    pub attempts: u8,
    /// After which ends of an attempt there is another one.
    pub retry_rules: Vec<RetryRule>,
    /// Of each attempt.
    pub timeout_seconds: Option<u32>,
    /// Container command.
    pub command: Option<Vec<String>>,
    /// Container environment, but for the claim token.
    pub environment: Vec<(String, String)>,
    /// The sweep's claim token: apart from the rest, so that no log shows it.
    pub token: Secret,
    /// `resourceRequirements` by type.
    pub resources: Vec<(String, String)>,
    /// Tags of the job and of its tasks.
    pub tags: Vec<(String, String)>,
}

impl SubmitJob {
    /// All variables of the container.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let token = (TOKEN_VARIABLE.to_owned(), String::from(self.token.clone()));
        self.environment.iter().cloned().chain([token])
    }
}

/// ListJobs: a page of those with a name. The name's case does not matter (fact 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListJobs {
    /// Job queue.
    pub queue: String,
    /// The jobs' name.
    pub name: String,
    /// From the page before.
    pub next_token: Option<String>,
}

/// A job of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedJob {
    /// Batch's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Milliseconds since 1970.
    pub created_at: Option<i64>,
}

/// TerminateJobs or CancelJobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopJobs {
    /// Batch's ids.
    pub jobs: Vec<String>,
    /// Becomes their status reason.
    pub reason: String,
}

/// A job that was not stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStopped {
    /// Batch's id.
    pub job: String,
    /// The error's code.
    pub code: String,
    /// Batch's words.
    pub message: String,
}

/// DescribeJobDefinitions: a page of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescribeJobDefinitions {
    /// `name:revision`, or ARNs.
    pub named: Vec<String>,
    /// All revisions of this one.
    pub name: Option<String>,
    /// Only those with this status.
    pub status: Option<&'static str>,
    /// From the page before.
    pub next_token: Option<String>,
}

/// A revision of a job definition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobDefinition {
    /// Its ARN.
    pub arn: Option<String>,
    /// Its number.
    pub revision: Option<u32>,
    /// Such as `ACTIVE`.
    pub status: Option<String>,
    /// Of each attempt.
    pub timeout_seconds: Option<u32>,
    /// `resourceRequirements` of all containers, by type.
    pub resources: Vec<(String, String)>,
}

/// A job queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobQueue {
    /// Such as `ENABLED`.
    pub state: String,
}

/// Batch, as the control plane uses it.
pub trait Batch: Debug + Send + Sync {
    /// Submits a job: its id. There is no client token (fact 1), so an implementation makes one try.
    fn submit_job(&self, wanted: SubmitJob) -> impl Future<Output = Result<String, CallError>> + Send;

    /// Shows jobs in all states.
    fn list_jobs(&self, wanted: ListJobs) -> impl Future<Output = Result<Page<ListedJob>, CallError>> + Send;

    /// Shows those of these jobs that Batch knows.
    fn describe_jobs(&self, ids: Vec<String>) -> impl Future<Output = Result<Vec<JobDetail>, CallError>> + Send;

    /// Ends jobs: those that it has not ended.
    fn terminate_jobs(&self, wanted: StopJobs) -> impl Future<Output = Result<Vec<NotStopped>, CallError>> + Send;

    /// Cancels jobs that have not begun: those that it has not cancelled.
    fn cancel_jobs(&self, wanted: StopJobs) -> impl Future<Output = Result<Vec<NotStopped>, CallError>> + Send;

    /// Shows revisions of job definitions.
    fn describe_job_definitions(
        &self,
        wanted: DescribeJobDefinitions,
    ) -> impl Future<Output = Result<Page<JobDefinition>, CallError>> + Send;

    /// Shows a job queue, where there is one of this name or ARN.
    fn describe_job_queues(&self, queue: String) -> impl Future<Output = Result<Vec<JobQueue>, CallError>> + Send;
}
