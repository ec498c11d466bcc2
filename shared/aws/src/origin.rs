//! What a file wants its workspaces made of: a snapshot or a volume of the user's, looked up before anything runs.
//!
//! A volume that somebody made by hand is adopted only where exactly one fits, nobody has it, and it carries the tag
//! [`SWEEP`]. By that tag its owner agrees that it is attached, and that it moves: the copy in another zone takes its
//! place, and once that is verified the original is deleted. The roles reach no volume without it.

use std::error::Error;

use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{Filter, Snapshot, SnapshotState, Volume, VolumeState};

use super::ebs::{Failure, SWEEP};
use spotsweep_control_plane::workspace::{Origin, WorkspacePlan};

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Resolved {
    /// All is there; ids, zone and size are filled in.
    Plan(Option<WorkspacePlan>),
    /// It can't be used: why, and how to mend it.
    Problem { message: String, help: String },
}

/// Calls EC2 only where the plan names something.
pub(super) async fn resolve(
    client: &Client,
    wanted: Option<&WorkspacePlan>,
) -> Result<Resolved, Box<dyn Error + Send + Sync>> {
    let Some(wanted) = wanted else { return Ok(Resolved::Plan(None)) };
    Ok(match &wanted.origin {
        Origin::Blank => Resolved::Plan(Some(wanted.clone())),
        Origin::Snapshot { snapshot } => {
            from_snapshot(find_snapshot(client, snapshot).await?.as_ref(), snapshot, wanted)
        }
        Origin::Adopted { volume, .. } => {
            adopt(&find_volumes(client, volume).await?, volume, wanted.initialization_rate)
        }
    })
}

async fn find_snapshot(client: &Client, id: &str) -> Result<Option<Snapshot>, Failure> {
    let absent = ["InvalidSnapshot.NotFound", "InvalidSnapshotID.Malformed", "InvalidParameterValue"];
    match client.describe_snapshots().snapshot_ids(id).send().await.map_err(Failure::from) {
        Ok(answer) => Ok(answer.snapshots.unwrap_or_default().into_iter().next()),
        Err(Failure::Refused { code, .. }) if absent.contains(&code.as_str()) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn from_snapshot(found: Option<&Snapshot>, id: &str, wanted: &WorkspacePlan) -> Resolved {
    let Some(found) = found else {
        let message = format!("there is no snapshot {id} in this region that this account may use");
        return problem(message, "name another one; `aws ec2 describe-snapshots --owner-ids self` lists them");
    };
    if found.state() != Some(&SnapshotState::Completed) {
        let state = found.state().map_or("in no known state", SnapshotState::as_str);
        let message = format!("snapshot {id} is {state}, and only from a completed one can volumes be made");
        return problem(message, "wait until it is completed and drop the file again, or name another one");
    }
    // No volume is smaller than its snapshot's: the plan says what will be made.
    let least = found.volume_size().and_then(|size| u32::try_from(size).ok()).unwrap_or(0);
    Resolved::Plan(Some(WorkspacePlan { size_gib: wanted.size_gib.max(least), ..wanted.clone() }))
}

/// By id or by Name tag. What comes back is compared with the name, since a wildcard would find other volumes too.
async fn find_volumes(client: &Client, wanted: &str) -> Result<Vec<Volume>, Failure> {
    let name = if is_volume_id(wanted) { "volume-id" } else { "tag:Name" };
    let filter = Filter::builder().name(name).values(literal(wanted)).build();
    let mut pages = client.describe_volumes().filters(filter).into_paginator().items().send();
    let mut found = Vec::new();
    while let Some(volume) = pages.next().await {
        let volume = volume?;
        let is_leaving = matches!(volume.state(), Some(VolumeState::Deleting | VolumeState::Deleted));
        if !is_leaving && (volume.volume_id() == Some(wanted) || tag(&volume, "Name") == Some(wanted)) {
            found.push(volume);
        }
    }
    Ok(found)
}

/// A filter's value that matches this text alone: `*` and `?` are wildcards, and a backslash makes the next character
/// plain (EC2 user guide, "Filter resources using the API").
fn literal(text: &str) -> String {
    let escaped = |letter| if matches!(letter, '*' | '?' | '\\') { vec!['\\', letter] } else { vec![letter] };
    text.chars().flat_map(escaped).collect()
}

fn is_volume_id(text: &str) -> bool {
    text.strip_prefix("vol-").is_some_and(|hex| !hex.is_empty() && hex.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn tag<'a>(volume: &'a Volume, key: &str) -> Option<&'a str> {
    volume.tags().iter().find(|tag| tag.key() == Some(key))?.value()
}

/// Neither nothing nor several may fall through: that is how the reference script lost its fleet (facts, last part).
fn adopt(found: &[Volume], wanted: &str, initialization_rate: Option<u32>) -> Resolved {
    let volume = match found {
        [volume] => volume,
        [] => {
            let what = if is_volume_id(wanted) { "volume" } else { "volume with the Name tag" };
            let message = format!("there is no {what} {wanted:?} in this region");
            return problem(message, "check the name and the region; `aws ec2 describe-volumes` lists them");
        }
        several => {
            let list: Vec<String> = several.iter().map(describe).collect();
            let message = format!("{} volumes have the Name tag {wanted:?}: {}", list.len(), list.join(", "));
            return problem(message, "name the one that is meant by its id, `workspace: {volume: vol-…}`");
        }
    };
    let (Some(id), Some(zone), Some(size_gib)) =
        (volume.volume_id(), volume.availability_zone(), volume.size().and_then(|size| u32::try_from(size).ok()))
    else {
        return problem(format!("EC2 does not say all of volume {wanted:?}"), "drop the file again");
    };
    if let Some(attachment) = volume.attachments().first() {
        let message = format!("volume {} is attached to {}", describe(volume), attachment.instance_id().unwrap_or("?"));
        return problem(
            message,
            format!("detach it, `aws ec2 detach-volume --volume-id {id}`, and drop the file again"),
        );
    }
    if volume.state() != Some(&VolumeState::Available) {
        let state = volume.state().map_or("in no known state", VolumeState::as_str);
        let message = format!("volume {} is {state}", describe(volume));
        return problem(message, "wait until it is available and drop the file again, or name another one");
    }
    if tag(volume, SWEEP).is_none() {
        let message = format!("volume {} lacks the tag {SWEEP}, without which it is not touched", describe(volume));
        let command = format!("aws ec2 create-tags --resources {id} --tags Key={SWEEP},Value=adopted");
        return problem(
            message,
            format!("agree that it is attached, copied and moved: `{command}`; drop the file again"),
        );
    }
    let name = tag(volume, "Name").unwrap_or_default().to_owned();
    let origin = Origin::Adopted { volume: id.to_owned(), zone: zone.to_owned(), name };
    Resolved::Plan(Some(WorkspacePlan { size_gib, origin, initialization_rate }))
}

fn describe(volume: &Volume) -> String {
    format!("{} in {}", volume.volume_id().unwrap_or("?"), volume.availability_zone().unwrap_or("?"))
}

fn problem(message: impl Into<String>, help: impl Into<String>) -> Resolved {
    Resolved::Problem { message: message.into(), help: help.into() }
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use aws_sdk_ec2::types::{Tag, VolumeAttachment};

    use super::*;

    fn volume(id: &str, state: &str, tags: &[(&str, &str)], instance: Option<&str>) -> Volume {
        let tag = |(key, value): &(&str, &str)| Tag::builder().key(*key).value(*value).build();
        let attachment = instance.map(|id| vec![VolumeAttachment::builder().instance_id(id).build()]);
        Volume::builder()
            .volume_id(id)
            .availability_zone("us-east-1b")
            .size(70)
            .state(VolumeState::from(state))
            .set_tags(Some(tags.iter().map(tag).collect()))
            .set_attachments(attachment)
            .build()
    }

    #[test]
    fn exactly_one_free_and_tagged_volume_is_adopted() {
        let tags = [("Name", "data"), (SWEEP, "adopted")];
        let free = |id| volume(id, "available", &tags, None);
        let expected = Origin::Adopted { volume: "vol-1a".into(), zone: "us-east-1b".into(), name: "data".into() };
        let plan =
            Resolved::Plan(Some(WorkspacePlan { size_gib: 70, origin: expected, initialization_rate: Some(200) }));
        assert_eq!(adopt(&[free("vol-1a")], "data", Some(200)), plan);

        let refused: [(&str, &[Volume], &str, &str); 7] = [
            ("data", &[], "there is no volume with the Name tag \"data\"", "describe-volumes"),
            ("vol-1a", &[], "there is no volume \"vol-1a\"", "describe-volumes"),
            ("data", &[free("vol-1a"), free("vol-2b")], "vol-1a in us-east-1b, vol-2b in us-east-1b", "by its id"),
            ("data", &[volume("vol-1a", "in-use", &tags, Some("i-7"))], "is attached to i-7", "detach-volume"),
            ("data", &[volume("vol-1a", "creating", &tags, None)], "is creating", "wait"),
            ("data", &[volume("vol-1a", "error", &tags, None)], "is error", "another one"),
            (
                "data",
                &[volume("vol-1a", "available", &tags[..1], None)],
                "lacks the tag spotsweep:sweep",
                "create-tags",
            ),
        ];
        for (wanted, found, why, mend) in refused {
            let Resolved::Problem { message, help } = adopt(found, wanted, None) else { panic!("{why}: adopted") };
            assert!(message.contains(why), "{message} lacks {why}");
            assert!(help.contains(mend), "{help} lacks {mend}");
        }
    }

    #[test]
    fn a_name_with_wildcards_is_searched_as_it_is_written() {
        assert_eq!(literal(r"data*\set?"), r"data\*\\set\?");
        assert_eq!(literal("vol-1a"), "vol-1a");
    }

    #[test]
    fn a_base_snapshot_must_be_completed() {
        let origin = || Origin::Snapshot { snapshot: "snap-1".into() };
        let wanted = |size_gib| WorkspacePlan { size_gib, origin: origin(), initialization_rate: Some(300) };
        let snapshot = |state: &str| Snapshot::builder().state(SnapshotState::from(state)).volume_size(50).build();
        for (asked, made) in [(20, 50), (50, 50), (80, 80)] {
            let found = from_snapshot(Some(&snapshot("completed")), "snap-1", &wanted(asked));
            assert_eq!(found, Resolved::Plan(Some(wanted(made))));
        }
        for found in [None, Some(snapshot("pending")), Some(snapshot("error")), Some(snapshot("recoverable"))] {
            let resolved = from_snapshot(found.as_ref(), "snap-1", &wanted(20));
            assert!(matches!(resolved, Resolved::Problem { .. }), "{found:?}");
        }
    }
}
