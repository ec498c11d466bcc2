//! Selects the run's events among those of the account. The functions are pure.

use std::collections::BTreeSet;

use serde_json::Value;

use super::recording::Recorded;

/// Ids of what the run has used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// Ids of Batch jobs, without the number of an array's child.
    pub(super) jobs: BTreeSet<String>,
    /// Ids of instances, volumes and snapshots.
    pub(super) resources: BTreeSet<String>,
}

impl Own {
    /// The events about one of these.
    pub(super) fn of(&self, recording: Vec<Recorded>) -> Vec<Recorded> {
        let hosts: BTreeSet<String> = recording
            .iter()
            .filter(|recorded| self.resources.contains(recorded.text("/detail/ec2InstanceId")))
            .map(|recorded| recorded.text("/detail/containerInstanceArn").to_owned())
            .collect();
        recording.into_iter().filter(|recorded| self.has(recorded, &hosts)).collect()
    }

    fn has(&self, recorded: &Recorded, hosts: &BTreeSet<String>) -> bool {
        match recorded.text("/source") {
            "aws.batch" => {
                let job = recorded.text("/detail/jobId");
                self.jobs.contains(job.split(':').next().unwrap_or(job))
            }
            "aws.ecs" => hosts.contains(recorded.text("/detail/containerInstanceArn")),
            _ec2 => {
                let resources = recorded.event.pointer("/resources").and_then(Value::as_array).into_iter().flatten();
                // ARNs of one resource differ in everything but their ends (fact 8).
                let named = resources.filter_map(Value::as_str).chain([recorded.text("/detail/source")]);
                let mut ids = named.filter_map(|arn| arn.rsplit('/').next());
                ids.any(|id| self.resources.contains(id))
                    || self.resources.contains(recorded.text("/detail/instance-id"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn events_of_others_do_not_count() {
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let own = Own { jobs: set(&["job"]), resources: set(&["i-1", "vol-1"]) };
        let host = |instance: &str, arn: &str| json!({ "source": "aws.ecs", "detail": { "ec2InstanceId": instance, "containerInstanceArn": arn } });
        let events = [
            (json!({ "source": "aws.batch", "detail": { "jobId": "job:3" } }), true),
            (json!({ "source": "aws.batch", "detail": { "jobId": "other:3" } }), false),
            (json!({ "source": "aws.ec2", "resources": ["arn:aws:ec2:us-east-1a:instance/i-1"], "detail": {} }), true),
            (json!({ "source": "aws.ec2", "resources": ["arn:aws:ec2:us-east-1a:instance/i-2"], "detail": {} }), false),
            (json!({ "source": "aws.ec2", "resources": [], "detail": { "instance-id": "i-1" } }), true),
            (
                json!({ "source": "aws.ec2", "resources": ["arn:aws:ec2::us-west-2:snapshot/snap-9"],
                "detail": { "source": "arn:aws:ec2::us-west-2:volume/vol-1" } }),
                true,
            ),
            (host("i-1", "a"), true),
            (host("i-2", "b"), false),
            (json!({ "source": "aws.ecs", "detail": { "containerInstanceArn": "a", "taskArn": "t" } }), true),
            (json!({ "source": "aws.ecs", "detail": { "containerInstanceArn": "b", "taskArn": "t" } }), false),
        ];
        let at = Timestamp::UNIX_EPOCH;
        let recording = events.iter().map(|(event, _)| Recorded { event: event.clone(), at, received: at }).collect();
        let kept: Vec<Value> = own.of(recording).into_iter().map(|recorded| recorded.event).collect();
        let expected: Vec<Value> = events.into_iter().filter(|(_, is_own)| *is_own).map(|(event, _)| event).collect();
        assert_eq!(kept, expected);
    }
}
