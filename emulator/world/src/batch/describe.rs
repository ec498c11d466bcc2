//! JobDetail, which is in the answer of DescribeJobs and in events (facts 3 and 12).

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::container::with_empty_lists;
use super::job::{Job, Progress};
use super::{Attempt, Named, Status};
use crate::ids::RunRef;
use crate::{ApiError, World};

const MOST_IDS: usize = 100;

/// The parameters of DescribeJobs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribeJobs {
    /// Ids of jobs, array children or array parents, at most 100.
    #[serde(default)]
    pub jobs: Vec<String>,
}

impl World {
    /// Describes jobs. Unknown ids are left out.
    ///
    /// # Errors
    /// `ClientException` for no ids or more than 100.
    pub fn describe_jobs(&mut self, request: &DescribeJobs) -> Result<Value, ApiError> {
        if request.jobs.is_empty() || request.jobs.len() > MOST_IDS {
            return Err(ApiError::client("jobs must hold between 1 and 100 job ids"));
        }
        let time = self.lagging();
        let details = request.jobs.iter().filter_map(|id| self.batch.find(id)).map(|named| {
            let (_, detail) = match named {
                Named::Parent(job) => self.parent_event(job),
                Named::Run(run) => match self.run_at(run, time) {
                    Some(detail) => return detail.clone(),
                    None => self.run_event(run),
                },
            };
            detail
        });
        Ok(json!({"jobs": details.collect::<Vec<_>>()}))
    }

    /// Returns ARN and detail of a plain job or an array child.
    pub(super) fn run_event(&self, at: RunRef) -> (String, Value) {
        let job = &self.batch.jobs[at.job];
        let run = &job.runs[at.index];
        let ended: Vec<Value> =
            run.attempts.iter().filter(|attempt| attempt.end.is_some()).map(Attempt::detail).collect();
        let mut container = job.container.detail.clone();
        if let Some(last) = run.attempts.last() {
            container.extend(last.container());
        }
        if self.trouble.unplaced_starts && run.progress.status == Status::Starting {
            container.remove("containerInstanceArn");
        }
        let index = job.parent.is_some().then(|| json!({"index": at.index, "statusSummary": {}}));
        self.detail(job, &job.run_id(at.index), &run.progress, (ended, container, index))
    }

    /// Returns ARN and detail of an array job as a whole.
    pub(super) fn parent_event(&self, at: usize) -> (String, Value) {
        let job = &self.batch.jobs[at];
        let container = job.container.detail.clone();
        match &job.parent {
            Some(parent) => {
                let array = json!({"size": job.runs.len(), "statusSummary": parent.summary_json()});
                self.detail(job, &job.id, &parent.progress, (Vec::new(), container, Some(array)))
            }
            None => self.run_event(RunRef { job: at, index: 0 }),
        }
    }

    fn detail(
        &self,
        job: &Job,
        id: &str,
        progress: &Progress,
        (attempts, mut container, array): (Vec<Value>, Map<String, Value>, Option<Value>),
    ) -> (String, Value) {
        // Only jobs have this list; definitions have none.
        container.entry("networkInterfaces").or_insert_with(|| json!([]));
        let arn = self.arn("batch", &format!("job/{id}"));
        let mut detail = json!({
            "jobArn": arn,
            "jobName": job.name,
            "jobId": id,
            "jobQueue": self.arn("batch", &format!("job-queue/{}", job.queue)),
            "status": progress.status.as_str(),
            "attempts": attempts,
            "createdAt": job.created_at.as_millisecond(),
            "retryStrategy": {
                "attempts": job.retry.attempts(),
                "evaluateOnExit": job.retry.evaluate_on_exit,
            },
            "dependsOn": [],
            "jobDefinition": job.definition_arn,
            "parameters": job.parameters,
            "container": with_empty_lists(container),
            "tags": job.tags,
            "propagateTags": job.propagate_tags,
            "platformCapabilities": ["EC2"],
        });
        let optional = [
            ("statusReason", progress.reason.as_ref().map(|reason| json!(reason))),
            ("startedAt", progress.started_at.map(millis)),
            ("stoppedAt", progress.stopped_at.map(millis)),
            ("timeout", job.timeout_seconds.map(|s| json!({"attemptDurationSeconds": s}))),
            ("arrayProperties", array),
            ("isCancelled", progress.cancelled.then(|| json!(true))),
            ("isTerminated", progress.terminated.then(|| json!(true))),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                detail[name] = value;
            }
        }
        (arn, detail)
    }
}

impl Attempt {
    /// Returns the container's fields of an attempt, which for the last attempt are also in the job's `container`.
    fn container(&self) -> Map<String, Value> {
        let mut container = Map::new();
        let mut set = |name: &str, value: Value| container.insert(name.to_owned(), value);
        set("containerInstanceArn", json!(self.container_instance_arn));
        set("taskArn", json!(self.ecs_arn));
        set("logStreamName", json!(self.log_stream));
        set("networkInterfaces", json!([]));
        if let Some(code) = self.end.as_ref().and_then(|end| end.exit_code) {
            set("exitCode", json!(code));
        }
        if let Some(reason) = self.end.as_ref().and_then(|end| end.reason.as_ref()) {
            set("reason", json!(reason));
        }
        container
    }

    fn detail(&self) -> Value {
        let mut detail = json!({"container": self.container()});
        if let Some(started_at) = self.started_at {
            detail["startedAt"] = millis(started_at);
        }
        if let Some(end) = &self.end {
            detail["stoppedAt"] = millis(end.stopped_at);
            detail["statusReason"] = json!(end.status_reason);
        }
        detail
    }
}

fn millis(at: Timestamp) -> Value {
    json!(at.as_millisecond())
}
