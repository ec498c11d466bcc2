//! Finds a queue's instances, and what they cost on Spot.

use std::collections::BTreeSet;

use aws_sdk_batch::types::ComputeResource;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::primitives::DateTime;
use aws_sdk_ec2::types::{InstanceType, SpotPrice};
use jiff::Timestamp;
use serde::Serialize;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_report::cost::is_in_dollars;

use crate::target::Target;

/// Today's Spot price of an instance type in a zone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Price {
    /// USD an hour.
    pub(crate) usd: f64,
    /// Text such as `g5.xlarge in us-east-1a`.
    pub(crate) pool: String,
}

/// The lowest and the highest of several prices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Range {
    pub(crate) lowest: Price,
    pub(crate) highest: Price,
}

/// The value of the option, or else the one that the deployment's functions use for sweeps that name none.
pub(crate) async fn named(
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

/// Resources of all compute environments of the queue, because Batch may use each of them.
pub(crate) async fn resources(target: &Target, queue: &str) -> Result<Vec<ComputeResource>, Failure> {
    let client = aws_sdk_batch::Client::new(&target.batch);
    let described = client.describe_job_queues().job_queues(queue).send().await;
    let described = described.context(|| format!("cannot describe the queue {queue} (batch:DescribeJobQueues)"))?;
    let order = described.job_queues().first().map(|queue| queue.compute_environment_order()).unwrap_or_default();
    let environments: Vec<String> =
        order.iter().filter_map(|one| one.compute_environment().map(str::to_owned)).collect();
    if environments.is_empty() {
        return Err(Failure::new(format!("there is no queue {queue} with a compute environment")));
    }
    let described = client.describe_compute_environments().set_compute_environments(Some(environments)).send().await;
    let described = described.context(|| {
        format!("cannot describe the compute environments of queue {queue} (batch:DescribeComputeEnvironments)")
    })?;
    let resources = described.compute_environments().iter().map(|found| found.compute_resources().cloned());
    let resources: Option<Vec<ComputeResource>> = resources.collect();
    resources.ok_or_else(|| Failure::new(format!("a compute environment of queue {queue} is not a managed one")))
}

/// The instance types that a queue's compute environments list.
pub(crate) fn instance_types(resources: &[ComputeResource]) -> Vec<String> {
    let types: BTreeSet<String> = resources.iter().flat_map(|one| one.instance_types()).cloned().collect();
    types.into_iter().collect()
}

/// The zones of the subnets in which a queue's instances may start.
pub(crate) async fn zones(target: &Target, resources: &[ComputeResource]) -> Result<BTreeSet<String>, Failure> {
    let subnets = resources.iter().flat_map(|one| one.subnets()).cloned().collect();
    let described = Client::new(&target.batch).describe_subnets().set_subnet_ids(Some(subnets)).send().await;
    let described = described.context(|| "cannot describe the compute environment's subnets (ec2:DescribeSubnets)")?;
    Ok(described.subnets().iter().filter_map(|subnet| subnet.availability_zone().map(str::to_owned)).collect())
}

/// Today's Spot prices of these types in these zones.
pub(crate) async fn spot_prices(
    client: &Client,
    instance_types: &[String],
    zones: &BTreeSet<String>,
) -> Result<Range, Failure> {
    if zones.iter().any(|zone| !is_in_dollars(zone)) {
        return Err(Failure::usage("prices of this region are not in US dollars, so no cost is computed from them"));
    }
    if let Some(family) = instance_types.iter().find(|name| !name.contains('.')) {
        return Err(Failure::usage(format!(
            "the queue's instances may be any of {family:?}, so no price is known; name a queue whose compute \
             environments list instance types"
        )));
    }
    let types = instance_types.iter().map(|name| InstanceType::from(name.as_str())).collect();
    let history = client
        .describe_spot_price_history()
        .set_instance_types(Some(types))
        .product_descriptions("Linux/UNIX")
        .start_time(DateTime::from_secs(Timestamp::now().as_second()));
    let mut pages = history.into_paginator().send();
    let mut prices = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.context(|| "cannot read the Spot prices (ec2:DescribeSpotPriceHistory)")?;
        prices.extend(page.spot_price_history().iter().filter_map(|price| read(price, zones)));
    }
    prices.sort_by(|one, other| one.usd.total_cmp(&other.usd));
    let (lowest, highest) = (prices.first().cloned(), prices.pop());
    lowest.zip(highest).map(|(lowest, highest)| Range { lowest, highest }).ok_or_else(|| {
        let zones = zones.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        Failure::new(format!(
            "EC2 names no Spot price of {} in {zones}: the region may not have these types; deploy with other InstanceTypes, \
             or name another queue",
            instance_types.join(", ")
        ))
    })
}

fn read(price: &SpotPrice, zones: &BTreeSet<String>) -> Option<Price> {
    let zone = price.availability_zone().filter(|zone| zones.contains(*zone))?;
    let pool = format!("{} in {zone}", price.instance_type()?.as_str());
    Some(Price { usd: price.spot_price()?.parse().ok()?, pool })
}
