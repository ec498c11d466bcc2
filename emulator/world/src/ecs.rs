//! ECS, as far as Batch's clusters go: from a container instance to its EC2 instance (fact 13), and draining.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiError, Instance, World};

const MOST_IDS: usize = 100;
const MOST_UPDATED: usize = 10;

/// Parameters of DescribeContainerInstances (ECS API reference).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DescribeContainerInstances {
    /// Name or ARN; `default` if absent.
    pub cluster: Option<String>,
    /// At most 100 ids or ARNs.
    #[serde(default)]
    pub container_instances: Vec<String>,
}

/// Parameters of UpdateContainerInstancesState (ECS API reference).
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

impl World {
    /// Sets container instances to DRAINING, on which nothing more is placed, or back to ACTIVE. What runs there goes on.
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

    /// Shows container instances; unknown ones, and those whose machine is gone, are `failures`.
    ///
    /// # Errors
    /// `ClusterNotFoundException`, `InvalidParameterException`.
    pub fn describe_container_instances(&self, request: &DescribeContainerInstances) -> Result<Value, ApiError> {
        let (found, failures) =
            self.named_instances(request.cluster.as_deref(), &request.container_instances, MOST_IDS)?;
        let shown: Vec<Value> = found.iter().filter_map(|id| Some(self.detail_of(self.instances.get(id)?))).collect();
        Ok(json!({"containerInstances": shown, "failures": failures}))
    }

    /// The EC2 instances of container instances that are there, and the failures of the others.
    fn named_instances(
        &self,
        cluster: Option<&str>,
        wanted: &[String],
        most: usize,
    ) -> Result<(Vec<String>, Vec<Value>), ApiError> {
        let named = cluster.unwrap_or("default");
        let cluster = named.rsplit('/').next().unwrap_or(named);
        if !self.batch.environments.values().any(|environment| environment.cluster == cluster) {
            return Err(ApiError::ecs("ClusterNotFoundException", "Cluster not found."));
        }
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

    /// The name of the ECS cluster that an instance belongs to.
    pub(super) fn cluster_of(&self, instance: &str) -> Option<String> {
        let environment = &self.instances.get(instance)?.environment;
        Some(self.batch.environments.get(environment)?.cluster.clone())
    }

    /// ARN and detail of an event about an instance
    /// (<https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_container_instance_events.html>).
    pub(super) fn container_instance_event(&self, instance: &str) -> Option<(String, Value)> {
        let found = self.instances.get(instance)?;
        let cluster = self.arn("ecs", &format!("cluster/{}", self.cluster_of(instance)?));
        let is_draining = self.is_draining(found);
        let detail = json!({
            "agentConnected": true,
            "clusterArn": cluster,
            "containerInstanceArn": found.container_instance_arn,
            "ec2InstanceId": found.id,
            "status": if is_draining { "DRAINING" } else { "ACTIVE" },
            // ECS counts up with every change of the instance.
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
            "agentConnected": true,
            "runningTasksCount": instance.runs.len(),
            "attributes": attributes,
        })
    }
}
