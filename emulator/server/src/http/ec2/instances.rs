//! Instances, zones and subnets as XML.

use super::super::xml::{list, node, text};
use super::{Form, next_token, tag_set};
use spotsweep_world::ebs::AttachmentState;
use spotsweep_world::{ApiError, Instance, InstanceState, World, whole_seconds};

pub(super) fn describe(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let account = world.settings().account.clone();
    let (found, next) = world.describe_instances(&form.selection("InstanceId")?)?;
    let found: Vec<Instance> = found.into_iter().cloned().collect();
    // Batch launches instances by fleets, which make one reservation for each instance.
    let reservations = found.iter().map(|instance| {
        let reservation = instance.id.replacen("i-", "r-", 1);
        text("reservationId", reservation)
            + &text("ownerId", &account)
            + &list("instancesSet", [instance_xml(instance, devices(world, instance))])
    });
    Ok(list("reservationSet", reservations) + &next_token(next))
}

fn state_xml(name: &str, state: InstanceState) -> String {
    node(name, [text("code", state.code().to_string()), text("name", state.as_str())])
}

/// Returns the attached volumes. The root volume is not emulated.
fn devices(world: &World, instance: &Instance) -> String {
    let devices = world.volumes_at(&instance.id).map(|(volume, attachment)| {
        let ebs = [
            text("volumeId", &volume.id),
            text("status", device_status(attachment.state)),
            text("attachTime", whole_seconds(attachment.attached_at)),
            text("deleteOnTermination", "false"),
        ];
        text("deviceName", &attachment.device) + &node("ebs", ebs)
    });
    list("blockDeviceMapping", devices)
}

/// Returns the status of an attached volume as an instance shows it. EC2's model of DescribeInstances
/// (`AttachmentStatus`) has no `busy`, which DescribeVolumes has (`VolumeAttachmentState`).
fn device_status(state: AttachmentState) -> &'static str {
    match state {
        AttachmentState::Busy => AttachmentState::Detaching.as_str(),
        other => other.as_str(),
    }
}

fn instance_xml(instance: &Instance, devices: String) -> String {
    let mut fields = vec![
        text("instanceId", &instance.id),
        state_xml("instanceState", instance.state),
        text("instanceType", &instance.instance_type),
        text("launchTime", whole_seconds(instance.launched_at)),
        node("placement", [text("availabilityZone", &instance.zone), text("tenancy", "default")]),
        text("subnetId", &instance.subnet),
        devices,
        // The reason is empty while the instance runs.
        text("reason", &instance.transition_reason),
        tag_set(instance.tags.iter().map(|(key, value)| (key, value))),
    ];
    if instance.spot {
        fields.push(text("instanceLifecycle", "spot"));
    }
    if let Some((code, message)) = instance.state_reason {
        fields.push(node("stateReason", [text("code", code), text("message", message)]));
    }
    fields.concat()
}

/// Describes status checks. Only running instances have them; for others they are not applicable (EC2 API reference,
/// "InstanceStatus").
pub(super) fn describe_status(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let (found, next) =
        world.describe_instance_status(&form.selection("InstanceId")?, form.flag("IncludeAllInstances")?)?;
    let entries = found.into_iter().map(|instance| {
        let (status, check) = match (instance.state, instance.impaired) {
            (InstanceState::Running, true) => ("impaired", "failed"),
            (InstanceState::Running, false) => ("ok", "passed"),
            (InstanceState::Pending | InstanceState::ShuttingDown | InstanceState::Terminated, _) => {
                ("not-applicable", "")
            }
        };
        let details = [text("name", "reachability"), text("status", check)];
        let details = if check.is_empty() { String::new() } else { list("details", [details.concat()]) };
        let summary = |name| node(name, [text("status", status), details.clone()]);
        text("instanceId", &instance.id)
            + &text("availabilityZone", &instance.zone)
            + &state_xml("instanceState", instance.state)
            + &summary("systemStatus")
            + &summary("instanceStatus")
    });
    Ok(list("instanceStatusSet", entries) + &next_token(next))
}

pub(super) fn terminate(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let changes = world.terminate_instances(&form.list("InstanceId"))?;
    let entries = changes.into_iter().map(|(id, from, to)| {
        text("instanceId", id) + &state_xml("currentState", to) + &state_xml("previousState", from)
    });
    Ok(list("instancesSet", entries))
}

pub(super) fn describe_zones(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let (names, filters) = (form.list("ZoneName"), form.filters()?);
    let entries = world.describe_zones(names, filters)?.into_iter().map(|zone| {
        text("zoneName", &zone.name)
            + &text("zoneState", zone.state())
            + &text("regionName", &zone.region)
            + &text("zoneType", zone.kind())
    });
    Ok(list("availabilityZoneInfo", entries))
}
