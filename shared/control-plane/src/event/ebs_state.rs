//! `EBS Volume Notification` and `EBS Snapshot Notification`, both best effort (facts 2 and 11).

use serde::Deserialize;

use super::{Envelope, Event, ParseError, ResourceChange, detail};
use spotsweep_records::workspace::SnapshotState;

/// EventBridge detail type of volumes.
pub(super) const VOLUME: &str = "EBS Volume Notification";

/// EventBridge detail type of snapshots.
pub(super) const SNAPSHOT: &str = "EBS Snapshot Notification";

#[derive(Deserialize)]
struct Detail {
    event: String,
    result: String,
    cause: Option<String>,
    snapshot_id: Option<String>,
}

pub(super) fn parse(envelope: Envelope) -> Result<Event, ParseError> {
    let kind = if envelope.detail_type == VOLUME { VOLUME } else { SNAPSHOT };
    let first = envelope.resources.iter().flatten().next().cloned();
    let Detail { event, result, cause, snapshot_id } = detail(kind, envelope)?;
    let change = match (event.as_str(), result.trim()) {
        ("createVolume", "available") => ResourceChange::VolumeMade,
        ("createVolume", "failed") => ResourceChange::VolumeFailed(cause.unwrap_or_default()),
        ("deleteVolume", "deleted") => ResourceChange::VolumeDeleted,
        ("createSnapshot", "succeeded") => ResourceChange::SnapshotEnded(SnapshotState::Completed),
        ("createSnapshot", "failed") => ResourceChange::SnapshotEnded(SnapshotState::Failed),
        _other => {
            return Ok(Event::Unknown { source: "aws.ec2".into(), detail_type: format!("{kind}: {event} {result}") });
        }
    };
    // The ARNs are irregular (fact 8), but the id is always after the last slash.
    let arn = snapshot_id.or(first).unwrap_or_default();
    let id = arn.rsplit('/').next().unwrap_or_default();
    let prefix = if kind == VOLUME { "vol-" } else { "snap-" };
    if !super::is_resource(id, prefix) {
        return Err(ParseError::Value { kind, problem: format!("{arn:?} does not name a resource {prefix}…") });
    }
    Ok(Event::ResourceChanged { id: id.to_owned(), change })
}
