//! Finds the zones in which trials run: those of the given subnets, or those of the network that the template makes.

use std::collections::BTreeSet;

use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::Filter;

use super::super::finding::Finding;

const ABOUT: &str = "zones";
/// The smallest ZoneCount that the template allows.
const LEAST: usize = 2;

/// Finds the zones, and makes the finding about them.
pub(super) async fn look(
    client: &Client,
    subnets: &[String],
    count: usize,
) -> Result<(Vec<String>, Finding), Box<Finding>> {
    if subnets.is_empty() {
        return choose(with_default_subnet(client).await?, count);
    }
    let asked = client.describe_subnets().set_subnet_ids(Some(subnets.to_vec())).send().await;
    let found = asked.map_err(|error| {
        let refused = Finding::refused(ABOUT, "ec2:DescribeSubnets", &error);
        Box::new(Finding { fix: Some("set Subnets to subnets of this region, or leave it out".to_owned()), ..refused })
    })?;
    let zones: BTreeSet<String> =
        found.subnets().iter().filter_map(|subnet| subnet.availability_zone().map(str::to_owned)).collect();
    let said = format!("{}, by Subnets", listed(&zones));
    Ok((zones.into_iter().collect(), Finding::ok(ABOUT, said)))
}

/// `Fn::GetAZs` returns the zones with a default subnet, and all zones if no zone has one
/// (<https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/intrinsic-function-reference-getavailabilityzones.html>).
async fn with_default_subnet(client: &Client) -> Result<BTreeSet<String>, Box<Finding>> {
    let refused =
        |call: &str, error: &(dyn std::error::Error + 'static)| Box::new(Finding::refused(ABOUT, call, error));
    let default = Filter::builder().name("default-for-az").values("true").build();
    let found = client.describe_subnets().filters(default).send().await;
    let found = found.map_err(|error| refused("ec2:DescribeSubnets", &error))?;
    let zones: BTreeSet<String> =
        found.subnets().iter().filter_map(|subnet| subnet.availability_zone().map(str::to_owned)).collect();
    if !zones.is_empty() {
        return Ok(zones);
    }
    let proper = Filter::builder().name("zone-type").values("availability-zone").build();
    let found = client.describe_availability_zones().filters(proper).send().await;
    let found = found.map_err(|error| refused("ec2:DescribeAvailabilityZones", &error))?;
    Ok(found.availability_zones().iter().filter_map(|zone| zone.zone_name().map(str::to_owned)).collect())
}

/// Chooses the first zones in alphabetical order, as `infra/network.yaml` does.
fn choose(zones: BTreeSet<String>, count: usize) -> Result<(Vec<String>, Finding), Box<Finding>> {
    let there = zones.len();
    if there >= count {
        let zones: BTreeSet<String> = zones.into_iter().take(count).collect();
        let said = format!("{}, by ZoneCount", listed(&zones));
        return Ok((zones.into_iter().collect(), Finding::ok(ABOUT, said)));
    }
    let said = format!("CloudFormation finds {there} zones, and ZoneCount is {count}: the stack fails at its network");
    let fix = match there {
        0..LEAST => "deploy in another region, or give Subnets and SecurityGroups of your own".to_owned(),
        _ => format!("deploy with ZoneCount={there}, or give Subnets and SecurityGroups of your own"),
    };
    Err(Box::new(Finding::problem(ABOUT, said, fix)))
}

fn listed(zones: &BTreeSet<String>) -> String {
    zones.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_needs_as_many_zones_as_zone_count() {
        let zones = |letters: &str| letters.chars().map(|letter| format!("us-west-1{letter}")).collect();
        let (chosen, _) = choose(zones("dabc"), 3).unwrap();
        assert_eq!(chosen, ["us-west-1a", "us-west-1b", "us-west-1c"]);
        // An account sees two of us-west-1's zones.
        let two = choose(zones("ac"), 3).unwrap_err();
        assert!(two.fix.unwrap().contains("ZoneCount=2"));
        let one = choose(zones("a"), 2).unwrap_err();
        assert!(one.fix.unwrap().starts_with("deploy in another region"));
    }
}
