//! Batch's calls on the World: translates requests and answers.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use spotsweep_control_plane::calls::{
    Batch, CallError, ComputeEnvironment, DescribeJobDefinitions, JobDefinition, JobQueue, ListJobs, ListedJob,
    NotStopped, Page, RegisterJobDefinition, StopJobs, SubmitJob, Wait,
};
use spotsweep_control_plane::event::batch_job_state::JobDetail;
use spotsweep_records::trial::{RetryOn, RetryRule};
use spotsweep_world::{ApiError, Service, batch};

use super::client::{Client, answer, request, text};

impl<W: Wait> Batch for Client<'_, W> {
    type Properties = Value;

    async fn submit_job(&self, wanted: SubmitJob) -> Result<String, CallError> {
        let is_refused = self.cloud.refuses(&wanted.name);
        let request = request(submission(wanted))?;
        let submitted = self.once(Service::Batch, "SubmitJob", |world| match is_refused {
            true => Err(ApiError::client("JobDefinition is inactive")),
            false => world.submit_job(request),
        });
        answer(&submitted.await?["jobId"])
    }

    async fn list_jobs(&self, wanted: ListJobs) -> Result<Page<ListedJob>, CallError> {
        let ListJobs { queue, name, next_token } = wanted;
        let filters = json!([{ "name": "JOB_NAME", "values": [name] }]);
        let request = request(json!({ "jobQueue": queue, "filters": filters, "nextToken": next_token }))?;
        let found = self.call(Service::Batch, "ListJobs", |world| world.list_jobs(&request)).await?;
        let until = self.cloud.listed_until();
        let mut items: Vec<Listed> = answer(&found["jobSummaryList"])?;
        items.retain(|job| job.created_at.is_none_or(|at| at <= until));
        let items = items.into_iter();
        let items = items.map(|job| ListedJob { id: job.job_id, name: job.job_name, created_at: job.created_at });
        Ok(Page { items: items.collect(), next_token: answer(&found["nextToken"])? })
    }

    async fn describe_jobs(&self, ids: Vec<String>) -> Result<Vec<JobDetail>, CallError> {
        let request = request(json!({ "jobs": ids }))?;
        let found = self.call(Service::Batch, "DescribeJobs", |world| world.describe_jobs(&request)).await?;
        answer(&found["jobs"])
    }

    async fn describe_job_definitions(
        &self,
        wanted: DescribeJobDefinitions,
    ) -> Result<Page<JobDefinition<Self::Properties>>, CallError> {
        let DescribeJobDefinitions { named, name, status, next_token } = wanted;
        let request = request(json!({
            "jobDefinitions": named, "jobDefinitionName": name, "status": status, "nextToken": next_token,
        }))?;
        let action = "DescribeJobDefinitions";
        let found = self.call(Service::Batch, action, |world| world.describe_job_definitions(&request)).await?;
        let items = found["jobDefinitions"].as_array().into_iter().flatten().map(job_definition);
        Ok(Page { items: items.collect::<Result<_, _>>()?, next_token: answer(&found["nextToken"])? })
    }

    async fn register_job_definition(
        &self,
        wanted: RegisterJobDefinition<Self::Properties>,
    ) -> Result<String, CallError> {
        let RegisterJobDefinition { name, image, properties: mut like } = wanted;
        like["containerProperties"]["image"] = json!(image);
        like["jobDefinitionName"] = json!(name);
        // The other members are of an answer alone.
        for member in ["jobDefinitionArn", "revision", "status", "containerOrchestrationType"] {
            like.as_object_mut().and_then(|members| members.remove(member));
        }
        let request = request(like)?;
        let action = "RegisterJobDefinition";
        let registered = self.once(Service::Batch, action, |world| world.register_job_definition(request)).await?;
        answer(&registered["jobDefinitionArn"])
    }

    async fn describe_job_queues(&self, queue: String) -> Result<Vec<JobQueue>, CallError> {
        let request = request(json!({ "jobQueues": [queue] }))?;
        let found = self.call(Service::Batch, "DescribeJobQueues", |world| world.describe_job_queues(&request)).await?;
        let queues = found["jobQueues"].as_array().into_iter().flatten();
        let environments = |queue: &Value| {
            let order = queue["computeEnvironmentOrder"].as_array().into_iter().flatten();
            order.map(|one| text(one, "computeEnvironment")).collect()
        };
        Ok(queues.map(|queue| JobQueue { state: text(queue, "state"), environments: environments(queue) }).collect())
    }

    async fn describe_compute_environments(&self, named: Vec<String>) -> Result<Vec<ComputeEnvironment>, CallError> {
        let request = request(json!({ "computeEnvironments": named }))?;
        let action = "DescribeComputeEnvironments";
        let found = self.call(Service::Batch, action, |world| world.describe_compute_environments(&request)).await?;
        let found = found["computeEnvironments"].as_array().into_iter().flatten().map(|one| &one["computeResources"]);
        let environment = |resources: &Value| {
            let tags: Option<BTreeMap<String, String>> = answer(&resources["tags"])?;
            Ok(ComputeEnvironment {
                instance_types: answer(&resources["instanceTypes"])?,
                instance_tags: tags.unwrap_or_default().into_iter().collect(),
            })
        };
        found.map(environment).collect()
    }

    async fn terminate_jobs(&self, wanted: StopJobs) -> Result<Vec<NotStopped>, CallError> {
        let request = batch::StopJobs { jobs: wanted.jobs, reason: wanted.reason };
        let stopped = self.call(Service::Batch, "TerminateJobs", |world| world.terminate_jobs(&request)).await?;
        not_stopped(&stopped)
    }

    async fn cancel_jobs(&self, wanted: StopJobs) -> Result<Vec<NotStopped>, CallError> {
        let request = batch::StopJobs { jobs: wanted.jobs, reason: wanted.reason };
        let stopped = self.call(Service::Batch, "CancelJobs", |world| world.cancel_jobs(&request)).await?;
        not_stopped(&stopped)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    job_id: String,
    job_name: String,
    created_at: Option<i64>,
}

fn job_definition(found: &Value) -> Result<JobDefinition<Value>, CallError> {
    let container = &found["containerProperties"];
    let needs = container["resourceRequirements"].as_array().into_iter().flatten();
    Ok(JobDefinition {
        arn: answer(&found["jobDefinitionArn"])?,
        revision: answer(&found["revision"])?,
        status: answer(&found["status"])?,
        timeout_seconds: answer(&found["timeout"]["attemptDurationSeconds"])?,
        command: answer(&container["command"]).unwrap_or_default(),
        image: answer(&container["image"])?,
        folders: container["volumes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| text(&one["host"], "sourcePath"))
            .collect(),
        variables: container["environment"].as_array().into_iter().flatten().map(|one| text(one, "name")).collect(),
        resources: needs.map(|need| (text(need, "type"), text(need, "value"))).collect(),
        properties: found.clone(),
    })
}

fn not_stopped(answered: &Value) -> Result<Vec<NotStopped>, CallError> {
    let errors = answered["errors"].as_array().into_iter().flatten();
    Ok(errors
        .map(|error| NotStopped { job: text(error, "job"), code: text(error, "code"), message: text(error, "message") })
        .collect())
}

fn submission(wanted: SubmitJob) -> Value {
    let pairs: Vec<Value> = wanted.variables().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let needs = wanted.resources.iter().map(|(kind, value)| json!({ "type": kind, "value": value }));
    let mut overrides = json!({ "environment": pairs, "resourceRequirements": needs.collect::<Vec<_>>() });
    if let Some(command) = wanted.command {
        overrides["command"] = json!(command);
    }
    json!({
        "jobName": wanted.name,
        "jobQueue": wanted.queue,
        "jobDefinition": wanted.definition,
        "arrayProperties": wanted.array_size.map(|size| json!({ "size": size })),
        "retryStrategy": retry_strategy(wanted.attempts, &wanted.retry_rules),
        "timeout": wanted.timeout_seconds.map(|seconds| json!({ "attemptDurationSeconds": seconds })),
        "containerOverrides": overrides,
        "tags": wanted.tags.into_iter().collect::<BTreeMap<_, _>>(),
        "propagateTags": true,
    })
}

/// A job's retry strategy in the form that `SubmitJob` takes.
pub fn retry_strategy(attempts: u8, rules: &[RetryRule]) -> Value {
    let rules = rules.iter().map(|rule| {
        let on = match rule.on {
            RetryOn::StatusReason => "onStatusReason",
            RetryOn::ExitCode => "onExitCode",
            RetryOn::Reason => "onReason",
        };
        json!({ on: rule.pattern, "action": if rule.retries { "RETRY" } else { "EXIT" } })
    });
    json!({ "attempts": attempts, "evaluateOnExit": rules.collect::<Vec<_>>() })
}
