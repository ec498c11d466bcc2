//! What interrupts and what records: `infra/chaos.yaml` as a CloudFormation stack of the run's own.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_cloudformation::error::ProvideErrorMetadata;
use aws_sdk_cloudformation::types::{Capability, Parameter, Stack, StackStatus};
use aws_sdk_fis::types::ExperimentStatus;
use tokio::time::{Instant, sleep};

use super::subject::Subject;
use spotsweep_protocol::failure::{Context, Failure};

const TEMPLATE: &str = include_str!("../../../../infra/chaos.yaml");
/// A role takes the most of it, some ten seconds.
const DEADLINE: Duration = Duration::from_secs(600);

/// Creates, uses and deletes the stack.
#[derive(Debug)]
pub(super) struct Chaos<'a> {
    subject: &'a Subject,
    stacks: aws_sdk_cloudformation::Client,
    fis: aws_sdk_fis::Client,
}

/// What the stack has made.
#[derive(Debug)]
pub(super) struct Made {
    /// FIS's experiment template.
    template: String,
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

    /// Fails where the stack is there: another run goes on, or one was killed.
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

    /// Makes the stack, and waits for it.
    pub(super) async fn create(&self) -> Result<Made, Failure> {
        let name = self.subject.chaos_stack();
        let parameter =
            |(key, value): (&str, &str)| Parameter::builder().parameter_key(key).parameter_value(value).build();
        let parameters = [("ComputeTag", self.subject.tag.as_str()), ("Selection", "COUNT(1)"), ("Record", "yes")];
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

    /// Deletes the stack with all that it has made, and waits until it is gone.
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

    /// Starts an experiment, and gives its id.
    pub(super) async fn interrupt(&self, made: &Made) -> Result<String, Failure> {
        let started = self.fis.start_experiment().experiment_template_id(&made.template).send().await;
        let started = started.context(|| "cannot start the experiment (fis:StartExperiment)")?;
        let id = started.experiment().and_then(|experiment| experiment.id()).map(str::to_owned);
        id.ok_or_else(|| Failure::new("FIS has started an experiment without an id"))
    }

    /// Whether an experiment is over; fails where FIS could not do it.
    pub(super) async fn is_over(&self, experiment: &str) -> Result<bool, Failure> {
        let got = self.fis.get_experiment().id(experiment).send().await;
        let got = got.context(|| "cannot follow the experiment (fis:GetExperiment)")?;
        let state = got.experiment().and_then(|experiment| experiment.state());
        match state.and_then(|state| state.status()) {
            Some(ExperimentStatus::Completed) => Ok(true),
            Some(ExperimentStatus::Failed | ExperimentStatus::Stopped | ExperimentStatus::Cancelled) => {
                let reason = state.and_then(|state| state.reason()).unwrap_or("no reason is told");
                Err(Failure::new(format!("FIS has interrupted no instance: {reason}")))
            }
            // FIS's words for what goes on, and those that it may add.
            Some(_) | None => Ok(false),
        }
    }

    /// None where there is no such stack.
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

fn made(stack: &Stack) -> Result<Made, Failure> {
    let outputs = stack.outputs().iter();
    let outputs: BTreeMap<&str, &str> =
        outputs.filter_map(|output| Some((output.output_key()?, output.output_value()?))).collect();
    let output = |name: &str| {
        let missing =
            || Failure::new(format!("the stack {} has no output {name}", stack.stack_name().unwrap_or_default()));
        outputs.get(name).map(ToString::to_string).ok_or_else(missing)
    };
    Ok(Made { template: output("Interrupt")?, recording: output("Recording")? })
}
