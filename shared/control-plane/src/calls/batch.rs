//! AWS Batch.

use std::fmt::Debug;
use std::future::Future;

use super::ec2::Tag;
use super::{CallError, Page};
use crate::event::batch_job_state::JobDetail;
use spotsweep_protocol::secret::{Secret, TOKEN_VARIABLE};
use spotsweep_records::trial::RetryRule;

/// The parameters of SubmitJob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitJob {
    /// The job's name.
    pub name: String,
    /// Job queue.
    pub queue: String,
    /// Job definition.
    pub definition: String,
    /// Number of children of an array job; absent for a plain job.
    pub array_size: Option<u32>,
    /// Attempts of each child, or of the plain job.
    pub attempts: u8,
    /// The rules by which Batch starts another attempt.
    pub retry_rules: Vec<RetryRule>,
    /// Timeout of each attempt, in seconds.
    pub timeout_seconds: Option<u32>,
    /// Container command.
    pub command: Option<Vec<String>>,
    /// Container environment without the claim token.
    pub environment: Vec<(String, String)>,
    /// The sweep's claim token. It is kept apart from the environment, so that no log shows it.
    pub token: Secret,
    /// `resourceRequirements` by type.
    pub resources: Vec<(String, String)>,
    /// Tags of the job and of its tasks.
    pub tags: Vec<(String, String)>,
}

impl SubmitJob {
    /// Returns all variables of the container.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let token = (TOKEN_VARIABLE.to_owned(), String::from(self.token.clone()));
        self.environment.iter().cloned().chain([token])
    }
}

/// The parameters of ListJobs for a page of the jobs with one name. The name's case does not matter (fact 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListJobs {
    /// Job queue.
    pub queue: String,
    /// The jobs' name.
    pub name: String,
    /// The token from the page before.
    pub next_token: Option<String>,
}

/// One job of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedJob {
    /// Batch's id.
    pub id: String,
    /// The job's name.
    pub name: String,
    /// When it was created, in milliseconds since 1970.
    pub created_at: Option<i64>,
}

/// The parameters of TerminateJobs or CancelJobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopJobs {
    /// Batch's ids.
    pub jobs: Vec<String>,
    /// The text that becomes their status reason.
    pub reason: String,
}

/// A job that was not stopped, with the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStopped {
    /// Batch's id.
    pub job: String,
    /// The error's code.
    pub code: String,
    /// Batch's message.
    pub message: String,
}

/// The parameters of DescribeJobDefinitions for one page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescribeJobDefinitions {
    /// The definitions, as `name:revision` or ARN.
    pub named: Vec<String>,
    /// The name of which all revisions are wanted.
    pub name: Option<String>,
    /// The status that the revisions must have.
    pub status: Option<&'static str>,
    /// The token from the page before.
    pub next_token: Option<String>,
}

/// One revision of a job definition. `P` has all that it consists of, in the form of the implementation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobDefinition<P> {
    /// The ARN.
    pub arn: Option<String>,
    /// The revision's number.
    pub revision: Option<u32>,
    /// The status, such as `ACTIVE`.
    pub status: Option<String>,
    /// Timeout of each attempt, in seconds.
    pub timeout_seconds: Option<u32>,
    /// The container's command.
    pub command: Vec<String>,
    /// The image of its only container.
    pub image: Option<String>,
    /// The names of the environment variables of all containers.
    pub variables: Vec<String>,
    /// The folders of the instance that containers can mount.
    pub folders: Vec<String>,
    /// `resourceRequirements` of all containers, by type.
    pub resources: Vec<(String, String)>,
    /// All that it consists of.
    pub properties: P,
}

/// The parameters of RegisterJobDefinition for a definition like another one, with another image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegisterJobDefinition<P> {
    /// Its name.
    pub name: String,
    /// The image of its only container.
    pub image: String,
    /// All else that it consists of, except the tags that AWS reserves.
    pub properties: P,
}

/// A job queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobQueue {
    /// The state, such as `ENABLED`.
    pub state: String,
    /// The ARNs of its compute environments.
    pub environments: Vec<String>,
}

/// A compute environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComputeEnvironment {
    /// The instance types, and the families, that Batch may start for it.
    pub instance_types: Vec<String>,
    /// The tags of its instances.
    pub instance_tags: Vec<Tag>,
}

/// The calls to Batch that the control plane makes.
pub trait Batch: Debug + Send + Sync {
    /// All that a job definition consists of.
    type Properties: Debug + Clone + Send + Sync;

    /// Submits a job and returns its id. There is no client token (fact 1), so an implementation makes only one try.
    fn submit_job(&self, wanted: SubmitJob) -> impl Future<Output = Result<String, CallError>> + Send;

    /// Lists jobs in all states.
    fn list_jobs(&self, wanted: ListJobs) -> impl Future<Output = Result<Page<ListedJob>, CallError>> + Send;

    /// Describes those of these jobs that Batch knows.
    fn describe_jobs(&self, ids: Vec<String>) -> impl Future<Output = Result<Vec<JobDetail>, CallError>> + Send;

    /// Terminates jobs, and returns those that were not terminated.
    fn terminate_jobs(&self, wanted: StopJobs) -> impl Future<Output = Result<Vec<NotStopped>, CallError>> + Send;

    /// Cancels jobs that have not started, and returns those that were not cancelled.
    fn cancel_jobs(&self, wanted: StopJobs) -> impl Future<Output = Result<Vec<NotStopped>, CallError>> + Send;

    /// Describes revisions of job definitions.
    fn describe_job_definitions(
        &self,
        wanted: DescribeJobDefinitions,
    ) -> impl Future<Output = Result<Page<JobDefinition<Self::Properties>>, CallError>> + Send;

    /// Registers a revision and returns its ARN. There is no client token, so an implementation makes only one try.
    fn register_job_definition(
        &self,
        wanted: RegisterJobDefinition<Self::Properties>,
    ) -> impl Future<Output = Result<String, CallError>> + Send;

    /// Describes the job queue with this name or ARN, if there is one.
    fn describe_job_queues(&self, queue: String) -> impl Future<Output = Result<Vec<JobQueue>, CallError>> + Send;

    /// Describes those of these compute environments that Batch knows. A queue has three at most, so one page has all.
    fn describe_compute_environments(
        &self,
        named: Vec<String>,
    ) -> impl Future<Output = Result<Vec<ComputeEnvironment>, CallError>> + Send;
}
