//! A change of the stack: prepared, shown, and executed or discarded.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::types::{
    Capability, ChangeAction, ChangeSetStatus, ChangeSetType, Parameter, ResourceChange,
};
use jiff::Timestamp;
use tokio::time::sleep;

use super::super::cloudformation::existing::Existing;
use super::super::cloudformation::progress::Progress;
use crate::{out, show};
use spotsweep_protocol::failure::{Context, Failure};

/// The pause between two looks at a change set that CloudFormation computes.
const PAUSE: Duration = Duration::from_secs(1);

/// How CloudFormation says that a change set would change nothing. It has no code for that.
const NOTHING: [&str; 2] = ["didn't contain changes", "No updates are to be performed"];

/// A change set.
#[derive(Debug)]
pub(super) struct Change<'a> {
    client: &'a Client,
    stack: &'a str,
    name: String,
    is_new: bool,
    changes: Vec<ResourceChange>,
}

/// The parameters of a template, with their defaults. A parameter without one has an empty text.
pub(super) async fn parameters(client: &Client, template: &str) -> Result<BTreeMap<String, String>, Failure> {
    let summary = client.get_template_summary().template_body(template).send().await;
    let summary = summary.context(|| "cannot read the template (cloudformation:GetTemplateSummary)")?;
    let declared = summary.parameters.unwrap_or_default().into_iter();
    Ok(declared.filter_map(|one| Some((one.parameter_key?, one.default_value.unwrap_or_default()))).collect())
}

impl<'a> Change<'a> {
    /// Prepares the change; `None` if nothing would change.
    pub(super) async fn prepare(
        client: &'a Client,
        existing: &'a Existing,
        template: &str,
        (known, given): (&BTreeMap<String, String>, &BTreeMap<String, String>),
    ) -> Result<Option<Self>, Failure> {
        let of_new =
            |(name, value): (&String, &String)| Parameter::builder().parameter_key(name).parameter_value(value).build();
        let kept = |name: &String| Parameter::builder().parameter_key(name).use_previous_value(true).build();
        let is_kept = |name: &&String| existing.parameter(name).is_some() && !given.contains_key(*name);
        let parameters = given.iter().map(of_new).chain(known.keys().filter(is_kept).map(kept)).collect();
        let kind = if existing.is_there() { ChangeSetType::Update } else { ChangeSetType::Create };
        let name = format!("spotsweep-{}", Timestamp::now().as_millisecond());
        client
            .create_change_set()
            .stack_name(&existing.name)
            .change_set_name(&name)
            .change_set_type(kind)
            .template_url(template)
            .set_parameters(Some(parameters))
            .capabilities(Capability::CapabilityNamedIam)
            .capabilities(Capability::CapabilityAutoExpand)
            .send()
            .await
            .context(|| "cannot prepare the change (cloudformation:CreateChangeSet)")?;
        let (stack, is_new) = (&*existing.name, !existing.is_there());
        let change = Self { client, stack, name, is_new, changes: Vec::new() };
        loop {
            let described = client.describe_change_set().stack_name(stack).change_set_name(&change.name).send().await;
            let described = described.context(|| "cannot read the change (cloudformation:DescribeChangeSet)")?;
            let reason = described.status_reason.unwrap_or_default();
            match described.status {
                Some(ChangeSetStatus::CreateComplete) => {
                    let changes = described.changes.unwrap_or_default().into_iter();
                    let changes = changes.filter_map(|change| change.resource_change).collect();
                    return Ok(Some(Self { changes, ..change }));
                }
                Some(ChangeSetStatus::Failed) => {
                    change.discard().await?;
                    return if NOTHING.iter().any(|nothing| reason.contains(nothing)) {
                        Ok(None)
                    } else {
                        Err(Failure::new(format!("CloudFormation refuses the change: {reason}")))
                    };
                }
                Some(_) | None => sleep(PAUSE).await,
            }
        }
    }

    /// Shows what changes.
    pub(super) fn show(&self) -> Result<(), Failure> {
        out::results(|to| {
            self.changes.iter().try_for_each(|change| {
                let action = change.action.as_ref().map_or("", ChangeAction::as_str).to_lowercase();
                let [name, kind] = [&change.logical_resource_id, &change.resource_type];
                let text = |member: &Option<String>| member.clone().unwrap_or_default();
                show::row(to, &[8, 20, 0], [action, text(name), text(kind)].iter())
            })
        })
    }

    /// Removes the change set, and the empty stack that a first one makes.
    pub(super) async fn discard(&self) -> Result<(), Failure> {
        let gone = self.client.delete_change_set().stack_name(self.stack).change_set_name(&self.name).send().await;
        gone.context(|| "cannot remove the change set (cloudformation:DeleteChangeSet)")?;
        if self.is_new {
            let gone = self.client.delete_stack().stack_name(self.stack).send().await;
            gone.context(|| "cannot remove the empty stack (cloudformation:DeleteStack)")?;
        }
        Ok(())
    }

    /// Makes the change, and shows each resource that is done.
    ///
    /// # Errors
    /// CloudFormation could not make the change, and has rolled it back. The failure has the reasons.
    pub(super) async fn execute(&self) -> Result<(), Failure> {
        let mut progress = Progress::of(self.client, self.stack).await?;
        let begun = self.client.execute_change_set().stack_name(self.stack).change_set_name(&self.name).send().await;
        begun.context(|| "cannot begin the change (cloudformation:ExecuteChangeSet)")?;
        progress.follow().await
    }
}
