//! Checks whether the region and its zones have the instance types.

use std::collections::BTreeSet;

use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{Filter, LocationType};

use super::super::finding::{Finding, State};

const ABOUT: &str = "instance types";

/// Pairs of an instance type and a zone that offers it.
type Offers = BTreeSet<(String, String)>;

/// Checks instance types or families in these zones of the region.
pub(super) async fn look(client: &Client, names: &[String], zones: &[String]) -> Vec<Finding> {
    match offers(client, names).await {
        Ok(offers) => judge(names, &offers, zones),
        Err(problem) => vec![*problem],
    }
}

/// Reads the offers in all zones of the region, because CreateComputeEnvironment checks only whether the region has a
/// type.
async fn offers(client: &Client, names: &[String]) -> Result<Offers, Box<Finding>> {
    let patterns = names.iter().map(|name| if is_family(name) { format!("{name}.*") } else { name.clone() });
    let filter = Filter::builder().name("instance-type").set_values(Some(patterns.collect())).build();
    let mut pages = client
        .describe_instance_type_offerings()
        .location_type(LocationType::AvailabilityZone)
        .filters(filter)
        .into_paginator()
        .send();
    let mut offers = Offers::new();
    while let Some(page) = pages.next().await {
        let page =
            page.map_err(|error| Box::new(Finding::refused(ABOUT, "ec2:DescribeInstanceTypeOfferings", &error)))?;
        offers.extend(
            page.instance_type_offerings()
                .iter()
                .filter_map(|offer| Some((offer.instance_type()?.as_str().to_owned(), offer.location()?.to_owned()))),
        );
    }
    Ok(offers)
}

fn is_family(name: &str) -> bool {
    !name.contains('.')
}

/// Whether a type is of Graviton: it has a `g` after the number of its generation.
fn is_arm(name: &str) -> bool {
    let family = name.split('.').next().unwrap_or(name);
    let attributes = family.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
    attributes.trim_start_matches(|digit: char| digit.is_ascii_digit()).contains('g')
}

fn judge(names: &[String], offers: &Offers, zones: &[String]) -> Vec<Finding> {
    let has = |name: &str, zone: &str| offers.iter().any(|(offered, at)| at == zone && is_of(name, offered));
    let (known, unknown): (Vec<&str>, Vec<&str>) =
        names.iter().map(String::as_str).partition(|name| offers.iter().any(|(offered, _)| is_of(name, offered)));
    let mut findings: Vec<Finding> = not_in_region(&known, &unknown).into_iter().chain(mixed(names)).collect();
    let empty: Vec<&str> =
        zones.iter().map(String::as_str).filter(|zone| !known.iter().any(|name| has(name, zone))).collect();
    if !known.is_empty() && !zones.is_empty() {
        findings.extend(without_any(&empty, zones, &known, offers));
        let partly = zones.iter().filter(|zone| !empty.contains(&zone.as_str()));
        findings.extend(partly.filter_map(|zone| {
            let lacking: Vec<&str> = known.iter().copied().filter(|name| !has(name, zone)).collect();
            without_some(zone, &lacking)
        }));
    }
    if findings.iter().all(|finding| finding.state != State::Problem) {
        findings.insert(0, Finding::ok(ABOUT, format!("the region has {}", known.join(", "))));
    }
    findings
}

fn is_of(name: &str, offered: &str) -> bool {
    name == offered || (is_family(name) && offered.split('.').next() == Some(name))
}

/// For such a type Batch answers "Instance type can only be one of […]", and CloudFormation rolls the whole stack back
/// (fact 49).
fn not_in_region(known: &[&str], unknown: &[&str]) -> Option<Finding> {
    if unknown.is_empty() {
        return None;
    }
    let said = format!(
        "this region has no {}: Batch refuses the compute environments, and the whole stack is rolled back",
        unknown.join(", no ")
    );
    let fix = match known {
        [] => "deploy in another region, or set InstanceTypes to types that `aws ec2 describe-instance-type-offerings \
               --filters 'Name=instance-type,Values=g*,p*' --query 'InstanceTypeOfferings[].InstanceType'` lists"
            .to_owned(),
        known => format!("deploy with InstanceTypes={}", known.join(",")),
    };
    Some(Finding::problem(ABOUT, said, fix))
}

/// The types of one compute environment must have the same architecture (API_ComputeResource, `instanceTypes`).
fn mixed(names: &[String]) -> Option<Finding> {
    let (arm, x86): (Vec<&str>, Vec<&str>) = names.iter().map(String::as_str).partition(|name| is_arm(name));
    if arm.is_empty() || x86.is_empty() {
        return None;
    }
    let said = format!("{} are Graviton and {} are not: Batch refuses the mixture", arm.join(", "), x86.join(", "));
    Some(Finding::problem(ABOUT, said, format!("deploy with InstanceTypes={}", x86.join(","))))
}

fn without_any(empty: &[&str], zones: &[String], known: &[&str], offers: &Offers) -> Option<Finding> {
    if empty.is_empty() {
        return None;
    }
    let better: BTreeSet<&str> = offers.iter().map(|(_, zone)| zone.as_str()).collect();
    let better = better.into_iter().collect::<Vec<_>>().join(", ");
    let fix = format!("give Subnets and SecurityGroups of your own; the types are in {better}");
    let said = format!("{} has none of {}", empty.join(", "), known.join(", "));
    Some(match empty.len() == zones.len() {
        true => Finding::problem(ABOUT, format!("{said}: no trial can start"), fix),
        false => Finding::look(ABOUT, format!("{said}: no trial starts there"), fix),
    })
}

fn without_some(zone: &str, lacking: &[&str]) -> Option<Finding> {
    if lacking.is_empty() {
        return None;
    }
    let said = format!("{zone} lacks {}: trials there have the other types", lacking.join(", "));
    Some(Finding::look(ABOUT, said, "to have them all, give Subnets in other zones; nothing fails without"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: [&str; 2] = ["g5.xlarge", "g6.xlarge"];
    const ZONES: [&str; 3] = ["z-1a", "z-1b", "z-1c"];

    fn offers(without: &[(&str, &str)]) -> Offers {
        let all = TYPES.iter().flat_map(|name| ZONES.iter().map(move |zone| (*name, *zone)));
        let offered = all.filter(|pair| !without.contains(pair));
        offered.map(|(name, zone)| (name.to_owned(), zone.to_owned())).collect()
    }

    fn judged(names: &[&str], without: &[(&str, &str)], zones: &[&str]) -> Vec<(State, String)> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let findings = judge(&owned(names), &offers(without), &owned(zones));
        findings.into_iter().map(|found| (found.state, found.said + " → " + &found.fix.unwrap_or_default())).collect()
    }

    #[test]
    fn a_type_that_the_region_lacks_fails_the_stack() {
        let nowhere = ZONES.map(|zone| ("g6.xlarge", zone));
        let [(state, text)] = &judged(&TYPES, &nowhere, &ZONES)[..] else { panic!("one finding") };
        assert_eq!(*state, State::Problem);
        assert!(text.contains("no g6.xlarge") && text.ends_with("InstanceTypes=g5.xlarge"), "{text}");
        let [(_, text)] = &judged(&["g6.xlarge", "p5"], &nowhere, &ZONES)[..] else { panic!("one finding") };
        assert!(text.contains("no g6.xlarge, no p5") && text.contains("in another region"), "{text}");
    }

    #[test]
    fn a_zone_without_a_type_fails_nothing() {
        let found = judged(&TYPES, &[("g6.xlarge", "z-1b")], &ZONES);
        assert_eq!(found.iter().map(|(state, _)| *state).collect::<Vec<_>>(), [State::Ok, State::Look]);
        assert!(found[1].1.contains("z-1b lacks g6.xlarge"), "{found:?}");
        // A zone that is not used does not matter.
        assert_eq!(judged(&TYPES, &[("g6.xlarge", "z-1b")], &["z-1a", "z-1c"]).len(), 1);
        // A family exists in a zone if one of its types does.
        assert_eq!(judged(&["g5", "g6"], &[], &ZONES).len(), 1);
    }

    #[test]
    fn zones_without_any_type_start_no_trial() {
        let there = TYPES.map(|name| (name, "z-1a"));
        let found = judged(&TYPES, &there, &ZONES);
        assert_eq!(found.iter().map(|(state, _)| *state).collect::<Vec<_>>(), [State::Ok, State::Look]);
        let [(state, text)] = &judged(&TYPES, &there, &["z-1a"])[..] else { panic!("one finding") };
        assert_eq!(*state, State::Problem);
        assert!(text.contains("Subnets") && text.ends_with("z-1b, z-1c"), "{text}");
    }

    #[test]
    fn architectures_are_not_mixed() {
        for (name, arm) in
            [("g5g.xlarge", true), ("g5.xlarge", false), ("g4dn", false), ("c7gd.large", true), ("gr6", false)]
        {
            assert_eq!(is_arm(name), arm, "{name}");
        }
        let found = mixed(&["g5g.xlarge", "g5.xlarge"].map(str::to_owned)).unwrap();
        assert!(found.fix.unwrap().ends_with("InstanceTypes=g5.xlarge"));
    }
}
