//! ECS, with the calls that the AWS executor makes.

use serde_json::{Value, json};
use spotsweep_control_plane::event::TrialRequest;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::workspace::{Fact, TrialRef};
use spotsweep_protocol::claim::Task;

use super::{Cloud, Executed};

impl Cloud {
    pub(super) async fn locate(&self, trial: TrialRef, attempt: u32, container_instance: &str) -> Executed {
        let cluster = container_instance.rsplit('/').nth(1).unwrap_or_default();
        let request =
            serde_json::from_value(json!({ "cluster": cluster, "containerInstances": [container_instance] }))?;
        let found =
            self.calls.call("DescribeContainerInstances", || self.world().describe_container_instances(&request));
        let found = found.await??;
        let host = &found["containerInstances"][0];
        let zone = host["attributes"].as_array().into_iter().flatten();
        let zone = zone.filter(|attribute| attribute["name"] == "ecs.availability-zone");
        let zone = zone.filter_map(|attribute| attribute["value"].as_str()).next();
        Ok(vec![match (host["ec2InstanceId"].as_str(), zone) {
            (Some(instance), Some(zone)) => {
                let (instance, zone) = (instance.to_owned(), zone.to_owned());
                Outcome::AttemptLocated { trial, attempt, instance, zone }
            }
            _ => Outcome::Workspace(trial, Fact::PlaceUnknown),
        }])
    }

    pub(super) async fn find_gpus(&self, request: TrialRequest, task: &Task) -> Executed {
        let cluster = task.arn.rsplit('/').nth(1).unwrap_or_default();
        let described = serde_json::from_value(json!({ "cluster": cluster, "tasks": [task.arn] }))?;
        let found = self.calls.call("DescribeTasks", || self.world().describe_tasks(&described)).await??;
        let mut containers = found["tasks"][0]["containers"].as_array().into_iter().flatten();
        let own = containers.find(|container| container["name"] == task.container.as_str());
        let uuids = |own: &Value| {
            let uuids = own["gpuIds"].as_array().into_iter().flatten().filter_map(Value::as_str);
            uuids.map(str::to_owned).collect()
        };
        let gpus = own.map(uuids);
        Ok(vec![Outcome::GpusFound { request, gpus }])
    }
}
