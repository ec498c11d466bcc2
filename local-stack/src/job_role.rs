//! The role of the jobs, as `infra/compute.yaml` makes it: what `RunnerPolicy` allows, and no more. Batch gives a
//! job credentials of its role; here they are always the same, and ministack takes them for a session of it.

use aws_sdk_cloudformation::Client;

use crate::template::Template;
use spotsweep_protocol::failure::Failure;

/// The role's name.
pub(crate) const JOB_ROLE: &str = "job";
/// Key id, secret and session token of every job. The beginning makes it a session's.
pub(crate) const JOB_CREDENTIAL: &str = "ASIAJOBJOBJOBJOBJOB0";
/// What the policy allows is the control plane's to say.
const TEMPLATE: &str = r#"{
    "Parameters": { "Name": { "Type": "String" }, "RunnerPolicy": { "Type": "String" } },
    "Resources": { "Job": { "Type": "AWS::IAM::Role", "Properties": {
        "RoleName": { "Ref": "Name" },
        "AssumeRolePolicyDocument": { "Version": "2012-10-17", "Statement": [{ "Effect": "Allow",
            "Principal": { "Service": "ecs-tasks.amazonaws.com" }, "Action": "sts:AssumeRole" }] },
        "ManagedPolicyArns": [{ "Ref": "RunnerPolicy" }] } } } }"#;

/// Makes it. `runner_policy` is an output of the control plane.
pub(crate) async fn create(client: &Client, runner_policy: &str) -> Result<(), Failure> {
    let parameters = [("Name", JOB_ROLE), ("RunnerPolicy", runner_policy)];
    Template { stack: "spotsweep-local-job", text: TEMPLATE, parameters: &parameters }.deploy(client).await
}
