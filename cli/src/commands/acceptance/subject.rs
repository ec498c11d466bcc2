//! The deployment that a run is about.

use std::collections::BTreeSet;

use aws_sdk_batch::types::{ComputeResource, CrType};
use aws_sdk_ec2::config::retry::RetryConfig;
use aws_sdk_ec2::types::Filter;
use spotsweep_protocol::functions::CLAIM;

use super::super::doctor::stack::Deployment;
use super::sweep::Pace;
use crate::target::Target;
use spotsweep_protocol::failure::{Context, Failure};

/// The tag by which a deployment's instances are known (`infra/compute.yaml`).
const TAG: &str = "spotsweep:compute";

/// EC2 throttles an account as a whole, and a run costs more than a few calls.
const EC2_TRIES: u32 = 8;

/// Names of what a run uses.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) target: Target,
    pub(super) bucket: String,
    pub(super) table: String,
    pub(super) claim_function: String,
    pub(super) queue: String,
    pub(super) definition: String,
    /// The value of [`TAG`] on the queue's instances.
    pub(super) tag: String,
    /// The queue's instance types.
    pub(super) instance_types: Vec<String>,
    pub(super) pace: Pace,
}

impl Subject {
    /// Looks everything up. The queue must be of Spot instances, with the tag.
    pub(super) async fn find(
        target: Target,
        queue: Option<String>,
        definition: Option<String>,
    ) -> Result<Self, Failure> {
        let found = Deployment::find(&target).await;
        let (deployment, _) = found.map_err(|problem| {
            let mend = problem.mend.map(|mend| format!("; {mend}")).unwrap_or_default();
            Failure::new(format!("stack {}: {}{mend}", target.name, problem.said))
        })?;
        let output = |name: &str| {
            let missing = || Failure::new(format!("stack {} has no output {name}", target.name));
            deployment.output(name).map(str::to_owned).ok_or_else(missing)
        };
        let (bucket, table) = (output("Bucket")?, output("Table")?);
        let claim_function = format!("{}{CLAIM}", deployment.prefix());
        let queue = named(&target, &claim_function, queue, "SPOTSWEEP_QUEUE", "--queue").await?;
        let definition =
            named(&target, &claim_function, definition, "SPOTSWEEP_JOB_DEFINITION", "--job-definition").await?;
        let resources = resources(&target, &queue).await?;
        if resources.r#type() != Some(&CrType::Spot) {
            return Err(Failure::usage(format!("queue {queue} has no Spot instances; name one that has by --queue")));
        }
        let tag = resources.tags().and_then(|tags| tags.get(TAG)).cloned().ok_or_else(|| {
            Failure::new(format!(
                "the instances of queue {queue} have no tag {TAG}: docs/deploy.md, \"The control plane alone\""
            ))
        })?;
        let instance_types = resources.instance_types().to_vec();
        // An endpoint of its own is no AWS account.
        let pace = if target.config.endpoint_url().is_some() { Pace::LOCAL } else { Pace::AWS };
        Ok(Self { target, bucket, table, claim_function, queue, definition, tag, instance_types, pace })
    }

    /// EC2, for describing and for terminating.
    pub(super) fn ec2(&self) -> aws_sdk_ec2::Client {
        let retry = RetryConfig::standard().with_max_attempts(EC2_TRIES);
        let config = aws_sdk_ec2::config::Builder::from(&self.target.batch).retry_config(retry);
        aws_sdk_ec2::Client::from_conf(config.build())
    }

    /// The deployment's running instances.
    pub(super) async fn running(&self) -> Result<BTreeSet<String>, Failure> {
        let filter = |name: &str, value: &str| Filter::builder().name(name).values(value).build();
        let asked = self.ec2().describe_instances().filters(filter(&format!("tag:{TAG}"), &self.tag));
        let asked = asked.filters(filter("instance-state-name", "running"));
        let found = asked.send().await.context(|| "cannot look for instances (ec2:DescribeInstances)")?;
        let instances = found.reservations().iter().flat_map(|reservation| reservation.instances());
        Ok(instances.filter_map(|instance| instance.instance_id().map(str::to_owned)).collect())
    }

    /// The CloudFormation stack that a run makes, and deletes.
    pub(super) fn chaos_stack(&self) -> String {
        format!("{}-acceptance", self.target.name)
    }
}

/// What the option says, else what the deployment's functions take where a sweep names none.
async fn named(
    target: &Target,
    function: &str,
    given: Option<String>,
    variable: &str,
    option: &str,
) -> Result<String, Failure> {
    if let Some(given) = given {
        return Ok(given);
    }
    let configuration = aws_sdk_lambda::Client::new(&target.config).get_function_configuration();
    let found = configuration.function_name(function).send().await;
    let found = found.context(|| format!("cannot read the configuration of the function {function}"))?;
    let variables = found.environment().and_then(|environment| environment.variables());
    let value = variables.and_then(|variables| variables.get(variable)).filter(|value| !value.is_empty());
    value.cloned().ok_or_else(|| Failure::usage(format!("the deployment has no default: give {option}")))
}

/// Of the queue's first compute environment.
async fn resources(target: &Target, queue: &str) -> Result<ComputeResource, Failure> {
    let client = aws_sdk_batch::Client::new(&target.batch);
    let described = client.describe_job_queues().job_queues(queue).send().await;
    let described = described.context(|| format!("cannot describe the queue {queue}"))?;
    let environment = described.job_queues().first().and_then(|queue| queue.compute_environment_order().first());
    let environment = environment.and_then(|order| order.compute_environment());
    let environment = environment.ok_or_else(|| Failure::new(format!("queue {queue} has no compute environment")))?;
    let described = client.describe_compute_environments().compute_environments(environment).send().await;
    let described = described.context(|| format!("cannot describe the compute environment {environment}"))?;
    let resources = described.compute_environments().first().and_then(|found| found.compute_resources()).cloned();
    resources.ok_or_else(|| Failure::new(format!("the compute environment {environment} is not a managed one")))
}
