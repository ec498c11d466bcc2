//! Deploys `infra/chaos.yaml` as a CloudFormation stack of the run's own. It interrupts instances and records events.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_cloudformation::error::ProvideErrorMetadata;
use aws_sdk_cloudformation::types::{Capability, Parameter, Stack, StackStatus};
use aws_sdk_fis::types::{
    CreateExperimentTemplateActionInput, CreateExperimentTemplateStopConditionInput,
    CreateExperimentTemplateTargetInput, ExperimentState, ExperimentStatus,
};
use tokio::time::{Instant, sleep};

use super::subject::Subject;
use crate::out;
use spotsweep_protocol::failure::{Context, Failure};

const TEMPLATE: &str = include_str!("../../../../infra/chaos.yaml");
/// Most of the time is for a role, which takes some ten seconds.
const DEADLINE: Duration = Duration::from_secs(600);
/// The FIS action on an instance.
pub(super) const ACTION: &str = "aws:ec2:send-spot-instance-interruptions";
/// Name of the target in an experiment's template.
const TARGET: &str = "trial";

/// Creates, uses and deletes the stack.
#[derive(Debug)]
pub(super) struct Chaos<'a> {
    subject: &'a Subject,
    stacks: aws_sdk_cloudformation::Client,
    fis: aws_sdk_fis::Client,
}

/// The resources of the stack.
#[derive(Debug)]
pub(super) struct Made {
    /// ARN of the role with which FIS interrupts.
    role: String,
    /// Log group of the recorded events.
    pub(super) recording: String,
}

impl<'a> Chaos<'a> {
    pub(super) fn new(subject: &'a Subject) -> Self {
        Self {
            subject,
            stacks: aws_sdk_cloudformation::Client::new(&subject.target.config),
            fis: aws_sdk_fis::Client::new(&subject.target.batch),
        }
    }

    /// Fails if the stack exists: either another run goes on, or one was killed.
    pub(super) async fn must_be_absent(&self) -> Result<(), Failure> {
        let name = self.subject.chaos_stack();
        match self.describe().await? {
            None => Ok(()),
            Some(_) => Err(Failure::new(format!(
                "there is a stack {name} already: another acceptance run goes on, or one was killed. After that, delete \
                 it: `aws cloudformation delete-stack --stack-name {name}`"
            ))),
        }
    }

    /// Creates the stack, and waits until it is complete.
    pub(super) async fn create(&self) -> Result<Made, Failure> {
        let name = self.subject.chaos_stack();
        let parameter =
            |(key, value): (&str, &str)| Parameter::builder().parameter_key(key).parameter_value(value).build();
        let parameters = [("ComputeTag", self.subject.tag.as_str()), ("Record", "yes")];
        let creation = self
            .stacks
            .create_stack()
            .stack_name(&name)
            .template_body(TEMPLATE)
            .capabilities(Capability::CapabilityIam)
            .set_parameters(Some(parameters.map(parameter).into()));
        creation.send().await.context(|| format!("cannot create the stack {name}"))?;
        let deadline = Instant::now() + DEADLINE;
        loop {
            let stack = self.describe().await?;
            let stack =
                stack.ok_or_else(|| Failure::new(format!("the stack {name} is gone before it was complete")))?;
            match stack.stack_status() {
                Some(StackStatus::CreateComplete) => return made(&stack),
                Some(StackStatus::CreateInProgress) if Instant::now() < deadline => sleep(self.subject.pace.poll).await,
                status => {
                    let status = status.map_or("without a status", StackStatus::as_str);
                    return Err(Failure::new(format!(
                        "the stack {name} is {status}; `aws cloudformation describe-stack-events --stack-name {name}` \
                         says why"
                    )));
                }
            }
        }
    }

    /// Deletes the stack with all its resources, and waits until it is gone.
    pub(super) async fn delete(&self) -> Result<(), Failure> {
        let name = self.subject.chaos_stack();
        self.stacks
            .delete_stack()
            .stack_name(&name)
            .send()
            .await
            .context(|| format!("cannot delete the stack {name}"))?;
        let deadline = Instant::now() + DEADLINE;
        while let Some(stack) = self.describe().await? {
            let is_over = stack.stack_status() != Some(&StackStatus::DeleteInProgress) || Instant::now() >= deadline;
            if is_over && stack.stack_status() == Some(&StackStatus::DeleteComplete) {
                break;
            }
            if is_over {
                return Err(Failure::new(format!(
                    "the stack {name} is not deleted: `aws cloudformation delete-stack --stack-name {name}`"
                )));
            }
            sleep(self.subject.pace.poll).await;
        }
        Ok(())
    }

    /// Starts a FIS experiment that interrupts this instance, and returns its id. StartExperiment cannot override a
    /// target, so each instance has a template of its own. The experiment goes on with a copy of it (fact 33).
    pub(super) async fn interrupt(&self, made: &Made, instance: &str) -> Result<String, Failure> {
        let template = self.template(made, instance).await?;
        let started = self.fis.start_experiment().experiment_template_id(&template).send().await;
        if self.fis.delete_experiment_template().id(&template).send().await.is_err() {
            out::note(format_args!(
                "left behind: `aws fis delete-experiment-template --id {template}` (fis:DeleteExperimentTemplate)"
            ));
        }
        let started = started.context(|| "cannot start the experiment (fis:StartExperiment)")?;
        let id = started.experiment().and_then(|experiment| experiment.id()).map(str::to_owned);
        id.ok_or_else(|| Failure::new("FIS has started an experiment without an id"))
    }

    /// Makes the template with the instance's ARN. A target by tags would be found late, because FIS's index sees a new
    /// tag late (fact 33).
    async fn template(&self, made: &Made, instance: &str) -> Result<String, Failure> {
        let cannot_make = || format!("cannot make an experiment for {instance} (fis:CreateExperimentTemplate)");
        let arn = instance_arn(&made.role, self.subject.region(), instance);
        let target = CreateExperimentTemplateTargetInput::builder()
            .resource_type("aws:ec2:spot-instance")
            .resource_arns(arn.ok_or_else(|| Failure::new(format!("{} is not the ARN of a role", made.role)))?)
            .selection_mode("ALL");
        let action = CreateExperimentTemplateActionInput::builder()
            .action_id(ACTION)
            .parameters("durationBeforeInterruption", "PT2M")
            .targets("SpotInstances", TARGET);
        let stop = CreateExperimentTemplateStopConditionInput::builder().source("none");
        let creation = self
            .fis
            .create_experiment_template()
            .description("Interrupts an instance of a spotsweep acceptance run")
            .role_arn(&made.role)
            .stop_conditions(stop.build().context(cannot_make)?)
            .targets(TARGET, target.build().context(cannot_make)?)
            .actions("interrupt", action.build().context(cannot_make)?)
            .tags("Name", self.subject.chaos_stack());
        let created = creation.send().await.context(cannot_make)?;
        let id = created.experiment_template().and_then(|template| template.id()).map(str::to_owned);
        id.ok_or_else(|| Failure::new("FIS has made a template without an id"))
    }

    /// Reads the state of an experiment.
    pub(super) async fn progress(&self, experiment: &str) -> Result<Progress, Failure> {
        let got = self.fis.get_experiment().id(experiment).send().await;
        let got = got.context(|| "cannot follow the experiment (fis:GetExperiment)")?;
        Ok(got.experiment().and_then(|experiment| experiment.state()).map_or(Progress::Underway, progress))
    }

    /// Reads the stack. None if there is no such stack.
    async fn describe(&self) -> Result<Option<Stack>, Failure> {
        let described = self.stacks.describe_stacks().stack_name(self.subject.chaos_stack()).send().await;
        match described {
            Ok(described) => Ok(described.stacks.unwrap_or_default().into_iter().next()),
            // https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html
            Err(error) if error.code() == Some("ValidationError") => Ok(None),
            Err(error) => {
                let name = self.subject.chaos_stack();
                Err(Failure::new(format!("cannot describe the stack {name}")).caused_by(error))
            }
        }
    }
}

/// State of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    Underway,
    Completed,
    /// The experiment has failed for this reason, in FIS's words.
    Failed(String),
}

fn progress(state: &ExperimentState) -> Progress {
    match state.status() {
        Some(ExperimentStatus::Completed) => Progress::Completed,
        Some(ExperimentStatus::Failed | ExperimentStatus::Stopped | ExperimentStatus::Cancelled) => {
            let reason = state.reason().unwrap_or("it names no reason");
            let code =
                state.error().and_then(|error| error.code()).map(|code| format!(" ({code})")).unwrap_or_default();
            // https://docs.aws.amazon.com/fis/latest/userguide/troubleshooting.html
            let help = match code.contains("AuthorizationFailure") {
                true => "; its role may not do it, or a service control policy keeps FIS from making its own role",
                false => "",
            };
            Progress::Failed(format!("FIS has interrupted no instance: {reason}{code}{help}"))
        }
        // These are FIS's other states, and those that it may add.
        Some(_) | None => Progress::Underway,
    }
}

/// ARN of an instance in the account and the partition of a role.
fn instance_arn(role: &str, region: &str, instance: &str) -> Option<String> {
    let mut parts = role.split(':');
    let (partition, account) = (parts.nth(1)?, parts.nth(2)?);
    Some(format!("arn:{partition}:ec2:{region}:{account}:instance/{instance}"))
}

fn made(stack: &Stack) -> Result<Made, Failure> {
    let outputs = stack.outputs().iter();
    let outputs: BTreeMap<&str, &str> =
        outputs.filter_map(|output| Some((output.output_key()?, output.output_value()?))).collect();
    let output = |name: &str| {
        let missing =
            || Failure::new(format!("the stack {} has no output {name}", stack.stack_name().unwrap_or_default()));
        outputs.get(name).map(ToString::to_string).ok_or_else(missing)
    };
    Ok(Made { role: output("Role")?, recording: output("Recording")? })
}

#[cfg(test)]
mod tests {
    use aws_sdk_fis::types::ExperimentError;

    use super::*;

    #[test]
    fn an_instance_has_the_account_and_the_partition_of_the_role() {
        let arn = |role| instance_arn(role, "eu-west-1", "i-1");
        let expected = "arn:aws-us-gov:ec2:eu-west-1:123456789012:instance/i-1";
        assert_eq!(arn("arn:aws-us-gov:iam::123456789012:role/path/chaos"), Some(expected.to_owned()));
        assert_eq!(arn("chaos"), None);
    }

    #[test]
    fn what_fis_has_not_done_has_its_reason() {
        let state = |status: &str, code| {
            let error = ExperimentError::builder().set_code(code);
            let state = ExperimentState::builder().status(status.into()).reason("why").error(error.build());
            progress(&state.build())
        };
        assert_eq!(state("completed", None), Progress::Completed);
        for status in ["pending", "initiating", "running", "stopping", "a new word"] {
            assert_eq!(state(status, None), Progress::Underway, "{status}");
        }
        for status in ["failed", "stopped", "cancelled"] {
            let failed = state(status, Some("InvalidTarget".to_owned()));
            assert_eq!(failed, Progress::Failed("FIS has interrupted no instance: why (InvalidTarget)".to_owned()));
        }
        let denied = state("failed", Some("AuthorizationFailure".to_owned()));
        assert!(matches!(&denied, Progress::Failed(reason) if reason.contains("its role may not")), "{denied:?}");
    }
}
