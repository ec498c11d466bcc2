//! Sorts a recording by instance and by attempt.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::super::recording::Recorded;
use super::timestamp;

/// This event's fields are in the Amazon ECS developer guide, "Amazon ECS container instance state change events".
const CONTAINER_INSTANCE: &str = "ECS Container Instance State Change";

/// What the checks need of a recording.
#[derive(Debug, Default)]
pub(super) struct Seen<'a> {
    /// The first interruption warning of each instance.
    pub(super) warnings: BTreeMap<&'a str, &'a Recorded>,
    /// The first rebalance recommendation of each instance.
    pub(super) rebalances: BTreeMap<&'a str, &'a Recorded>,
    /// Instances by the container instance ARN that Batch and ECS use.
    pub(super) container_instances: BTreeMap<&'a str, &'a str>,
    /// When an instance was first DRAINING.
    pub(super) draining: BTreeMap<&'a str, Timestamp>,
    /// When an instance was first under notice, or shut down.
    pub(super) ending: BTreeMap<&'a str, Timestamp>,
    /// The newest description of each attempt, by job and number.
    pub(super) attempts: BTreeMap<(&'a str, usize), Attempt<'a>>,
}

/// An attempt of a job.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    job: &'a str,
    number: usize,
    /// `i-…`, if ECS's events show it.
    pub(super) instance: Option<&'a str>,
    pub(super) started: Option<Timestamp>,
    pub(super) stopped: Option<Timestamp>,
    pub(super) exit_code: Option<i64>,
    pub(super) reason: &'a str,
}

impl Attempt<'_> {
    pub(super) fn name(&self) -> String {
        format!("job {} attempt {}", self.job, self.number)
    }
}

impl<'a> Seen<'a> {
    /// Sorts a recording, whose oldest event comes first.
    pub(super) fn of(recording: &'a [Recorded]) -> Self {
        let mut seen = Self::default();
        for recorded in recording {
            let notified = recorded.text("/detail/instance-id");
            match recorded.kind() {
                "EC2 Spot Instance Interruption Warning" => {
                    seen.warnings.entry(notified).or_insert(recorded);
                    seen.ending.entry(notified).or_insert(recorded.at);
                }
                "EC2 Instance Rebalance Recommendation" => {
                    seen.rebalances.entry(notified).or_insert(recorded);
                }
                "EC2 Instance State-change Notification" if recorded.text("/detail/state") == "shutting-down" => {
                    seen.ending.entry(notified).or_insert(recorded.at);
                }
                CONTAINER_INSTANCE => {
                    let instance = recorded.text("/detail/ec2InstanceId");
                    seen.container_instances.insert(recorded.text("/detail/containerInstanceArn"), instance);
                    if recorded.text("/detail/status") == "DRAINING" {
                        seen.draining.entry(instance).or_insert(recorded.at);
                    }
                }
                _ => {}
            }
        }
        for recorded in recording.iter().filter(|recorded| recorded.kind() == "Batch Job State Change") {
            let job = recorded.text("/detail/jobId");
            let attempts = recorded.event.pointer("/detail/attempts").and_then(Value::as_array);
            for (number, attempt) in (1..).zip(attempts.into_iter().flatten()) {
                seen.attempts.insert((job, number), seen.attempt(job, number, attempt));
            }
        }
        seen
    }

    /// For jobs with `ecsProperties`, Batch has the container's fields in `taskProperties`.
    fn attempt(&self, job: &'a str, number: usize, attempt: &'a Value) -> Attempt<'a> {
        let either = |one: &str, other: &str| attempt.pointer(one).or_else(|| attempt.pointer(other));
        let time = |name: &str| attempt.get(name).and_then(Value::as_i64).and_then(timestamp);
        let host = either("/container/containerInstanceArn", "/taskProperties/0/containerInstanceArn");
        let exit_code = either("/container/exitCode", "/taskProperties/0/containers/0/exitCode");
        Attempt {
            job,
            number,
            instance: host.and_then(Value::as_str).and_then(|arn| self.container_instances.get(arn).copied()),
            started: time("startedAt"),
            stopped: time("stoppedAt"),
            exit_code: exit_code.and_then(Value::as_i64),
            reason: attempt.get("statusReason").and_then(Value::as_str).unwrap_or_default(),
        }
    }
}
