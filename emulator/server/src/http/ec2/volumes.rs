//! Volumes and attachments as XML.

use super::super::xml::{list, text};
use super::{Form, next_token, tag_set};
use spotsweep_world::ebs::{AttachVolume, Attachment, CreateVolume, DetachVolume, Volume};
use spotsweep_world::{ApiError, World, whole_seconds};

pub(super) fn create(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let volume = world.create_volume(CreateVolume {
        zone: form.text("AvailabilityZone"),
        size_gib: form.number("Size")?,
        snapshot: form.optional("SnapshotId"),
        volume_type: form.optional("VolumeType"),
        encrypted: form.flag("Encrypted")?,
        client_token: form.optional("ClientToken"),
        initialization_rate: form.number("VolumeInitializationRate")?,
        tags: form.tags_on_create("volume")?,
    })?;
    Ok(volume_xml(&volume))
}

pub(super) fn describe(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let (found, next) = world.describe_volumes(&form.selection("VolumeId")?)?;
    Ok(list("volumeSet", found.into_iter().map(volume_xml)) + &next_token(next))
}

pub(super) fn attach(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let volume = form.text("VolumeId");
    let request =
        AttachVolume { volume: volume.clone(), instance: form.text("InstanceId"), device: form.text("Device") };
    Ok(attachment_xml(&volume, &world.attach_volume(&request)?))
}

pub(super) fn detach(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let volume = form.text("VolumeId");
    let request = DetachVolume {
        volume: volume.clone(),
        instance: form.optional("InstanceId"),
        device: form.optional("Device"),
        force: form.flag("Force")?,
    };
    Ok(attachment_xml(&volume, &world.detach_volume(&request)?))
}

pub(super) fn delete(world: &mut World, form: &Form) -> Result<String, ApiError> {
    world.delete_volume(&form.text("VolumeId"))?;
    Ok(text("return", "true"))
}

fn volume_xml(volume: &Volume) -> String {
    let attachments = volume.attachment.iter().map(|attachment| attachment_xml(&volume.id, attachment));
    let mut fields = vec![
        text("volumeId", &volume.id),
        text("size", volume.size_gib.to_string()),
        text("snapshotId", volume.snapshot.as_deref().unwrap_or_default()),
        text("availabilityZone", &volume.zone),
        text("status", volume.state.as_str()),
        text("createTime", volume.created_at.to_string()),
        list("attachmentSet", attachments),
        tag_set(volume.tags.iter()),
        text("volumeType", &volume.volume_type),
        text("iops", volume.iops().to_string()),
        text("encrypted", volume.encrypted.to_string()),
        text("multiAttachEnabled", "false"),
    ];
    if let Some(throughput) = volume.throughput_mib() {
        fields.push(text("throughput", throughput.to_string()));
    }
    if let Some(rate) = volume.initialization_rate {
        fields.push(text("volumeInitializationRate", rate.to_string()));
    }
    fields.concat()
}

fn attachment_xml(volume: &str, attachment: &Attachment) -> String {
    [
        text("volumeId", volume),
        text("instanceId", &attachment.instance),
        text("device", &attachment.device),
        text("status", attachment.state.as_str()),
        text("attachTime", whole_seconds(attachment.attached_at)),
        text("deleteOnTermination", "false"),
    ]
    .concat()
}
