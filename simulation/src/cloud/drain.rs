//! Instances that are to take no further container.

use serde_json::json;
use spotsweep_control_plane::event::TrialRequest;
use spotsweep_control_plane::outcome::{Drained, Outcome};
use spotsweep_protocol::ids::DescribedJob;
use spotsweep_world::Service;

use super::{Cloud, Executed};
use crate::injected_bug::InjectedBug;

impl Cloud {
    pub(super) async fn drain(&self, request: TrialRequest) -> Executed {
        let (sweep, index, job) = (request.sweep.clone(), Some(request.index), request.job.clone());
        let drained = match self.host(DescribedJob { sweep, index, job }, request.attempt).await? {
            Some(instance) => self.drain_host(instance).await?,
            None => Drained::NotPlaced,
        };
        Ok(vec![Outcome::InstanceDrained { request, drained }])
    }

    async fn drain_host(&self, instance: String) -> Result<Drained, Box<dyn std::error::Error + Send + Sync>> {
        if self.injected_bug() == Some(InjectedBug::KeepUnfit) {
            return Ok(Drained::Yes(instance));
        }
        let cluster = instance.rsplit('/').nth(1).unwrap_or_default();
        let wanted = json!({ "cluster": cluster, "containerInstances": [instance], "status": "DRAINING" });
        let wanted = serde_json::from_value(wanted)?;
        let action = "UpdateContainerInstancesState";
        let updated = self.aws(Service::Ecs, action, |world| world.update_container_instances_state(&wanted));
        Ok(match updated.await? {
            Ok(_) => Drained::Yes(instance),
            Err(error) => Drained::Refused(error.to_string()),
        })
    }
}
