//! The parts of ECS that concern Batch's clusters: the EC2 instance of a container instance (fact 13), draining, and
//! the GPUs of a task (fact 57).

use serde::Deserialize;
use serde_json::{Value, json};

use super::batch::Attempt;
use super::{ApiError, Instance, World};

const MOST_IDS: usize = 100;
const MOST_UPDATED: usize = 10;
/// Batch's name of the container of a job.
pub const CONTAINER: &str = "default";

/// The parameters of DescribeContainerInstances (ECS API reference).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DescribeContainerInstances {
    /// Name or ARN; `default` if absent.
    pub cluster: Option<String>,
    /// At most 100 ids or ARNs.
    #[serde(default)]
    pub container_instances: Vec<String>,
}

/// The parameters of UpdateContainerInstancesState (ECS API reference).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateContainerInstancesState {
    /// Name or ARN; `default` if absent.
    pub cluster: Option<String>,
    /// At most 10 ids or ARNs.
    #[serde(default)]
    pub container_instances: Vec<String>,
    /// `ACTIVE` or `DRAINING`.
    #[serde(default)]
    pub status: String,
}

/// The parameters of DescribeTasks (ECS API reference).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DescribeTasks {
    /// Name or ARN; `default` if absent.
    pub cluster: Option<String>,
    /// At most 100 ids or ARNs.
    #[serde(default)]
    pub tasks: Vec<String>,
}

impl World {
    /// Sets container instances to DRAINING, so that nothing more is placed there, or back to ACTIVE. Running tasks
    /// continue.
    ///
    /// # Errors
    /// `ClusterNotFoundException`, `InvalidParameterException`.
    pub fn update_container_instances_state(
        &mut self,
        request: &UpdateContainerInstancesState,
    ) -> Result<Value, ApiError> {
        let (found, failures) =
            self.named_instances(request.cluster.as_deref(), &request.container_instances, MOST_UPDATED)?;
        let drained = match request.status.as_str() {
            "DRAINING" => true,
            "ACTIVE" => false,
            other => {
                let message = format!("Container instance status should be one of [ACTIVE,DRAINING], not {other}");
                return Err(ApiError::ecs("InvalidParameterException", message));
            }
        };
        for id in &found {
            let Some(instance) = self.instances.get_mut(id).filter(|instance| instance.drained != drained) else {
                continue;
            };
            instance.drained = drained;
            self.emit_container_instance(id);
        }
        let shown: Vec<Value> = found.iter().filter_map(|id| Some(self.detail_of(self.instances.get(id)?))).collect();
        Ok(json!({"containerInstances": shown, "failures": failures}))
    }

    /// Describes running tasks. Unknown ones are `failures`.
    ///
    /// # Errors
    /// `ClusterNotFoundException`, `InvalidParameterException`.
    pub fn describe_tasks(&self, request: &DescribeTasks) -> Result<Value, ApiError> {
        let cluster = self.named_cluster(request.cluster.as_deref())?;
        if request.tasks.is_empty() || request.tasks.len() > MOST_IDS {
            let message = format!("tasks must hold between 1 and {MOST_IDS} ids");
            return Err(ApiError::ecs("InvalidParameterException", message));
        }
        let prefix = self.arn("ecs", &format!("task/{cluster}/"));
        let (mut shown, mut failures) = (Vec::new(), Vec::new());
        for id in &request.tasks {
            let arn = format!("{prefix}{}", id.rsplit('/').next().unwrap_or(id));
            match self.attempt_of(&arn) {
                Some(attempt) => shown.push(self.task_detail(attempt)),
                None => failures.push(json!({"arn": arn, "reason": "MISSING"})),
            }
        }
        Ok(json!({"tasks": shown, "failures": failures}))
    }

    fn task_detail(&self, attempt: &Attempt) -> Value {
        let mut container = json!({"taskArn": attempt.ecs_arn, "name": CONTAINER, "lastStatus": "RUNNING"});
        // ECS leaves the field out if a container has no GPUs.
        if !attempt.gpus.is_empty() && !self.trouble.unnamed_gpus {
            container["gpuIds"] = json!(attempt.gpus);
        }
        let zone = self.instances.get(&attempt.instance).map(|instance| instance.zone.clone());
        json!({
            "taskArn": attempt.ecs_arn,
            "containerInstanceArn": attempt.container_instance_arn,
            "availabilityZone": zone,
            "launchType": "EC2",
            "lastStatus": "RUNNING",
            "desiredStatus": "RUNNING",
            "containers": [container],
        })
    }

    /// Returns the answer of the ECS agent's endpoint for a container
    /// (<https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-metadata-endpoint-v4-response.html>), which
    /// names no GPUs.
    pub fn container_metadata(&self, task: &str) -> Option<Value> {
        let (cluster, id) = task.split_once('/')?;
        let attempt = self.attempt_of(&self.arn("ecs", &format!("task/{cluster}/{id}")))?;
        let labels = [("cluster", cluster), ("container-name", CONTAINER), ("task-arn", attempt.ecs_arn.as_str())];
        let labels: serde_json::Map<_, _> =
            labels.into_iter().map(|(name, value)| (format!("com.amazonaws.ecs.{name}"), json!(value))).collect();
        Some(json!({"DockerId": id, "Name": CONTAINER, "Labels": labels, "KnownStatus": "RUNNING", "Type": "NORMAL"}))
    }

    fn attempt_of(&self, task: &str) -> Option<&Attempt> {
        let runs = self.instances.values().flat_map(|instance| &instance.runs);
        runs.filter_map(|run| self.batch.current(*run)).find(|attempt| attempt.ecs_arn == task)
    }

    fn named_cluster<'a>(&self, named: Option<&'a str>) -> Result<&'a str, ApiError> {
        let named = named.unwrap_or("default");
        let cluster = named.rsplit('/').next().unwrap_or(named);
        if self.batch.environments.values().any(|environment| environment.cluster == cluster) {
            return Ok(cluster);
        }
        Err(ApiError::ecs("ClusterNotFoundException", "Cluster not found."))
    }

    /// Describes container instances. Unknown ones, and those whose instance is gone, are `failures`.
    ///
    /// # Errors
    /// `ClusterNotFoundException`, `InvalidParameterException`.
    pub fn describe_container_instances(&self, request: &DescribeContainerInstances) -> Result<Value, ApiError> {
        let (found, failures) =
            self.named_instances(request.cluster.as_deref(), &request.container_instances, MOST_IDS)?;
        let shown: Vec<Value> = found.iter().filter_map(|id| Some(self.detail_of(self.instances.get(id)?))).collect();
        Ok(json!({"containerInstances": shown, "failures": failures}))
    }

    /// Returns the EC2 instances of existing container instances, and the failures of the others.
    fn named_instances(
        &self,
        cluster: Option<&str>,
        wanted: &[String],
        most: usize,
    ) -> Result<(Vec<String>, Vec<Value>), ApiError> {
        let cluster = self.named_cluster(cluster)?;
        if wanted.is_empty() || wanted.len() > most {
            let message = format!("containerInstances must hold between 1 and {most} ids");
            return Err(ApiError::ecs("InvalidParameterException", message));
        }
        let prefix = self.arn("ecs", &format!("container-instance/{cluster}/"));
        let (mut ids, mut failures) = (Vec::new(), Vec::new());
        for id in wanted {
            let arn = format!("{prefix}{}", id.rsplit('/').next().unwrap_or(id));
            let found = self.instances.values().find(|instance| instance.container_instance_arn == arn);
            match found.filter(|instance| instance.state.is_live()) {
                Some(instance) => ids.push(instance.id.clone()),
                None => failures.push(json!({"arn": arn, "reason": "MISSING"})),
            }
        }
        Ok((ids, failures))
    }

    /// Returns the name of the ECS cluster that an instance belongs to.
    pub(super) fn cluster_of(&self, instance: &str) -> Option<String> {
        let environment = &self.instances.get(instance)?.environment;
        Some(self.batch.environments.get(environment)?.cluster.clone())
    }

    /// Returns ARN and detail of an event about an instance
    /// (<https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_container_instance_events.html>).
    pub(super) fn container_instance_event(&self, instance: &str) -> Option<(String, Value)> {
        let found = self.instances.get(instance)?;
        let cluster = self.arn("ecs", &format!("cluster/{}", self.cluster_of(instance)?));
        let is_draining = self.is_draining(found);
        let detail = json!({
            "agentConnected": !found.disconnected,
            "clusterArn": cluster,
            "containerInstanceArn": found.container_instance_arn,
            "ec2InstanceId": found.id,
            "status": if is_draining { "DRAINING" } else { "ACTIVE" },
            // ECS increments the version with every change of the instance.
            "version": if is_draining { 2 } else { 1 },
            "updatedAt": self.now.to_string(),
        });
        Some((found.container_instance_arn.clone(), detail))
    }

    fn detail_of(&self, instance: &Instance) -> Value {
        let attributes = [
            ("ecs.availability-zone", &instance.zone),
            ("ecs.instance-type", &instance.instance_type),
            ("ecs.subnet-id", &instance.subnet),
        ];
        let attributes = attributes.map(|(name, value)| json!({"name": name, "value": value}));
        json!({
            "containerInstanceArn": instance.container_instance_arn,
            "ec2InstanceId": instance.id,
            "status": if self.is_draining(instance) { "DRAINING" } else { "ACTIVE" },
            "agentConnected": !instance.disconnected,
            "runningTasksCount": instance.runs.len(),
            "attributes": attributes,
        })
    }
}
