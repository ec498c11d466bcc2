//! Looks up the disks on which a queue's instances keep data sets.

use spotsweep_records::sweep::target::{DataDisk, Queue};

use super::all_pages;
use crate::calls::{Batch, CallError, ComputeEnvironment, DescribeInstanceTypes, Ec2, FILTER_VALUES, Filter};

/// The tag of instances that start with the script of `infra/compute.yaml`: GiB of the root disk. They keep data sets on
/// their own NVMe disks (fact 72), or on the root disk if their type has none.
const ROOT_GIB: &str = "spotsweep:root-gib";

/// Returns the disk of each instance type that Batch may start for the queue; none if one of them is unknown.
pub(super) async fn look_up(batch: &impl Batch, ec2: &impl Ec2, queue: &Queue) -> Result<Vec<DataDisk>, CallError> {
    let found = batch.describe_compute_environments(queue.environments.clone()).await?;
    let mut disks = Vec::new();
    for environment in &found {
        match of_environment(ec2, environment).await? {
            Some(of_environment) => disks.extend(of_environment),
            None => return Ok(Vec::new()),
        }
    }
    // A type may be in several environments, or be named besides its family.
    disks.sort_unstable();
    disks.dedup();
    Ok(if found.len() == queue.environments.len() { disks } else { Vec::new() })
}

async fn of_environment(ec2: &impl Ec2, environment: &ComputeEnvironment) -> Result<Option<Vec<DataDisk>>, CallError> {
    let root_gib = environment.instance_tags.iter().find(|(key, _)| key == ROOT_GIB);
    let Some(root_gib) = root_gib.and_then(|(_, gib)| gib.parse::<u64>().ok()) else { return Ok(None) };
    let mut disks = Vec::new();
    for names in environment.instance_types.chunks(FILTER_VALUES) {
        let values: Vec<String> = names.iter().map(|name| pattern(name)).collect();
        let filters = vec![Filter { name: "instance-type".to_owned(), values }];
        let wanted = DescribeInstanceTypes { filters, ..DescribeInstanceTypes::default() };
        let page = |next_token| ec2.describe_instance_types(DescribeInstanceTypes { next_token, ..wanted.clone() });
        let found = all_pages(page).await?;
        // Names such as `optimal` stand for families that Batch chooses.
        let is_known = |name: &String| found.iter().any(|one| one.name == *name || family(&one.name) == name);
        if !names.iter().all(is_known) {
            return Ok(None);
        }
        disks.extend(found.into_iter().map(|one| {
            let bytes = one.nvme_gb.map_or(root_gib << 30, |gb| gb * 1_000_000_000);
            DataDisk { instance_type: one.name, bytes, gpus: one.gpus }
        }));
    }
    Ok(Some(disks))
}

fn family(instance_type: &str) -> &str {
    instance_type.split_once('.').map_or(instance_type, |(family, _)| family)
}

/// Returns the value of the filter for an instance type, or for all types of a family. `*` is a wildcard
/// (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html>).
fn pattern(name: &str) -> String {
    if name.contains('.') { name.to_owned() } else { format!("{name}.*") }
}
