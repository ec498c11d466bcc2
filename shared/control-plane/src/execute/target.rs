//! Looks up what a sweep names in AWS, before anything is submitted.

use std::collections::BTreeMap;

use super::{Executed, Service, Taken, all_pages, described, disks, image, secrets};
use crate::calls::{
    Batch, CallError, DescribeJobDefinitions, DescribeSnapshots, DescribeVolumes, Ec2, FILTER_VALUES, Filter,
    JobDefinition, JobQueue, SecretsManager, Snapshot, Ssm, Volume,
};
use crate::command::Command;
use crate::outcome::Outcome;
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::Prepared;
use spotsweep_records::sweep::target::{
    Base, BaseQuery, BaseSnapshot, BaseVolume, Definition, DefinitionQuery, Queue, Target,
};
use spotsweep_records::workspace::SWEEP_TAG;

/// Returns the service that looks up what a sweep names in AWS.
pub fn targets(batch: impl Batch, ec2: impl Ec2, ssm: impl Ssm, secrets_manager: impl SecretsManager) -> impl Service {
    Targets { batch, ec2, ssm, secrets_manager }
}

#[derive(Debug)]
struct Targets<B, C, S, M> {
    batch: B,
    ec2: C,
    ssm: S,
    secrets_manager: M,
}

impl<B: Batch, C: Ec2, S: Ssm, M: SecretsManager> Service for Targets<B, C, S, M> {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::CheckTarget { sweep, prepared } => Ok(Box::pin(self.look_up(sweep, prepared))),
            Command::RegisterImage { sweep, prepared, wanted } => {
                Ok(Box::pin(image::register(&self.batch, sweep, prepared, wanted)))
            }
            other => Err(Box::new(other)),
        }
    }
}

impl<B: Batch, C: Ec2, S: Ssm, M: SecretsManager> Targets<B, C, S, M> {
    async fn look_up(&self, sweep: SweepId, prepared: Prepared) -> Executed {
        let plan = &prepared.plan;
        let (definitions, queue, base, secrets) = tokio::try_join!(
            definitions(&self.batch, DefinitionQuery::of(&plan.definition)),
            queue(&self.batch, plan.queue.clone()),
            base(&self.ec2, BaseQuery::of(&prepared)),
            secrets::look_up(&self.ssm, &self.secrets_manager, plan.secrets()),
        )?;
        let disks = match &queue {
            Some(queue) if !prepared.file.settings.data.is_empty() => {
                disks::look_up(&self.batch, &self.ec2, queue).await?
            }
            _without_data => Vec::new(),
        };
        let target = Target { definitions, queue, base, secrets, disks };
        Ok(vec![Outcome::TargetChecked { sweep, prepared, target }])
    }
}

async fn definitions(batch: &impl Batch, query: DefinitionQuery) -> Result<Vec<Definition>, CallError> {
    let wanted = match query {
        DefinitionQuery::Revision(named) => DescribeJobDefinitions { named: vec![named], ..Default::default() },
        DefinitionQuery::Name(name) => {
            DescribeJobDefinitions { name: Some(name), status: Some("ACTIVE"), ..Default::default() }
        }
    };
    match described(batch, wanted).await {
        // If Batch rejects the name, there is no such definition either.
        Err(error) if error.refusal() == Some("ClientException") => Ok(Vec::new()),
        found => found?.into_iter().map(definition).collect(),
    }
}

fn definition<P>(found: JobDefinition<P>) -> Result<Definition, CallError> {
    let incomplete = || CallError::unclear("a job definition without ARN, revision or status");
    // The GPUs of all containers are added up.
    let gpus = found.resources.iter().filter(|(kind, _)| kind == "GPU");
    Ok(Definition {
        gpus: gpus.filter_map(|(_, value)| value.parse::<u32>().ok()).sum(),
        arn: found.arn.ok_or_else(incomplete)?,
        revision: found.revision.ok_or_else(incomplete)?,
        status: found.status.ok_or_else(incomplete)?,
        timeout_seconds: found.timeout_seconds,
        command: found.command,
        image: found.image,
        variables: found.variables,
        folders: found.folders,
    })
}

async fn queue(batch: &impl Batch, name: String) -> Result<Option<Queue>, CallError> {
    let found = batch.describe_job_queues(name).await?;
    Ok(found.into_iter().next().map(|JobQueue { state, environments }| Queue { state, environments }))
}

async fn base(ec2: &impl Ec2, query: Option<BaseQuery>) -> Result<Base, CallError> {
    Ok(match query {
        None => Base::NotAsked,
        Some(BaseQuery::Snapshot(id)) => Base::Snapshot(snapshot(ec2, id).await?),
        Some(BaseQuery::Snapshots(ids)) => Base::Snapshots(snapshots(ec2, ids).await?),
        Some(BaseQuery::Volumes { filter, value }) => {
            let filters = vec![Filter::new(filter, value)];
            let wanted = DescribeVolumes { filters, ..DescribeVolumes::default() };
            let page = |next_token| ec2.describe_volumes(DescribeVolumes { next_token, ..wanted.clone() });
            Base::Volumes(all_pages(page).await?.into_iter().map(volume).collect::<Result<_, _>>()?)
        }
    })
}

async fn snapshot(ec2: &impl Ec2, id: String) -> Result<Option<BaseSnapshot>, CallError> {
    let wanted = DescribeSnapshots { ids: vec![id], ..DescribeSnapshots::default() };
    match ec2.describe_snapshots(wanted).await {
        Ok(found) => found.items.first().map(base_snapshot).transpose(),
        Err(error) if error.refusal().is_some_and(BaseQuery::is_no_snapshot) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Describes snapshots by a filter, because DescribeSnapshots refuses a list of ids if one of them does not exist.
async fn snapshots(ec2: &impl Ec2, mut ids: Vec<String>) -> Result<BTreeMap<String, BaseSnapshot>, CallError> {
    ids.sort_unstable();
    ids.dedup();
    let mut bases = BTreeMap::new();
    for some in ids.chunks(FILTER_VALUES) {
        let filters = vec![Filter { name: "snapshot-id".to_owned(), values: some.to_vec() }];
        let wanted = DescribeSnapshots { filters, ..DescribeSnapshots::default() };
        let page = |next_token| ec2.describe_snapshots(DescribeSnapshots { next_token, ..wanted.clone() });
        for found in all_pages(page).await? {
            let base = base_snapshot(&found)?;
            bases.insert(found.id, base);
        }
    }
    Ok(bases)
}

fn base_snapshot(found: &Snapshot) -> Result<BaseSnapshot, CallError> {
    let size_gib = found.volume_size_gib.filter(|_| !found.state.is_empty());
    let size_gib = size_gib.ok_or_else(|| CallError::unclear("a snapshot without state or size"))?;
    Ok(BaseSnapshot { state: found.state.clone(), size_gib })
}

fn volume(found: Volume) -> Result<BaseVolume, CallError> {
    let incomplete = || CallError::unclear("a volume without zone, size or state");
    let tag = |wanted: &str| found.tags.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.clone());
    let (name, is_tagged) = (tag("Name"), tag(SWEEP_TAG).is_some());
    let instance = found.attachments.into_iter().next();
    Ok(BaseVolume {
        id: found.id,
        zone: found.zone.ok_or_else(incomplete)?,
        size_gib: found.size_gib.ok_or_else(incomplete)?,
        state: Some(found.state).filter(|state| !state.is_empty()).ok_or_else(incomplete)?,
        name,
        is_tagged,
        instance: instance.map(|attachment| attachment.instance.unwrap_or_else(|| "an instance".to_owned())),
    })
}
