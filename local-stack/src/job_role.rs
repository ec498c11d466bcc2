//! The role of the jobs, as `infra/compute.yaml` makes it: it allows what `RunnerPolicy` allows, and no more. On AWS,
//! Batch issues credentials of the role to each job. Here they are always the same, and ministack takes them for a
//! session of the role.

use aws_sdk_cloudformation::Client;

use crate::template::{Source, Template};
use spotsweep_protocol::failure::Failure;

pub(crate) const JOB_ROLE: &str = "job";
/// Key id, secret and session token of every job. ministack takes a key for a session's by its first four letters.
pub(crate) const JOB_CREDENTIAL: &str = "ASIAJOBJOBJOBJOBJOB0";
/// The policy is a parameter, because the control plane's template defines what it allows.
const TEMPLATE: &str = r#"{
    "Parameters": { "Name": { "Type": "String" }, "RunnerPolicy": { "Type": "String" } },
    "Resources": { "Job": { "Type": "AWS::IAM::Role", "Properties": {
        "RoleName": { "Ref": "Name" },
        "AssumeRolePolicyDocument": { "Version": "2012-10-17", "Statement": [{ "Effect": "Allow",
            "Principal": { "Service": "ecs-tasks.amazonaws.com" }, "Action": "sts:AssumeRole" }] },
        "ManagedPolicyArns": [{ "Ref": "RunnerPolicy" }] } } } }"#;

/// Creates the role. `runner_policy` is an output of the control plane's stack.
pub(crate) async fn create(client: &Client, runner_policy: &str) -> Result<(), Failure> {
    let parameters = [("Name", JOB_ROLE), ("RunnerPolicy", runner_policy)];
    Template { stack: "spotsweep-local-job", source: Source::Text(TEMPLATE), parameters: &parameters }
        .deploy(client)
        .await
}
