//! The instance types of each zone, and the subnets of the default VPC, as XML.

use super::super::xml::{list, node, text};
use super::Form;
use spotsweep_world::{ApiError, InstanceType, World};

const BY_ZONE: &str = "availability-zone";

fn invalid(message: String) -> ApiError {
    ApiError::ec2("InvalidParameterValue", message)
}

/// Returns the values of the filters with these names. A filter has one or more.
fn values<const N: usize>(form: &Form, names: [&str; N]) -> Result<[Vec<String>; N], ApiError> {
    let mut values = names.map(|_| Vec::new());
    for filter in form.filters()? {
        let place = names.iter().position(|name| *name == filter.name);
        let place = place.ok_or_else(|| invalid(format!("The filter '{}' is invalid", filter.name)))?;
        values[place].extend(filter.values);
    }
    Ok(values)
}

pub(super) fn describe(world: &mut World, form: &Form) -> Result<String, ApiError> {
    match form.get("LocationType") {
        Some(BY_ZONE) => {}
        other => {
            let other = other.unwrap_or("region");
            return Err(invalid(format!("LocationType {other} is not emulated by spotsweep-emulator: {BY_ZONE} is.")));
        }
    }
    let [types, zones] = values(form, ["instance-type", "location"])?;
    let offered = world.describe_offerings(&types)?.into_iter();
    let chosen = offered.filter(|(_, zone)| zones.is_empty() || zones.contains(zone));
    let entries = chosen
        .map(|(name, zone)| text("instanceType", name) + &text("locationType", BY_ZONE) + &text("location", zone));
    Ok(list("instanceTypeOfferingSet", entries))
}

pub(super) fn describe_types(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let [patterns] = values(form, ["instance-type"])?;
    let entries = world.describe_instance_types(&patterns)?.into_iter().map(|InstanceType { name, nvme_gb, gpus }| {
        let gpus = (gpus > 0).then(|| node("gpuInfo", [list("gpus", [text("count", gpus.to_string())])]));
        let storage = nvme_gb.map(|gb| [text("totalSizeInGB", gb.to_string()), text("nvmeSupport", "required")]);
        let is_supported = text("instanceStorageSupported", storage.is_some().to_string());
        text("instanceType", name)
            + &gpus.unwrap_or_default()
            + &is_supported
            + &storage.map_or_else(String::new, |one| node("instanceStorageInfo", one))
    });
    Ok(list("instanceTypeSet", entries))
}

pub(super) fn describe_subnets(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let subnets = world.describe_subnets(form.list("SubnetId"), form.filters()?)?;
    let entries = subnets.into_iter().map(|subnet| {
        text("subnetId", subnet.id)
            + &text("state", "available")
            + &text("availabilityZone", subnet.zone)
            + &text("defaultForAz", "true")
    });
    Ok(list("subnetSet", entries))
}
