//! What a sweep names in AWS, looked up before anything is submitted.

use std::collections::BTreeMap;
use std::error::Error;

use aws_config::SdkConfig;
use aws_sdk_batch::operation::describe_job_definitions::DescribeJobDefinitionsError;
use aws_sdk_batch::types::{ContainerProperties, EcsProperties, JobDefinition, JqState, ResourceType};
use aws_sdk_ec2::types::{Filter, Snapshot, SnapshotState, Volume, VolumeState};
use futures_util::FutureExt;

use super::call_error::call_error;
use super::ec2;
use super::lazy::{Lazy, lazy};
use spotsweep_control_plane::calls::CallError;
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::execute::{Executed, Service, Taken};
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::sweep::Prepared;
use spotsweep_control_plane::sweep::target::{
    Base, BaseQuery, BaseSnapshot, BaseVolume, Definition, DefinitionQuery, Queue, Target,
};
use spotsweep_control_plane::workspace::SWEEP_TAG;
use spotsweep_protocol::ids::SweepId;

/// Values of one filter (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html>).
const FILTER_VALUES: usize = 200;

const INCOMPLETE: &str = "a snapshot without state or size";

type Found<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Looks up what a sweep is to run on and with.
pub fn targets(config: &SdkConfig) -> impl Service + use<> {
    Targets { batch: lazy(config, aws_sdk_batch::Client::new), ec2: lazy(config, ec2::client) }
}

#[derive(Debug)]
struct Targets {
    batch: Lazy<aws_sdk_batch::Client>,
    ec2: Lazy<aws_sdk_ec2::Client>,
}

impl Service for Targets {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::CheckTarget { sweep, prepared } => Ok(self.look_up(sweep, prepared).boxed()),
            other => Err(Box::new(other)),
        }
    }
}

impl Targets {
    async fn look_up(&self, sweep: SweepId, prepared: Prepared) -> Executed {
        let plan = &prepared.plan;
        let (definitions, queue, base) = tokio::try_join!(
            definitions(&self.batch, DefinitionQuery::of(&plan.definition)),
            queue(&self.batch, &plan.queue),
            base(&self.ec2, BaseQuery::of(&prepared)),
        )?;
        let target = Target { definitions, queue, base };
        Ok(vec![Outcome::TargetChecked { sweep, prepared, target }])
    }
}

async fn definitions(client: &aws_sdk_batch::Client, query: DefinitionQuery) -> Found<Vec<Definition>> {
    let request = client.describe_job_definitions();
    let request = match query {
        DefinitionQuery::Revision(named) => request.job_definitions(named),
        DefinitionQuery::Name(name) => request.job_definition_name(name).status("ACTIVE"),
    };
    let found = match request.into_paginator().items().send().collect::<Result<Vec<_>, _>>().await {
        // No name that Batch takes is no definition either.
        Err(error) if error.as_service_error().is_some_and(DescribeJobDefinitionsError::is_client_exception) => {
            return Ok(Vec::new());
        }
        found => found?,
    };
    found
        .into_iter()
        .map(|found| definition(found).ok_or("a job definition without ARN, revision or status"))
        .collect::<Result<_, _>>()
        .map_err(Into::into)
}

fn definition(found: JobDefinition) -> Option<Definition> {
    let revision = found.revision.and_then(|revision| u32::try_from(revision).ok())?;
    let timeout = found.timeout.and_then(|timeout| timeout.attempt_duration_seconds);
    let timeout_seconds = timeout.and_then(|seconds| u32::try_from(seconds).ok());
    let gpus = gpus(found.container_properties.as_ref(), found.ecs_properties.as_ref());
    Some(Definition { arn: found.job_definition_arn?, revision, status: found.status?, timeout_seconds, gpus })
}

/// GPUs of all containers.
fn gpus(container: Option<&ContainerProperties>, ecs: Option<&EcsProperties>) -> u32 {
    let tasks = ecs.map(EcsProperties::task_properties).unwrap_or_default();
    let of_tasks = tasks.iter().flat_map(|task| task.containers()).flat_map(|one| one.resource_requirements());
    let of_container = container.map(ContainerProperties::resource_requirements).unwrap_or_default();
    let gpus = of_container.iter().chain(of_tasks).filter(|needed| needed.r#type() == Some(&ResourceType::Gpu));
    gpus.filter_map(|needed| needed.value()?.parse::<u32>().ok()).sum()
}

async fn queue(client: &aws_sdk_batch::Client, name: &str) -> Found<Option<Queue>> {
    let found = client.describe_job_queues().job_queues(name).send().await?;
    let state = |state: &JqState| state.as_str().to_owned();
    Ok(found.job_queues().first().map(|queue| Queue { state: queue.state().map(state).unwrap_or_default() }))
}

async fn base(client: &aws_sdk_ec2::Client, query: Option<BaseQuery>) -> Found<Base> {
    Ok(match query {
        None => Base::NotAsked,
        Some(BaseQuery::Snapshot(id)) => Base::Snapshot(snapshot(client, &id).await?),
        Some(BaseQuery::Snapshots(ids)) => Base::Snapshots(snapshots(client, ids).await?),
        Some(BaseQuery::Volumes { filter, value }) => {
            let filter = Filter::builder().name(filter).values(value).build();
            let found = client.describe_volumes().filters(filter).into_paginator().items().send();
            let found: Vec<Volume> = found.collect::<Result<_, _>>().await?;
            let volumes = found.iter().map(|found| volume(found).ok_or("a volume without id, zone, size or state"));
            Base::Volumes(volumes.collect::<Result<_, _>>()?)
        }
    })
}

async fn snapshot(client: &aws_sdk_ec2::Client, id: &str) -> Found<Option<BaseSnapshot>> {
    let found = match client.describe_snapshots().snapshot_ids(id).send().await.map_err(call_error) {
        Ok(answer) => answer.snapshots.unwrap_or_default().into_iter().next(),
        Err(CallError::Refused { code, .. }) if BaseQuery::is_no_snapshot(&code) => None,
        Err(failure) => return Err(failure.into()),
    };
    found.map(|found| base_snapshot(&found).ok_or_else(|| INCOMPLETE.into())).transpose()
}

/// By a filter, because one id that is not there makes DescribeSnapshots refuse all of them.
async fn snapshots(client: &aws_sdk_ec2::Client, mut ids: Vec<String>) -> Found<BTreeMap<String, BaseSnapshot>> {
    ids.sort_unstable();
    ids.dedup();
    let mut bases = BTreeMap::new();
    for some in ids.chunks(FILTER_VALUES) {
        let filter = Filter::builder().name("snapshot-id").set_values(Some(some.to_vec())).build();
        let found = client.describe_snapshots().filters(filter).into_paginator().items().send();
        for found in found.collect::<Result<Vec<Snapshot>, _>>().await? {
            let base = base_snapshot(&found).ok_or(INCOMPLETE)?;
            bases.extend(found.snapshot_id.map(|id| (id, base)));
        }
    }
    Ok(bases)
}

fn base_snapshot(found: &Snapshot) -> Option<BaseSnapshot> {
    let size_gib = found.volume_size.and_then(|size| u32::try_from(size).ok())?;
    Some(BaseSnapshot { state: found.state.as_ref().map(SnapshotState::as_str)?.to_owned(), size_gib })
}

fn volume(found: &Volume) -> Option<BaseVolume> {
    let tag = |key: &str| found.tags().iter().find(|tag| tag.key() == Some(key)).and_then(|tag| tag.value());
    Some(BaseVolume {
        id: found.volume_id()?.to_owned(),
        zone: found.availability_zone()?.to_owned(),
        size_gib: found.size().and_then(|size| u32::try_from(size).ok())?,
        state: found.state().map(VolumeState::as_str)?.to_owned(),
        name: tag("Name").map(str::to_owned),
        is_tagged: tag(SWEEP_TAG).is_some(),
        instance: found
            .attachments()
            .first()
            .map(|attachment| attachment.instance_id().unwrap_or("an instance").to_owned()),
    })
}
