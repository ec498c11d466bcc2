//! Snapshots as XML.

use jiff::Timestamp;

use super::super::xml::{list, text};
use super::{Form, next_token, tag_set};
use spotsweep_world::ebs::{CreateSnapshot, Snapshot};
use spotsweep_world::{ApiError, World};

pub(super) fn create(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let snapshot = world.create_snapshot(CreateSnapshot {
        volume: form.text("VolumeId"),
        description: form.text("Description"),
        tags: form.tags_on_create("snapshot")?,
    })?;
    Ok(snapshot_xml(&snapshot, &world.settings().account, world.now()))
}

pub(super) fn describe(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let (account, now) = (world.settings().account.clone(), world.now());
    // There are no snapshots of other accounts, so `self` and the account's own id select all of them.
    if let Some(other) = form.list("Owner").into_iter().find(|owner| owner != "self" && *owner != account) {
        let message = format!("The owner '{other}' is not emulated by spotsweep-emulator: use self.");
        return Err(ApiError::ec2("InvalidParameterValue", message));
    }
    let (found, next) = world.describe_snapshots(&form.selection("SnapshotId")?)?;
    let shown = found.into_iter().map(|snapshot| snapshot_xml(snapshot, &account, now));
    Ok(list("snapshotSet", shown) + &next_token(next))
}

pub(super) fn delete(world: &mut World, form: &Form) -> Result<String, ApiError> {
    world.delete_snapshot(&form.text("SnapshotId"))?;
    Ok(text("return", "true"))
}

fn snapshot_xml(snapshot: &Snapshot, account: &str, now: Timestamp) -> String {
    [
        text("snapshotId", &snapshot.id),
        text("volumeId", &snapshot.volume),
        text("status", snapshot.state.as_str()),
        text("startTime", snapshot.started_at.to_string()),
        text("progress", snapshot.progress(now)),
        text("ownerId", account),
        text("volumeSize", snapshot.volume_size_gib.to_string()),
        // The World does not have the size of a volume with a real disk.
        full_size(snapshot.full_bytes()),
        text("description", &snapshot.description),
        text("encrypted", snapshot.encrypted.to_string()),
        tag_set(snapshot.tags.iter()),
    ]
    .concat()
}

fn full_size(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { text("fullSnapshotSizeInBytes", bytes.to_string()) }
}
