//! What SubmitJob is sent.

use serde_json::{Value, json};
use spotsweep_control_plane::command::Submission;
use spotsweep_control_plane::trial::{RetryOn, retry_rules};

pub(super) fn submit_request(submission: &Submission) -> Value {
    let pairs: Vec<Value> =
        submission.variables().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let resources: Vec<Value> =
        submission.resources.iter().map(|(kind, value)| json!({ "type": kind, "value": value })).collect();
    let mut request = json!({
        "jobName": submission.name.to_string(),
        "jobQueue": submission.queue,
        "jobDefinition": submission.definition,
        "containerOverrides": { "environment": pairs, "resourceRequirements": resources },
        "retryStrategy": retry_strategy(submission.attempts),
    });
    if submission.trials > 1 {
        request["arrayProperties"] = json!({ "size": submission.trials });
    }
    request
}

/// The retry strategy of a job, as SubmitJob takes it.
pub fn retry_strategy(attempts: u8) -> Value {
    let rules = retry_rules().map(|rule| {
        let on = match rule.on {
            RetryOn::StatusReason => "onStatusReason",
            RetryOn::ExitCode => "onExitCode",
            RetryOn::Reason => "onReason",
        };
        json!({ on: rule.pattern, "action": if rule.retries { "RETRY" } else { "EXIT" } })
    });
    json!({ "attempts": attempts, "evaluateOnExit": rules })
}
