//! EventBridge events in the form of AWS's documented samples.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ebs::Snapshot;
use super::{Effect, InstanceState, World};

impl World {
    /// Emits a job's state change, which AWS delivers at least once (fact 2).
    pub(super) fn emit_job(&mut self, job_arn: &str, detail: &Value) {
        self.emit("aws.batch", "Batch Job State Change", job_arn, detail);
    }

    /// Emits an instance's state change, which AWS delivers best effort (fact 2).
    pub(super) fn emit_instance_state(&mut self, instance: &str, state: InstanceState) {
        let arn = self.arn("ec2", &format!("instance/{instance}"));
        let detail = json!({"instance-id": instance, "state": state.as_str()});
        self.emit("aws.ec2", "EC2 Instance State-change Notification", &arn, &detail);
    }

    /// Emits an interruption notice. Its ARN has the zone in place of the region, and no account (fact 8).
    pub(super) fn emit_interruption_warning(&mut self, instance: &str, zone: &str) {
        let arn = format!("arn:aws:ec2:{zone}:instance/{instance}");
        let detail = json!({"instance-id": instance, "instance-action": "terminate"});
        self.emit("aws.ec2", "EC2 Spot Instance Interruption Warning", &arn, &detail);
    }

    /// Emits a rebalance recommendation: the instance has a higher risk of a reclaim.
    pub(super) fn emit_rebalance(&mut self, instance: &str) {
        let arn = self.arn("ec2", &format!("instance/{instance}"));
        let detail = json!({"instance-id": instance});
        self.emit("aws.ec2", "EC2 Instance Rebalance Recommendation", &arn, &detail);
    }

    /// Emits, if wanted, that an instance has joined its cluster or drains. AWS delivers it at least once (fact 2).
    pub(super) fn emit_container_instance(&mut self, instance: &str) {
        let detail = if self.ecs_events { self.container_instance_event(instance) } else { None };
        if let Some((arn, detail)) = detail {
            self.emit("aws.ecs", "ECS Container Instance State Change", &arn, &detail);
        }
    }

    /// Emits an event about a volume, which AWS delivers best effort (fact 2).
    pub(super) fn emit_volume(&mut self, volume: &str, event: &str, result: &str, cause: &str) {
        let arn = self.arn("ec2", &format!("volume/{volume}"));
        let detail = json!({"result": result, "cause": cause, "event": event, "request-id": self.ids.uuid()});
        self.emit("aws.ec2", "EBS Volume Notification", &arn, &detail);
    }

    /// Emits an event about a snapshot, which AWS delivers best effort (fact 2). Its ARNs have the region in place of
    /// the account (fact 8).
    pub(super) fn emit_snapshot(&mut self, id: &str, result: &str, cause: &str) {
        let Some(Snapshot { volume, started_at, .. }) = self.snapshot_of(id) else { return };
        let arn = |resource: &str| format!("arn:aws:ec2::{}:{resource}", self.settings.region);
        let snapshot = arn(&format!("snapshot/{id}"));
        let detail = json!({
            "event": "createSnapshot",
            "result": result,
            "cause": cause,
            "request-id": "",
            "snapshot_id": snapshot,
            "source": arn(&format!("volume/{volume}")),
            "startTime": whole_seconds(*started_at),
            "endTime": whole_seconds(self.now),
        });
        self.emit("aws.ec2", "EBS Snapshot Notification", &snapshot, &detail);
    }

    fn emit(&mut self, source: &str, detail_type: &str, resource: &str, detail: &Value) {
        let event = json!({
            "version": "0",
            "id": self.ids.uuid(),
            "detail-type": detail_type,
            "source": source,
            "account": self.settings.account,
            "time": whole_seconds(self.now),
            "region": self.settings.region,
            "resources": [resource],
            "detail": detail,
        });
        self.effects.push(Effect::Emit(event));
    }
}

/// Writes a time in ISO 8601 without fractions, as EventBridge and IMDS do.
pub fn whole_seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
