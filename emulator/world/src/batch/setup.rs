//! Creates and describes compute environments and job queues.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;
use serde_json::{Value, json};

use super::submit::{check_name, check_tags};
use super::{Environment, Queue, page, page_size};
use crate::offerings::members;
use crate::{ApiError, World, catalog};

/// Most compute environments or queues in one answer.
const PAGE: usize = 100;
/// Most compute environments that a queue may name (fact 18).
const MOST_ENVIRONMENTS: usize = 3;

/// The parameters of CreateComputeEnvironment, for a managed one on EC2 or Spot instances.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateComputeEnvironment {
    /// The environment's name.
    #[serde(default)]
    pub compute_environment_name: String,
    /// The type; only `MANAGED` is emulated.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// `ENABLED` (default) or `DISABLED`.
    pub state: Option<String>,
    /// Instance types, subnets and limits, which are shown as they were given.
    #[serde(default)]
    pub compute_resources: Value,
    /// The service role, which is shown as it was given.
    pub service_role: Option<String>,
    /// Tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ComputeResources {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    minv_cpus: u32,
    maxv_cpus: u32,
    #[serde(default)]
    instance_types: Vec<String>,
    subnets: Vec<String>,
    /// The role of the instances, which Batch demands for EC2 instances.
    instance_role: Option<String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    #[serde(flatten)]
    shown: BTreeMap<String, Value>,
}

/// Members of computeResources that are only shown as they were given, because they do not change the emulated
/// instances.
const SHOWN: [&str; 6] = [
    "allocationStrategy",
    "bidPercentage",
    "ec2Configuration",
    "launchTemplate",
    "securityGroupIds",
    "spotIamFleetRole",
];

/// The parameters of CreateJobQueue.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateJobQueue {
    /// The queue's name.
    #[serde(default)]
    pub job_queue_name: String,
    /// `ENABLED` (default) or `DISABLED`.
    pub state: Option<String>,
    /// The priority, which is required. Queues with higher numbers go first.
    pub priority: Option<i32>,
    /// 1 to 3 compute environments.
    #[serde(default)]
    pub compute_environment_order: Vec<ComputeEnvironmentOrder>,
    /// Tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// A compute environment in a queue's order.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ComputeEnvironmentOrder {
    /// The place in the order. Lower numbers go first.
    pub order: i32,
    /// Name or ARN.
    pub compute_environment: String,
}

/// The parameters of DescribeComputeEnvironments and DescribeJobQueues.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Describe {
    /// Names or ARNs; empty for all.
    #[serde(default, alias = "computeEnvironments", alias = "jobQueues")]
    pub named: Vec<String>,
    /// Page size, 1 to 100.
    pub max_results: Option<usize>,
    /// The token from the page before.
    pub next_token: Option<String>,
}

impl World {
    /// Creates a compute environment, which is VALID at once.
    ///
    /// # Errors
    /// `ClientException` for what AWS refuses, and for what is not emulated.
    pub fn create_compute_environment(&mut self, request: CreateComputeEnvironment) -> Result<Value, ApiError> {
        let name = request.compute_environment_name;
        check_name("Compute environment name", &name)?;
        if self.batch.environments.contains_key(&name) {
            return Err(ApiError::client("Object already exists"));
        }
        if request.kind != "MANAGED" {
            let what = format!("Compute environment type '{}'", request.kind);
            return Err(ApiError::not_emulated(&what));
        }
        check_tags(&request.tags)?;
        let enabled = enabled(request.state.as_deref())?;
        let resources: ComputeResources = serde_json::from_value(request.compute_resources.clone())
            .map_err(|error| ApiError::client(format!("computeResources: {error}")))?;
        let arn = self.arn("batch", &format!("compute-environment/{name}"));
        let cluster = format!("AWSBatch-{name}-{}", self.ids.uuid());
        let detail = json!({
            "computeEnvironmentName": name,
            "computeEnvironmentArn": arn,
            "ecsClusterArn": self.arn("ecs", &format!("cluster/{cluster}")),
            "type": "MANAGED",
            "state": state_word(enabled),
            "status": "VALID",
            "statusReason": "ComputeEnvironment Healthy",
            "computeResources": request.compute_resources,
            "serviceRole": request.service_role.unwrap_or_default(),
            "tags": request.tags,
            "containerOrchestrationType": "ECS",
        });
        let environment = self.environment(enabled, resources, cluster, detail)?;
        self.batch.environments.insert(name.clone(), environment);
        self.schedule();
        Ok(json!({"computeEnvironmentName": name, "computeEnvironmentArn": arn}))
    }

    fn environment(
        &self,
        enabled: bool,
        resources: ComputeResources,
        cluster: String,
        detail: Value,
    ) -> Result<Environment, ApiError> {
        let spot = match resources.kind.as_str() {
            "SPOT" => true,
            "EC2" => false,
            other => return Err(ApiError::not_emulated(&format!("computeResources type '{other}'"))),
        };
        if resources.maxv_cpus == 0 || resources.minv_cpus > resources.maxv_cpus {
            return Err(ApiError::client("computeResources: maxvCpus must be at least 1 and not less than minvCpus."));
        }
        if resources.instance_types.is_empty() || resources.subnets.is_empty() {
            return Err(ApiError::client("computeResources: instanceTypes and subnets must not be empty."));
        }
        if resources.instance_role.is_none() {
            return Err(ApiError::client("computeResources: instanceRole is required for EC2 instances."));
        }
        if let Some(unknown) = resources.shown.keys().find(|name| !SHOWN.contains(&name.as_str())) {
            return Err(ApiError::not_emulated(&format!("computeResources' {unknown}")));
        }
        check_tags(&resources.tags)?;
        let typed = |name: String| match catalog::instance_type(&name) {
            Some(_) if !self.settings.zones.iter().any(|zone| self.is_offered(&name, zone)) => {
                // Batch's message lists the types of the region here
                // (https://github.com/aws/amazon-genomics-cli/issues/209).
                let message = "Error executing request, Exception : Instance type can only be one of [optimal, …]";
                Err(ApiError::client(message))
            }
            Some(holds) => Ok((name, holds)),
            None => Err(ApiError::client(format!(
                "Instance type '{name}' is not known here; name one such as c7i.large or g5.xlarge."
            ))),
        };
        Ok(Environment {
            enabled,
            spot,
            min_vcpus: resources.minv_cpus,
            max_vcpus: resources.maxv_cpus,
            instance_types: resources
                .instance_types
                .iter()
                .flat_map(|name| members(name))
                .map(typed)
                .collect::<Result<_, _>>()?,
            subnets: self.zones_of(resources.subnets)?,
            instance_tags: resources.tags.into_iter().collect(),
            cluster,
            detail,
        })
    }

    /// Returns subnets with their zones. Each zone has one subnet, `subnet-<zone>`, because no VPC is emulated.
    fn zones_of(&self, subnets: Vec<String>) -> Result<Vec<(String, String)>, ApiError> {
        let zone_of = |subnet: String| {
            let zone = subnet.strip_prefix("subnet-").unwrap_or_default();
            if self.settings.zones.iter().any(|known| known == zone) {
                return Ok((subnet.clone(), zone.to_owned()));
            }
            let known: Vec<_> = self.settings.zones.iter().map(|z| format!("subnet-{z}")).collect();
            Err(ApiError::client(format!("The subnet ID '{subnet}' does not exist; there are {}.", known.join(", "))))
        };
        subnets.into_iter().map(zone_of).collect()
    }

    /// Creates a job queue, which is VALID at once.
    ///
    /// # Errors
    /// `ClientException` for what AWS refuses.
    pub fn create_job_queue(&mut self, request: CreateJobQueue) -> Result<Value, ApiError> {
        let name = request.job_queue_name;
        check_name("Job queue name", &name)?;
        if self.batch.queues.contains_key(&name) {
            return Err(ApiError::client("Object already exists"));
        }
        check_tags(&request.tags)?;
        let Some(priority) = request.priority else {
            return Err(ApiError::client("'priority' is a required field"));
        };
        let enabled = enabled(request.state.as_deref())?;
        let mut order = request.compute_environment_order;
        if order.is_empty() || order.len() > MOST_ENVIRONMENTS {
            return Err(ApiError::client("computeEnvironmentOrder must hold 1 to 3 entries."));
        }
        order.sort_by_key(|entry| entry.order);
        let environment_prefix = self.arn("batch", "compute-environment/");
        let mut environments = Vec::new();
        let mut shown = Vec::new();
        for ComputeEnvironmentOrder { order, compute_environment: named } in order {
            let environment = named.strip_prefix(&environment_prefix).unwrap_or(&named);
            if !self.batch.environments.contains_key(environment) {
                return Err(ApiError::client(format!("{named} does not exist")));
            }
            shown.push(json!({
                "order": order,
                "computeEnvironment": format!("{environment_prefix}{environment}"),
            }));
            environments.push(environment.to_owned());
        }
        let arn = self.arn("batch", &format!("job-queue/{name}"));
        let detail = json!({
            "jobQueueName": name,
            "jobQueueArn": arn,
            "state": state_word(enabled),
            "status": "VALID",
            "statusReason": "JobQueue Healthy",
            "priority": priority,
            "computeEnvironmentOrder": shown,
            "tags": request.tags,
        });
        let runnable = VecDeque::new();
        let queue = Queue { enabled, priority, environments, runnable, detail };
        self.batch.queues.insert(name.clone(), queue);
        Ok(json!({"jobQueueName": name, "jobQueueArn": arn}))
    }

    /// Describes compute environments. Unknown names are left out.
    ///
    /// # Errors
    /// `ClientException` for an invalid page size or token.
    pub fn describe_compute_environments(&self, request: &Describe) -> Result<Value, ApiError> {
        let prefix = self.arn("batch", "compute-environment/");
        let known = self.batch.environments.iter().map(|(name, e)| (name, &e.detail));
        request.pick("computeEnvironments", &prefix, known)
    }

    /// Describes job queues. Unknown names are left out.
    ///
    /// # Errors
    /// `ClientException` for an invalid page size or token.
    pub fn describe_job_queues(&self, request: &Describe) -> Result<Value, ApiError> {
        let prefix = self.arn("batch", "job-queue/");
        let known = self.batch.queues.iter().map(|(name, queue)| (name, &queue.detail));
        request.pick("jobQueues", &prefix, known)
    }
}

impl Describe {
    fn pick<'a>(
        &self,
        member: &str,
        arn_prefix: &str,
        known: impl Iterator<Item = (&'a String, &'a Value)>,
    ) -> Result<Value, ApiError> {
        let named =
            |name: &str| self.named.iter().any(|wanted| wanted.strip_prefix(arn_prefix).unwrap_or(wanted) == name);
        let chosen = known.filter(|(name, _)| self.named.is_empty() || named(name)).map(|(_, detail)| detail);
        let limit = page_size(self.max_results, PAGE)?;
        let (shown, next) = page(chosen.collect(), limit, self.next_token.as_deref())?;
        let mut answer = json!({ member: shown });
        if let Some(next) = next {
            answer["nextToken"] = json!(next);
        }
        Ok(answer)
    }
}

fn enabled(state: Option<&str>) -> Result<bool, ApiError> {
    match state {
        None | Some("ENABLED") => Ok(true),
        Some("DISABLED") => Ok(false),
        Some(other) => Err(ApiError::client(format!("state must be ENABLED or DISABLED: {other}"))),
    }
}

fn state_word(enabled: bool) -> &'static str {
    if enabled { "ENABLED" } else { "DISABLED" }
}
