//! Follows a change by the events of the stack and of its nested stacks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::primitives::DateTime;
use aws_sdk_cloudformation::types::{ResourceStatus, StackEvent, StackStatus};
use tokio::time::sleep;

use crate::{out, show};
use spotsweep_protocol::failure::{Context, Failure};

/// The pause between two looks at the events.
const PAUSE: Duration = Duration::from_secs(2);

/// The type of a resource that is a stack itself.
const STACK: &str = "AWS::CloudFormation::Stack";

/// The reason of resources that end because another one has failed.
const CANCELLED: &str = "Resource creation cancelled";

/// What has been seen of a change.
#[derive(Debug)]
pub(in crate::commands) struct Progress<'a> {
    client: &'a Client,
    stack: &'a str,
    seen: BTreeSet<String>,
    /// The nested stacks by their physical ids, with the names of their resources.
    nested: BTreeMap<String, String>,
    /// The time of the first event of the change.
    begun: Option<DateTime>,
    /// Why resources have failed.
    failures: Vec<String>,
}

impl<'a> Progress<'a> {
    /// Begins before the change, so that earlier events do not count.
    pub(in crate::commands) async fn of(client: &'a Client, stack: &'a str) -> Result<Self, Failure> {
        let mut progress =
            Self { client, stack, seen: BTreeSet::new(), nested: BTreeMap::new(), begun: None, failures: Vec::new() };
        for event in progress.events(stack).await? {
            progress.seen.extend(event.event_id);
        }
        Ok(progress)
    }

    /// Shows each resource that is done, until the stack is.
    ///
    /// # Errors
    /// Returns the reasons if the change has failed and was rolled back.
    pub(in crate::commands) async fn follow(&mut self) -> Result<(), Failure> {
        loop {
            // Right after the request CloudFormation may still show the status before the change. The events after the
            // last look are read too.
            let has_begun = self.begun.is_some();
            let status = self.status().await?;
            self.look(self.stack.to_owned(), String::new()).await?;
            for (id, name) in self.nested.clone() {
                self.look(id, format!("{name}/")).await?;
            }
            match status.as_str() {
                _ if !has_begun => sleep(PAUSE).await,
                "CREATE_COMPLETE" | "UPDATE_COMPLETE" | "DELETE_COMPLETE" => return Ok(()),
                busy if busy.ends_with("_IN_PROGRESS") => sleep(PAUSE).await,
                ended => {
                    let reasons: String = self.failures.iter().map(|why| format!("\n  {why}")).collect();
                    return Err(Failure::new(format!("stack {} ended as {ended}{reasons}", self.stack)));
                }
            }
        }
    }

    async fn status(&self) -> Result<String, Failure> {
        let described = self.client.describe_stacks().stack_name(self.stack).send().await;
        let described = described.context(|| "cannot follow the change (cloudformation:DescribeStacks)")?;
        let status = described.stacks().first().and_then(|stack| stack.stack_status());
        Ok(status.map_or("", StackStatus::as_str).to_owned())
    }

    /// The events of a stack that have not been seen, oldest first. CloudFormation lists the newest first.
    async fn events(&self, stack: &str) -> Result<Vec<StackEvent>, Failure> {
        let (mut events, mut token) = (Vec::new(), None);
        loop {
            let asked = self.client.describe_stack_events().stack_name(stack).set_next_token(token);
            let page = asked.send().await;
            let page = page.context(|| "cannot follow the change (cloudformation:DescribeStackEvents)")?;
            let listed = page.stack_events.unwrap_or_default();
            let is_seen = |event: &StackEvent| event.event_id.as_ref().is_some_and(|id| self.seen.contains(id));
            let has_seen = listed.iter().any(is_seen);
            events.extend(listed.into_iter().filter(|event| !is_seen(event)));
            token = page.next_token.filter(|_| !has_seen);
            if token.is_none() {
                events.reverse();
                return Ok(events);
            }
        }
    }

    async fn look(&mut self, stack: String, prefix: String) -> Result<(), Failure> {
        for event in self.events(&stack).await? {
            let id = event.event_id.clone().unwrap_or_default();
            let is_earlier = event.timestamp.zip(self.begun).is_some_and(|(at, begun)| at < begun);
            self.seen.insert(id);
            if is_earlier {
                continue;
            }
            self.begun = self.begun.or(event.timestamp);
            let is_itself = event.physical_resource_id == event.stack_id;
            let text = |member: Option<String>| member.unwrap_or_default();
            let name = text(event.logical_resource_id);
            let (kind, status) = (text(event.resource_type), event.resource_status);
            let status = status.as_ref().map_or("", ResourceStatus::as_str);
            if kind == STACK && !is_itself {
                self.nested.extend(event.physical_resource_id.filter(|id| !id.is_empty()).map(|id| (id, name.clone())));
            }
            let reason = text(event.resource_status_reason);
            if status.ends_with("_FAILED") && !reason.contains(CANCELLED) {
                self.failures.push(format!("{prefix}{name}: {reason}"));
            }
            if !status.ends_with("_IN_PROGRESS") && !is_itself {
                out::results(|to| show::row(to, &[16, 40, 0], [status, &format!("{prefix}{name}"), &kind].iter()))?;
            }
        }
        Ok(())
    }
}
