//! Compute environments and job queues: create and describe.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;
use serde_json::{Value, json};

use super::submit::check_name;
use super::{Environment, Queue};
use crate::world::{ApiError, World, catalog};

/// Compute environments that a queue may name (facts 18).
const MOST_ENVIRONMENTS: usize = 3;

/// A managed compute environment on EC2 or Spot instances.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateComputeEnvironment {
    /// Its name.
    #[serde(default)]
    pub compute_environment_name: String,
    /// `MANAGED` only.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// `ENABLED` (default) or `DISABLED`.
    pub state: Option<String>,
    /// Instance types, subnets, limits; shown as given.
    #[serde(default)]
    pub compute_resources: Value,
    /// Shown as given.
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
    #[serde(default)]
    subnets: Vec<String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

/// A job queue.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateJobQueue {
    /// Its name.
    #[serde(default)]
    pub job_queue_name: String,
    /// `ENABLED` (default) or `DISABLED`.
    pub state: Option<String>,
    /// Higher goes first.
    #[serde(default)]
    pub priority: i32,
    /// 1 to 3 compute environments.
    #[serde(default)]
    pub compute_environment_order: Vec<ComputeEnvironmentOrder>,
    /// Tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// A compute environment's place in a queue's order.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComputeEnvironmentOrder {
    /// Lower goes first.
    pub order: i32,
    /// Name or ARN.
    pub compute_environment: String,
}

/// Names or ARNs of compute environments or queues to show; all if empty.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Describe {
    /// Names or ARNs.
    #[serde(default, alias = "computeEnvironments", alias = "jobQueues")]
    pub named: Vec<String>,
}

impl World {
    /// Creates a compute environment, VALID at once.
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
        let typed = |name: String| match catalog::instance_type(&name) {
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
            instance_types: resources.instance_types.into_iter().map(typed).collect::<Result<_, _>>()?,
            subnets: self.zones_of(resources.subnets)?,
            instance_tags: resources.tags.into_iter().collect(),
            cluster,
            detail,
        })
    }

    /// Each zone has one subnet here, `subnet-<zone>`: no VPC is emulated.
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

    /// Creates a job queue, VALID at once.
    ///
    /// # Errors
    /// `ClientException` for what AWS refuses.
    pub fn create_job_queue(&mut self, request: CreateJobQueue) -> Result<Value, ApiError> {
        let name = request.job_queue_name;
        check_name("Job queue name", &name)?;
        if self.batch.queues.contains_key(&name) {
            return Err(ApiError::client("Object already exists"));
        }
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
            "priority": request.priority,
            "computeEnvironmentOrder": shown,
            "tags": request.tags,
        });
        let runnable = VecDeque::new();
        let priority = request.priority;
        let queue = Queue { enabled, priority, environments, runnable, detail };
        self.batch.queues.insert(name.clone(), queue);
        Ok(json!({"jobQueueName": name, "jobQueueArn": arn}))
    }

    /// Shows compute environments; unknown names are left out.
    pub fn describe_compute_environments(&self, request: &Describe) -> Value {
        let prefix = self.arn("batch", "compute-environment/");
        let known = self.batch.environments.iter().map(|(name, e)| (name, &e.detail));
        json!({"computeEnvironments": request.pick(&prefix, known)})
    }

    /// Shows job queues; unknown names are left out.
    pub fn describe_job_queues(&self, request: &Describe) -> Value {
        let prefix = self.arn("batch", "job-queue/");
        let known = self.batch.queues.iter().map(|(name, queue)| (name, &queue.detail));
        json!({"jobQueues": request.pick(&prefix, known)})
    }
}

impl Describe {
    fn pick<'a>(&self, arn_prefix: &str, known: impl Iterator<Item = (&'a String, &'a Value)>) -> Vec<&'a Value> {
        let named =
            |name: &str| self.named.iter().any(|wanted| wanted.strip_prefix(arn_prefix).unwrap_or(wanted) == name);
        known.filter(|(name, _)| self.named.is_empty() || named(name)).map(|(_, detail)| detail).collect()
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
