//! Looks up the deployment on which a run is made.

use std::collections::BTreeSet;

use aws_sdk_batch::types::{ComputeResource, CrType, ResourceRequirement, ResourceType};
use aws_sdk_ec2::config::retry::RetryConfig;
use aws_sdk_ec2::types::{Filter, Instance, InstanceStateName};
use jiff::Timestamp;
use spotsweep_protocol::functions::CLAIM;

use super::super::doctor::stack::Deployment;
use super::sweep::Pace;
use crate::queue::{instance_types, named, resources, zones};
use crate::target::Target;
use spotsweep_protocol::failure::{Context, Failure};

/// The tag that identifies a deployment's instances (`infra/compute.yaml`).
const TAG: &str = "spotsweep:compute";

/// EC2 throttles the whole account, and a run costs more than a few calls.
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
    /// Instance types of the queue.
    pub(super) instance_types: Vec<String>,
    /// Zones in which the queue's instances may run.
    pub(super) zones: BTreeSet<String>,
    /// vCPUs of a trial, from its job definition.
    pub(super) vcpus: u32,
    /// Whether each trial asks for a GPU.
    pub(super) gpus: bool,
    pub(super) pace: Pace,
}

/// An instance of the deployment that is pending or running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) id: String,
    pub(super) launched: Timestamp,
    pub(super) is_running: bool,
}

impl Subject {
    /// Looks everything up. All instances of the queue must be Spot instances and have the tag.
    pub(super) async fn find(
        target: Target,
        queue: Option<String>,
        definition: Option<String>,
        gpus: bool,
    ) -> Result<Self, Failure> {
        let deployment = Deployment::open(&target).await?;
        let (bucket, table) = (deployment.required("Bucket")?, deployment.required("Table")?);
        let claim_function = format!("{}{CLAIM}", deployment.prefix());
        let queue = named(&target, &claim_function, queue, "SPOTSWEEP_QUEUE", "--queue").await?;
        let definition =
            named(&target, &claim_function, definition, "SPOTSWEEP_JOB_DEFINITION", "--job-definition").await?;
        let resources = resources(&target, &queue).await?;
        let tag = tag(&queue, &resources)?;
        let instance_types = instance_types(&resources);
        let (zones, vcpus) = (zones(&target, &resources).await?, vcpus(&target, &definition).await?);
        // With an endpoint of its own, it is no AWS account.
        let pace = if target.config.endpoint_url().is_some() { Pace::LOCAL } else { Pace::AWS };
        Ok(Self {
            target,
            bucket,
            table,
            claim_function,
            queue,
            definition,
            tag,
            instance_types,
            zones,
            vcpus,
            gpus,
            pace,
        })
    }

    /// A client of EC2 for describing and terminating.
    pub(super) fn ec2(&self) -> aws_sdk_ec2::Client {
        let retry = RetryConfig::standard().with_max_attempts(EC2_TRIES);
        let config = aws_sdk_ec2::config::Builder::from(&self.target.batch).retry_config(retry);
        aws_sdk_ec2::Client::from_conf(config.build())
    }

    /// The deployment's instances that are pending or running.
    pub(super) async fn instances(&self) -> Result<Vec<Seen>, Failure> {
        let of_deployment = Filter::builder().name(format!("tag:{TAG}")).values(&self.tag).build();
        let live = Filter::builder().name("instance-state-name").values("pending").values("running").build();
        let asked = self.ec2().describe_instances().filters(of_deployment).filters(live);
        let found = asked.send().await.context(|| "cannot look for instances (ec2:DescribeInstances)")?;
        let instances = found.reservations().iter().flat_map(|reservation| reservation.instances());
        Ok(instances.filter_map(seen).collect())
    }

    pub(super) fn region(&self) -> &str {
        self.target.config.region().map_or("", |region| region.as_ref())
    }

    /// Name of the CloudFormation stack that a run makes and deletes.
    pub(super) fn chaos_stack(&self) -> String {
        format!("{}-acceptance", self.target.name)
    }
}

fn seen(instance: &Instance) -> Option<Seen> {
    let launched = Timestamp::from_second(instance.launch_time()?.secs()).ok()?;
    let state = instance.state().and_then(|state| state.name());
    let id = instance.instance_id()?.to_owned();
    Some(Seen { id, launched, is_running: state == Some(&InstanceStateName::Running) })
}

/// The one tag that all instances have. All must be Spot instances.
fn tag(queue: &str, resources: &[ComputeResource]) -> Result<String, Failure> {
    if resources.iter().any(|one| one.r#type() != Some(&CrType::Spot)) {
        return Err(Failure::usage(format!(
            "queue {queue} may start instances that are not Spot instances; name one that does not by --queue"
        )));
    }
    let tags: BTreeSet<Option<&String>> =
        resources.iter().map(|one| one.tags().and_then(|tags| tags.get(TAG))).collect();
    let mut tags = tags.into_iter();
    match (tags.next().flatten(), tags.next()) {
        (Some(tag), None) => Ok(tag.clone()),
        (None, _) | (Some(_), Some(_)) => Err(Failure::new(format!(
            "the instances of queue {queue} do not all have one tag {TAG}: docs/deploy.md, \"The control plane alone\""
        ))),
    }
}

/// The vCPUs of a job of the definition's newest revision. It is 1 if the definition does not say.
async fn vcpus(target: &Target, definition: &str) -> Result<u32, Failure> {
    let name = definition.rsplit('/').next().unwrap_or(definition);
    let (name, revision) = name.split_once(':').map_or((name, None), |(name, revision)| (name, Some(revision)));
    let asked = aws_sdk_batch::Client::new(&target.batch).describe_job_definitions().job_definition_name(name);
    let described = asked.status("ACTIVE").send().await;
    let described = described
        .context(|| format!("cannot describe the job definition {definition} (batch:DescribeJobDefinitions)"))?;
    let is_meant = |number: i32| revision.is_none_or(|revision| number.to_string() == revision);
    let found = described.job_definitions().iter().filter(|one| one.revision().is_some_and(is_meant));
    let newest = found.max_by_key(|one| one.revision());
    let wanted = newest.and_then(|one| one.container_properties()).map(|one| one.resource_requirements());
    let is_vcpus = |one: &&ResourceRequirement| one.r#type() == Some(&ResourceType::Vcpu);
    let vcpus = wanted.unwrap_or_default().iter().find(is_vcpus).and_then(|one| one.value()?.parse().ok());
    Ok(vcpus.unwrap_or(1))
}
