//! What a deployment has made outside of its stack: snapshots that are kept, job definitions, and secrets.

use aws_sdk_batch::types::JobDefinition;
use aws_sdk_ec2::types::Filter;
use spotsweep_control_plane::calls::FILTER_VALUES;
use spotsweep_records::sweep::Sweep;
use spotsweep_records::workspace::SWEEP_TAG;

use crate::secrets::Secrets;
use crate::target::Target;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::counted;

/// Snapshots, job definitions and secrets of a deployment.
#[derive(Debug)]
pub(super) struct Remains {
    ec2: aws_sdk_ec2::Client,
    batch: aws_sdk_batch::Client,
    snapshots: Vec<String>,
    definitions: Vec<String>,
    secrets: (Secrets, Vec<String>),
}

impl Remains {
    /// Finds them.
    ///
    /// # Errors
    /// They cannot be listed, or a volume is still there: without the functions nothing would delete it.
    pub(super) async fn of(target: &Target, sweeps: &[Sweep], (prefix, bucket): (&str, &str)) -> Result<Self, Failure> {
        let (ec2, batch) = (aws_sdk_ec2::Client::new(&target.config), aws_sdk_batch::Client::new(&target.batch));
        let mut snapshots = Vec::new();
        for some in sweeps.chunks(FILTER_VALUES) {
            let ids = some.iter().map(|sweep| sweep.id.as_str().to_owned()).collect();
            let of_sweeps = Filter::builder().name(format!("tag:{SWEEP_TAG}")).set_values(Some(ids)).build();
            let volumes = ec2.describe_volumes().filters(of_sweeps.clone()).send().await;
            let volumes = volumes.context(|| "cannot list the volumes (ec2:DescribeVolumes)")?;
            if let Some(id) = volumes.volumes().iter().find_map(|volume| volume.volume_id()) {
                return Err(Failure::new(format!(
                    "volume {id} of a trial is still there: wait some minutes, until the functions have deleted it"
                )));
            }
            let found = ec2.describe_snapshots().owner_ids("self").filters(of_sweeps).send().await;
            let found = found.context(|| "cannot list the snapshots (ec2:DescribeSnapshots)")?;
            snapshots.extend(found.snapshots.unwrap_or_default().into_iter().filter_map(|one| one.snapshot_id));
        }
        let mut pages = batch.describe_job_definitions().status("ACTIVE").into_paginator().items().send();
        let (own, of_images) = (format!("{prefix}train"), format!("{prefix}train-image-"));
        let is_own = |found: &JobDefinition| {
            found.job_definition_name().is_some_and(|name| name == own || name.starts_with(&of_images))
        };
        let mut definitions = Vec::new();
        while let Some(found) = pages.next().await {
            let found = found.context(|| "cannot list the job definitions (batch:DescribeJobDefinitions)")?;
            definitions.extend(Some(found).filter(is_own).and_then(|found| found.job_definition_arn));
        }
        let secrets = Secrets::of_bucket(&target.config, bucket);
        let names = secrets.all().await?.iter().filter_map(|found| secrets.name(found).map(str::to_owned)).collect();
        Ok(Self { ec2, batch, snapshots, definitions, secrets: (secrets, names) })
    }

    /// What is deleted with the stack.
    pub(super) fn described(&self) -> String {
        let snapshots = (self.snapshots.len(), "snapshot", " that are kept of trials");
        let secrets = (self.secrets.1.len(), "secret", "");
        let some = [snapshots, secrets].into_iter().filter(|(count, ..)| *count > 0);
        some.map(|(count, what, which)| format!(", {}{which}", counted(count, what))).collect()
    }

    /// Deletes the snapshots and the secrets, and makes the job definitions INACTIVE.
    pub(super) async fn delete(&self) -> Result<(), Failure> {
        for id in &self.snapshots {
            let deleted = self.ec2.delete_snapshot().snapshot_id(id).send().await;
            deleted.context(|| format!("cannot delete the snapshot {id} (ec2:DeleteSnapshot)"))?;
        }
        let (secrets, names) = &self.secrets;
        for name in names {
            secrets.remove(name).await?;
        }
        for arn in &self.definitions {
            let removed = self.batch.deregister_job_definition().job_definition(arn).send().await;
            removed.context(|| format!("cannot deregister {arn} (batch:DeregisterJobDefinition)"))?;
        }
        Ok(())
    }
}
