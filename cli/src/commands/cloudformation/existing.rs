//! The stack as CloudFormation has it.

use std::collections::BTreeMap;

use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::error::ProvideErrorMetadata;
use aws_sdk_cloudformation::types::StackStatus;

use spotsweep_protocol::failure::{Context, Failure};

/// Name, parameters and outputs of a stack.
#[derive(Debug, Default)]
pub(in crate::commands) struct Existing {
    pub(in crate::commands) name: String,
    id: Option<String>,
    /// Its state, if its first deployment has failed. CloudFormation then takes no change, and only deletes it.
    failed: Option<String>,
    parameters: BTreeMap<String, String>,
    outputs: BTreeMap<String, String>,
}

impl Existing {
    /// Finds the stack.
    ///
    /// # Errors
    /// It cannot be read, or it is in a state in which CloudFormation takes no change.
    pub(in crate::commands) async fn find(client: &Client, name: &str) -> Result<Self, Failure> {
        let described = match client.describe_stacks().stack_name(name).send().await {
            // The code for a stack that does not exist, among others.
            Err(error) if error.message().is_some_and(|said| said.contains("does not exist")) => {
                return Ok(Self { name: name.to_owned(), ..Self::default() });
            }
            described => described.context(|| "cannot look for the stack (cloudformation:DescribeStacks)")?,
        };
        let Some(stack) = described.stacks.unwrap_or_default().into_iter().next() else {
            return Ok(Self { name: name.to_owned(), ..Self::default() });
        };
        let status = stack.stack_status.as_ref().map_or("", StackStatus::as_str);
        let refuse = |why: &str| Err(Failure::new(format!("stack {name} is {status}: {why}")));
        match status {
            // A change set for a new stack leaves it so.
            "REVIEW_IN_PROGRESS" => return Ok(Self { name: name.to_owned(), ..Self::default() }),
            "ROLLBACK_COMPLETE" | "ROLLBACK_FAILED" | "CREATE_FAILED" | "DELETE_FAILED" => {
                let (name, failed) = (name.to_owned(), Some(status.to_owned()));
                return Ok(Self { name, id: stack.stack_id, failed, ..Self::default() });
            }
            "UPDATE_ROLLBACK_FAILED" => {
                return refuse("`aws cloudformation continue-update-rollback` ends the rollback first");
            }
            busy if busy.ends_with("_IN_PROGRESS") => return refuse("wait until CloudFormation is done"),
            _takes_changes => {}
        }
        let pairs = stack.parameters.unwrap_or_default().into_iter();
        let parameters = pairs.filter_map(|given| Some((given.parameter_key?, given.parameter_value?))).collect();
        let outputs = stack.outputs.unwrap_or_default().into_iter();
        let outputs = outputs.filter_map(|output| Some((output.output_key?, output.output_value?))).collect();
        Ok(Self { name: name.to_owned(), id: stack.stack_id, failed: None, parameters, outputs })
    }

    /// Whether the stack exists.
    pub(in crate::commands) fn is_there(&self) -> bool {
        self.id.is_some()
    }

    /// Its state, if its first deployment or its deletion has failed.
    pub(in crate::commands) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Its ARN, by which it is found after its deletion too.
    pub(in crate::commands) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub(in crate::commands) fn parameter(&self, name: &str) -> Option<&String> {
        self.parameters.get(name)
    }

    pub(in crate::commands) fn output(&self, name: &str) -> Option<&str> {
        self.outputs.get(name).map(String::as_str)
    }
}
