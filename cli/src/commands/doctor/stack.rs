//! Checks the CloudFormation stack, and reads the names of its resources.

use std::collections::BTreeMap;

use aws_sdk_cloudformation::types::StackStatus;

use spotsweep_protocol::failure::Failure;

use super::finding::Finding;
use crate::target::Target;

const ABOUT: &str = "stack";

/// Names from the stack.
#[derive(Debug)]
pub(in crate::commands) struct Deployment {
    outputs: BTreeMap<String, String>,
    parameters: BTreeMap<String, String>,
}

impl Deployment {
    /// Finds the stack. Without it there is nothing to check.
    pub(in crate::commands) async fn find(target: &Target) -> Result<(Self, Vec<Finding>), Box<Finding>> {
        let client = aws_sdk_cloudformation::Client::new(&target.config);
        let described = client.describe_stacks().stack_name(&target.name).send().await;
        let described = described.map_err(|error| {
            let refused = Finding::refused(ABOUT, "cloudformation:DescribeStacks", &error);
            let fix =
                format!("is {} the stack's name, and this its region? `aws cloudformation list-stacks`", target.name);
            Box::new(Finding { fix: Some(fix), ..refused })
        })?;
        let stack = described.stacks().first();
        let outputs = stack.map(|stack| stack.outputs()).unwrap_or_default().iter();
        let outputs = outputs.filter_map(|output| Some((output.output_key.clone()?, output.output_value.clone()?)));
        let parameters = stack.map(|stack| stack.parameters()).unwrap_or_default().iter();
        let parameters =
            parameters.filter_map(|given| Some((given.parameter_key.clone()?, given.parameter_value.clone()?)));
        let deployment = Self { outputs: outputs.collect(), parameters: parameters.collect() };
        let status = stack.and_then(|stack| stack.stack_status()).map_or("", StackStatus::as_str);
        let finding = match status {
            "CREATE_COMPLETE" | "UPDATE_COMPLETE" | "IMPORT_COMPLETE" => {
                Finding::ok(ABOUT, format!("{}: {status}", target.name))
            }
            "UPDATE_ROLLBACK_COMPLETE" => Finding::problem(
                ABOUT,
                format!("{}: the last deployment was taken back", target.name),
                format!("`aws cloudformation describe-stack-events --stack-name {}` says why", target.name),
            ),
            other => Finding::problem(
                ABOUT,
                format!("{} is {other}", target.name),
                "wait until the deployment ends, or deploy again",
            ),
        };
        let missing: Vec<&str> = ["Bucket", "Table", "FailedEvents", "UndeliveredEvents"]
            .into_iter()
            .filter(|name| deployment.output(name).is_none())
            .collect();
        if !missing.is_empty() {
            let fix = "name the stack that infra/spotsweep.yaml or infra/control-plane.yaml made";
            return Err(Box::new(Finding::problem(ABOUT, format!("it has no output {}", missing.join(", ")), fix)));
        }
        Ok((deployment, vec![finding]))
    }

    /// Finds the stack for a command that needs it. A problem with the stack is an error then.
    pub(in crate::commands) async fn open(target: &Target) -> Result<Self, Failure> {
        let found = Self::find(target).await.map_err(|problem| {
            let fix = problem.fix.map(|fix| format!("; {fix}")).unwrap_or_default();
            Failure::new(format!("stack {}: {}{fix}", target.name, problem.said))
        })?;
        Ok(found.0)
    }

    /// An output that a command needs.
    pub(in crate::commands) fn required(&self, name: &str) -> Result<String, Failure> {
        let missing = || Failure::new(format!("the stack has no output {name}"));
        self.output(name).map(str::to_owned).ok_or_else(missing)
    }

    /// An output.
    pub(in crate::commands) fn output(&self, name: &str) -> Option<&str> {
        self.outputs.get(name).map(String::as_str)
    }

    /// Prefix of the names of all functions and rules. It is the template's default if none was given.
    pub(in crate::commands) fn prefix(&self) -> &str {
        self.parameters.get("NamePrefix").map_or("spotsweep-", String::as_str)
    }

    /// The value that the instances' tag must match. `infra/spotsweep.yaml` has it as an output, and the control
    /// plane's own template as a parameter.
    pub(in crate::commands) fn compute_tag(&self) -> &str {
        let given = || self.parameters.get("ComputeTag").map(String::as_str);
        self.output("ComputeTag").or_else(given).unwrap_or("*")
    }
}
