//! ECS, as far as Batch's clusters go: from a container instance to its EC2 instance (fact 13).

use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiError, Instance, World};

const MOST_IDS: usize = 100;

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

impl World {
    /// Shows container instances; unknown ones, and those whose machine is gone, are `failures`.
    ///
    /// # Errors
    /// `ClusterNotFoundException`, `InvalidParameterException`.
    pub fn describe_container_instances(&self, request: &DescribeContainerInstances) -> Result<Value, ApiError> {
        let named = request.cluster.as_deref().unwrap_or("default");
        let cluster = named.rsplit('/').next().unwrap_or(named);
        if !self.batch.environments.values().any(|environment| environment.cluster == cluster) {
            return Err(ApiError::ecs("ClusterNotFoundException", "Cluster not found."));
        }
        let wanted = &request.container_instances;
        if wanted.is_empty() || wanted.len() > MOST_IDS {
            let message = format!("containerInstances must hold between 1 and {MOST_IDS} ids");
            return Err(ApiError::ecs("InvalidParameterException", message));
        }
        let prefix = self.arn("ecs", &format!("container-instance/{cluster}/"));
        let (mut shown, mut failures) = (Vec::new(), Vec::new());
        for id in wanted {
            let arn = format!("{prefix}{}", id.rsplit('/').next().unwrap_or(id));
            let found = self.instances.values().find(|instance| instance.container_instance_arn == arn);
            match found.filter(|instance| instance.state.is_live()) {
                Some(instance) => shown.push(self.detail_of(instance)),
                None => failures.push(json!({"arn": arn, "reason": "MISSING"})),
            }
        }
        Ok(json!({"containerInstances": shown, "failures": failures}))
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
