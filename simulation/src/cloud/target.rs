//! What a sweep names in AWS, with the calls that the AWS executor makes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::sweep::Prepared;
use spotsweep_control_plane::sweep::target::{
    Base, BaseQuery, BaseSnapshot, BaseVolume, Definition, DefinitionQuery, Queue, Target,
};
use spotsweep_control_plane::workspace::SWEEP_TAG;
use spotsweep_protocol::ids::SweepId;
use spotsweep_world::ebs::{Snapshot, Volume};
use spotsweep_world::{Filter, Selection};

use super::answer::NoAnswer;
use super::client::text;
use super::{Cloud, Executed};

impl Cloud {
    pub(super) async fn check_target(&self, sweep: SweepId, prepared: Prepared) -> Executed {
        let plan = &prepared.plan;
        let request = match DefinitionQuery::of(&plan.definition) {
            DefinitionQuery::Revision(named) => json!({ "jobDefinitions": [named] }),
            DefinitionQuery::Name(name) => json!({ "jobDefinitionName": name, "status": "ACTIVE" }),
        };
        let request = serde_json::from_value(request)?;
        let definitions =
            match self.batch("DescribeJobDefinitions", |world| world.describe_job_definitions(&request)).await? {
                Ok(answer) => rows(&answer, "jobDefinitions").iter().map(definition).collect(),
                // No name that Batch takes is no definition either.
                Err(error) if error.code == "ClientException" => Vec::new(),
                Err(error) => return Err(error.into()),
            };
        let request = serde_json::from_value(json!({ "jobQueues": [plan.queue] }))?;
        let answer = self.batch("DescribeJobQueues", |world| world.describe_job_queues(&request)).await??;
        let queue = rows(&answer, "jobQueues").first().map(|queue| Queue { state: text(queue, "state") });
        let base = self.base(BaseQuery::of(&prepared)).await?;
        let target = Target { definitions, queue, base };
        Ok(vec![Outcome::TargetChecked { sweep, prepared, target }])
    }

    async fn base(&self, query: Option<BaseQuery>) -> Result<Base, NoAnswer> {
        match query {
            None => Ok(Base::NotAsked),
            Some(BaseQuery::Snapshot(id)) => {
                let wanted = Selection { ids: vec![id], ..Selection::default() };
                let found = self.ec2("DescribeSnapshots", |world| {
                    let (found, _) = world.describe_snapshots(&wanted)?;
                    Ok(found.first().map(|found| snapshot(found)))
                });
                match found.await? {
                    Ok(found) => Ok(Base::Snapshot(found)),
                    Err(error) if BaseQuery::is_no_snapshot(error.code) => Ok(Base::Snapshot(None)),
                    Err(error) => Err(error.into()),
                }
            }
            Some(BaseQuery::Snapshots(ids)) => {
                let mut found = BTreeMap::new();
                for some in ids.chunks(200) {
                    let filter = Filter { name: "snapshot-id".to_owned(), values: some.to_vec() };
                    let wanted = Selection { filters: vec![filter], ..Selection::default() };
                    let some = self.ec2("DescribeSnapshots", |world| {
                        let (found, _) = world.describe_snapshots(&wanted)?;
                        Ok(found.into_iter().map(|found| (found.id.clone(), snapshot(found))).collect::<Vec<_>>())
                    });
                    found.extend(some.await??);
                }
                Ok(Base::Snapshots(found))
            }
            Some(BaseQuery::Volumes { filter, value }) => {
                let wanted = Selection { filters: vec![Filter::new(filter, value)], ..Selection::default() };
                let found = self.ec2("DescribeVolumes", |world| {
                    let (found, _) = world.describe_volumes(&wanted)?;
                    Ok(found.into_iter().map(volume).collect())
                });
                Ok(Base::Volumes(found.await??))
            }
        }
    }
}

fn rows<'a>(answer: &'a Value, member: &str) -> &'a [Value] {
    answer[member].as_array().map_or(&[], Vec::as_slice)
}

fn definition(detail: &Value) -> Definition {
    let revision = detail["revision"].as_u64().and_then(|revision| u32::try_from(revision).ok()).unwrap_or(0);
    let timeout = detail["timeout"]["attemptDurationSeconds"].as_u64();
    let timeout_seconds = timeout.and_then(|seconds| u32::try_from(seconds).ok());
    let needs = detail["containerProperties"]["resourceRequirements"].as_array().into_iter().flatten();
    let gpus =
        needs.filter(|need| need["type"] == "GPU").filter_map(|need| need["value"].as_str()?.parse::<u32>().ok());
    let (arn, status, gpus) = (text(detail, "jobDefinitionArn"), text(detail, "status"), gpus.sum());
    Definition { arn, revision, status, timeout_seconds, gpus }
}

fn snapshot(found: &Snapshot) -> BaseSnapshot {
    BaseSnapshot { state: found.state.as_str().to_owned(), size_gib: found.volume_size_gib }
}

fn volume(found: &Volume) -> BaseVolume {
    BaseVolume {
        id: found.id.clone(),
        zone: found.zone.clone(),
        size_gib: found.size_gib,
        state: found.state.as_str().to_owned(),
        name: found.tags.0.get("Name").cloned(),
        is_tagged: found.tags.0.contains_key(SWEEP_TAG),
        instance: found.attachment.as_ref().map(|attachment| attachment.instance.clone()),
    }
}
