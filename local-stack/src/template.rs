//! Deploys a CloudFormation template and waits for the stack.

use std::time::Duration;

use aws_sdk_cloudformation::types::{Capability, Parameter, StackStatus};
use tokio::time::{Instant, sleep};

use spotsweep_protocol::failure::{Context, Failure};

/// ministack needs less than a second.
const DEPLOY_DEADLINE: Duration = Duration::from_secs(60);

/// A template, and what it is deployed with.
#[derive(Debug)]
pub(crate) struct Template<'a> {
    /// Name of the stack.
    pub stack: &'a str,
    /// The template as YAML or JSON.
    pub source: Source<'a>,
    /// Names and values of the parameters.
    pub parameters: &'a [(&'a str, &'a str)],
}

/// Where a template is.
#[derive(Debug)]
pub(crate) enum Source<'a> {
    /// In the request, which takes 51 200 bytes
    /// (<https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html>).
    Text(&'a str),
    /// In S3.
    Url(&'a str),
}

impl Template<'_> {
    /// Creates the stack, and waits until it is complete.
    pub(crate) async fn deploy(&self, client: &aws_sdk_cloudformation::Client) -> Result<(), Failure> {
        let parameter =
            |(key, value): &(&str, &str)| Parameter::builder().parameter_key(*key).parameter_value(*value).build();
        let request = match self.source {
            Source::Text(text) => client.create_stack().template_body(text),
            Source::Url(url) => client.create_stack().template_url(url),
        };
        request
            .stack_name(self.stack)
            .capabilities(Capability::CapabilityNamedIam)
            .capabilities(Capability::CapabilityAutoExpand)
            .set_parameters(Some(self.parameters.iter().map(parameter).collect()))
            .send()
            .await
            .context(|| format!("cannot deploy {}", self.stack))?;
        let deadline = Instant::now() + DEPLOY_DEADLINE;
        loop {
            match status(client, self.stack).await? {
                StackStatus::CreateComplete => return Ok(()),
                StackStatus::CreateInProgress if Instant::now() < deadline => sleep(Duration::from_millis(50)).await,
                other => return Err(refused(client, self.stack, &other).await),
            }
        }
    }
}

/// Reads the stack of this name from CloudFormation.
pub(super) async fn describe(
    client: &aws_sdk_cloudformation::Client,
    stack: &str,
) -> Result<aws_sdk_cloudformation::types::Stack, Failure> {
    let stacks = client.describe_stacks().stack_name(stack).send().await.context(|| "cannot follow the deployment")?;
    let stack = stacks.stacks.unwrap_or_default().into_iter().next();
    stack.ok_or_else(|| Failure::new("the stack that was just created is not listed"))
}

async fn status(client: &aws_sdk_cloudformation::Client, stack: &str) -> Result<StackStatus, Failure> {
    describe(client, stack)
        .await?
        .stack_status
        .ok_or_else(|| Failure::new("the stack that was just created has no status"))
}

/// The reason of each resource for which the deployment failed.
async fn refused(client: &aws_sdk_cloudformation::Client, stack: &str, status: &StackStatus) -> Failure {
    let events = client.describe_stack_events().stack_name(stack).send().await;
    let reasons: Vec<String> = events
        .map(|events| events.stack_events.unwrap_or_default())
        .unwrap_or_default()
        .into_iter()
        .filter_map(|event| {
            let reason = event.resource_status_reason.filter(|reason| !reason.is_empty())?;
            Some(format!("\n    {}: {reason}", event.logical_resource_id.unwrap_or_default()))
        })
        .collect();
    Failure::new(format!("deploying {stack} ended as {status}{}", reasons.concat()))
}
