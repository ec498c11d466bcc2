//! The call ListJobs (fact 1; ListJobs in the Batch API reference).

use serde::Deserialize;
use serde_json::{Value, json};

use super::job::{Job, Progress, Run};
use super::{Named, Status, page, page_size};
use crate::ids::RunRef;
use crate::{ApiError, World};

const PAGE: usize = 1000;
const PAGE_WITH_FILTER: usize = 100;

/// The parameters of ListJobs: for the jobs of a queue, or for the children of an array job.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListJobs {
    /// Name or ARN.
    pub job_queue: Option<String>,
    /// Id of an array job.
    pub array_job_id: Option<String>,
    /// The status, RUNNING if absent. It is ignored with a filter.
    pub job_status: Option<String>,
    /// Page size, 1 to 1000, or with a filter 1 to 100.
    pub max_results: Option<usize>,
    /// The token from the page before.
    pub next_token: Option<String>,
    /// At most one filter.
    #[serde(default)]
    pub filters: Vec<JobFilter>,
}

/// A filter by name, definition or time.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobFilter {
    /// `JOB_NAME`, `JOB_DEFINITION`, `BEFORE_CREATED_AT` or `AFTER_CREATED_AT`.
    #[serde(default)]
    pub name: String,
    /// The values, of which one has to match.
    #[serde(default)]
    pub values: Vec<String>,
}

impl World {
    /// Lists jobs, newest first. Array children are listed only by `arrayJobId`.
    ///
    /// # Errors
    /// `ClientException` for parameters that contradict each other, unknown queues and unknown filters.
    pub fn list_jobs(&self, request: &ListJobs) -> Result<Value, ApiError> {
        let found = match (&request.job_queue, &request.array_job_id) {
            (Some(queue), None) => self.jobs_of_queue(queue, request)?,
            (None, Some(parent)) => self.children(parent, request)?,
            (Some(_), Some(_)) | (None, None) => {
                return Err(ApiError::client("You must specify only one of jobQueue, arrayJobId and multiNodeJobId"));
            }
        };
        let most = if request.filters.is_empty() { PAGE } else { PAGE_WITH_FILTER };
        let limit = page_size(request.max_results, most)?;
        let (found, next) = page(found, limit, request.next_token.as_deref())?;
        let mut answer = json!({"jobSummaryList": found});
        if let Some(next) = next {
            answer["nextToken"] = json!(next);
        }
        Ok(answer)
    }

    /// Returns a name under which more than one job was submitted. Batch allows that, but a submission that must happen
    /// once must not do it.
    pub fn job_named_twice(&self) -> Option<&str> {
        let jobs = &self.batch.jobs;
        let again = jobs.iter().enumerate().find(|(at, job)| jobs[..*at].iter().any(|other| other.name == job.name));
        again.map(|(_, job)| job.name.as_str())
    }

    fn jobs_of_queue(&self, named: &str, request: &ListJobs) -> Result<Vec<Value>, ApiError> {
        let prefix = self.arn("batch", "job-queue/");
        let queue = named.strip_prefix(&prefix).unwrap_or(named);
        if !self.batch.queues.contains_key(queue) {
            return Err(ApiError::client(format!("JobQueue {named} not found.")));
        }
        let wanted = request.status()?;
        let filter = match request.filters.as_slice() {
            [] => None,
            [filter] => Some(filter.parse()?),
            [_, _, ..] => return Err(ApiError::client("Only one filter can be used at a time")),
        };
        let mut found: Vec<&Job> = self
            .batch
            .jobs
            .iter()
            .filter(|job| job.queue == queue)
            .filter(|job| match &filter {
                Some(filter) => filter.matches(job),
                None => job.overall().status == wanted,
            })
            .collect();
        found.sort_by_key(|job| std::cmp::Reverse(job.created_at));
        Ok(found.into_iter().map(|job| self.summary(job)).collect())
    }

    fn children(&self, parent: &str, request: &ListJobs) -> Result<Vec<Value>, ApiError> {
        if !request.filters.is_empty() {
            return Err(ApiError::client("filters can't be used with arrayJobId"));
        }
        let Some(Named::Parent(at)) = self.batch.find(parent) else {
            return Err(ApiError::client(format!("Array job {parent} not found.")));
        };
        let wanted = request.status()?;
        let job = &self.batch.jobs[at];
        let children = (0..job.runs.len()).map(|index| RunRef { job: at, index });
        Ok(children
            .filter(|run| self.batch.run(*run).progress.status == wanted)
            .map(|run| {
                let progress = &self.batch.run(run).progress;
                let mut child = self.summary_of(job, &job.run_id(run.index), progress);
                child["arrayProperties"] = json!({"index": run.index});
                child
            })
            .collect())
    }

    fn summary(&self, job: &Job) -> Value {
        let mut summary = self.summary_of(job, &job.id, job.overall());
        match &job.parent {
            Some(parent) => {
                summary["arrayProperties"] = json!({"size": job.runs.len(), "statusSummary": parent.summary_json()});
            }
            None => add_container(&mut summary, &job.runs[0]),
        }
        summary
    }

    fn summary_of(&self, job: &Job, id: &str, progress: &Progress) -> Value {
        let mut summary = json!({
            "jobArn": self.arn("batch", &format!("job/{id}")),
            "jobId": id,
            "jobName": job.name,
            "jobDefinition": job.definition_arn,
            "createdAt": job.created_at.as_millisecond(),
            "status": progress.status.as_str(),
        });
        let optional = [
            ("statusReason", progress.reason.as_ref().map(|reason| json!(reason))),
            ("startedAt", progress.started_at.map(|at| json!(at.as_millisecond()))),
            ("stoppedAt", progress.stopped_at.map(|at| json!(at.as_millisecond()))),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                summary[name] = value;
            }
        }
        summary
    }
}

/// Adds how the last container ended: ContainerSummary in the Batch API reference.
fn add_container(summary: &mut Value, run: &Run) {
    let Some(end) = run.attempts.last().and_then(|attempt| attempt.end.as_ref()) else { return };
    let mut container = json!({});
    if let Some(code) = end.exit_code {
        container["exitCode"] = json!(code);
    }
    if let Some(reason) = &end.reason {
        container["reason"] = json!(reason);
    }
    summary["container"] = container;
}

impl ListJobs {
    fn status(&self) -> Result<Status, ApiError> {
        match &self.job_status {
            None => Ok(Status::Running),
            Some(word) => Status::parse(word).ok_or_else(|| ApiError::client(format!("Invalid job status: {word}"))),
        }
    }
}

impl Job {
    /// Returns the parent's progress of an array job, or the progress of a plain job's only run.
    pub(crate) fn overall(&self) -> &Progress {
        match &self.parent {
            Some(parent) => &parent.progress,
            None => &self.runs[0].progress,
        }
    }
}

/// A filter with its values checked.
enum Filter<'a> {
    Name(&'a [String]),
    Definition(&'a [String]),
    Before(i64),
    After(i64),
}

impl JobFilter {
    fn parse(&self) -> Result<Filter<'_>, ApiError> {
        let millis = || {
            let value = self.values.first().and_then(|value| value.parse().ok());
            value.ok_or_else(|| ApiError::client(format!("{} wants milliseconds since 1970", self.name)))
        };
        match self.name.as_str() {
            "JOB_NAME" => Ok(Filter::Name(&self.values)),
            "JOB_DEFINITION" => Ok(Filter::Definition(&self.values)),
            "BEFORE_CREATED_AT" => Ok(Filter::Before(millis()?)),
            "AFTER_CREATED_AT" => Ok(Filter::After(millis()?)),
            other => Err(ApiError::client(format!("Unknown filter: {other}"))),
        }
    }
}

impl Filter<'_> {
    fn matches(&self, job: &Job) -> bool {
        match self {
            Filter::Name(values) => values.iter().any(|value| glob(&value.to_lowercase(), &job.name.to_lowercase())),
            Filter::Definition(values) => {
                values.iter().any(|value| *value == job.definition_arn || glob(value, &job.definition_name))
            }
            Filter::Before(at) => job.created_at.as_millisecond() < *at,
            Filter::After(at) => job.created_at.as_millisecond() > *at,
        }
    }
}

fn glob(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => text == pattern,
    }
}
