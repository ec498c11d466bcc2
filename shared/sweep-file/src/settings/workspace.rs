//! `workspace:` under `spotsweep:`: the trial's EBS volume, a new one or one that exists.

use std::ops::RangeInclusive;

use schemars::JsonSchema;

use super::super::fields::{Fields, mismatch};
use super::super::problem::Report;
use super::super::scalar::Scalar;
use super::super::tree::{Kind, Node};
use super::size;

/// The trial's EBS volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workspace {
    /// No volume: a trial that is interrupted starts again from nothing.
    Off,
    /// A volume of the trial's own.
    Volume {
        /// In GiB.
        size_gib: Option<u32>,
        /// Snapshot that the volume starts from, `snap-…`.
        snapshot: Option<String>,
        /// See [`InitializationRate`].
        initialization_rate: Option<InitializationRate>,
    },
    /// A volume that somebody made by hand. Only a sweep of one trial has this: a volume is one trial's at a time.
    Adopted {
        /// The volume's id, `vol-…`, or the value of its Name tag.
        volume: String,
        /// Of the copies that a move to another zone makes; see [`InitializationRate`].
        initialization_rate: Option<InitializationRate>,
    },
}

/// MiB/s at which a volume that is made from a snapshot loads its data; `None` is EC2's own rate, which is free.
pub type InitializationRate = Option<u32>;

/// MiB/s that CreateVolume takes as `VolumeInitializationRate`
/// (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateVolume.html>).
const INITIALIZATION_RATES: RangeInclusive<u32> = 100..=300;

/// A rate as it is written: 0 stands for EC2's own. `None` where CreateVolume takes no such rate.
pub fn initialization_rate(written: u64) -> Option<Option<u32>> {
    let rate = u32::try_from(written).ok()?;
    if rate == 0 { Some(None) } else { INITIALIZATION_RATES.contains(&rate).then_some(Some(rate)) }
}

/// `off`, a new volume, or one that exists.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
pub(super) enum WorkspaceSchema {
    Off(OffSchema),
    Volume(VolumeSchema),
    Adopted(AdoptedSchema),
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
pub(super) enum OffSchema {
    Off,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
pub(super) struct VolumeSchema {
    /// For example `100GiB`.
    size: Option<String>,
    /// `snap-…` to start from.
    snapshot: Option<String>,
    /// MiB/s at which a volume loads its snapshot, at a price per GiB: 100 to 300; 0 for EC2's own, free rate.
    #[schemars(range(min = 0, max = 300))]
    initialization_rate: Option<u32>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
pub(super) struct AdoptedSchema {
    /// A volume made by hand: `vol-…` or its Name tag. For a sweep of one trial.
    #[schemars(length(min = 1, max = 256))]
    volume: String,
    /// As for a new volume; of copies in other zones.
    #[schemars(range(min = 0, max = 300))]
    initialization_rate: Option<u32>,
}

/// A gp3 volume's largest size.
const MAX_WORKSPACE_GIB: u64 = 65_536;

/// Characters of a tag's value (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html>).
const MAX_NAME_CHARS: usize = 256;

pub(super) fn read(node: &Node, report: &mut Report<'_>) -> Option<Workspace> {
    match &node.kind {
        Kind::Scalar(Scalar::Text { text, .. }) if text == "off" => return Some(Workspace::Off),
        Kind::Scalar(_) => {
            mismatch(node, "workspace", "`off`, or a mapping with `size` and `snapshot` or with `volume`", report);
            return None;
        }
        Kind::List(_) | Kind::Mapping(_) => {}
    }
    let fields = Fields::known(node, "`workspace`", &["size", "snapshot", "volume", "initialization_rate"], report)?;
    let mib = fields.get("size").and_then(|node| size(node, "size", 1024..=MAX_WORKSPACE_GIB * 1024, report));
    let snapshot = fields.text("snapshot", report);
    if let (Some(id), Some(node)) = (snapshot, fields.get("snapshot"))
        && !id.strip_prefix("snap-").is_some_and(|hex| !hex.is_empty() && hex.bytes().all(|c| c.is_ascii_hexdigit()))
    {
        report.add(
            node.place,
            format!("`{id}` is not a snapshot id"),
            "write the id, for example snap-0123456789abcdef0",
        );
    }
    let initialization_rate = rate(fields, report);
    if fields.has("volume") {
        return adopted(fields, initialization_rate, report);
    }
    let (size_gib, snapshot) = (mib.map(|mib| mib.div_ceil(1024)), snapshot.map(str::to_owned));
    Some(Workspace::Volume { size_gib, snapshot, initialization_rate })
}

fn rate(fields: Fields<'_>, report: &mut Report<'_>) -> Option<InitializationRate> {
    const KEY: &str = "initialization_rate";
    let node = fields.get(KEY)?;
    let written = fields.integer(KEY, 0..=i64::from(*INITIALIZATION_RATES.end()), report)?;
    let rate = u64::try_from(written).ok().and_then(initialization_rate);
    if rate.is_none() {
        let message = format!("EC2 takes no `{KEY}` of {written} MiB/s");
        report.add(node.place, message, "write 100 to 300, or 0 for EC2's own rate, which is free");
    }
    rate
}

fn adopted(
    fields: Fields<'_>,
    initialization_rate: Option<InitializationRate>,
    report: &mut Report<'_>,
) -> Option<Workspace> {
    for entry in fields.entries().iter().filter(|entry| ["size", "snapshot"].contains(&entry.key.as_str())) {
        let message = format!("`{}` describes a new volume, and `volume` names one that exists", entry.key);
        report.add(entry.key_place, message, "keep one of the two");
    }
    let node = fields.get("volume")?;
    let volume = fields.text("volume", report)?;
    if volume.chars().count() > MAX_NAME_CHARS {
        let message = format!("`volume` is longer than {MAX_NAME_CHARS} characters, the most a Name tag has");
        report.add(node.place, message, "write the volume's id, for example vol-0123456789abcdef0, or its Name tag");
    }
    Some(Workspace::Adopted { volume: volume.to_owned(), initialization_rate })
}

/// A volume is attached to one instance at a time, so a sweep that adopts one has one trial.
pub(super) fn check_trials(node: &Node, trials: u64, report: &mut Report<'_>) {
    if let Kind::Mapping(entries) = &node.kind
        && let Some(entry) = entries.iter().find(|entry| entry.key == "volume")
        && trials > 1
    {
        let message = format!("`volume` is one volume, and the sweep has {trials} trials that would need it at once");
        let help = "keep one trial, or make a snapshot of the volume and write `snapshot: snap-…` instead: each trial then gets a copy";
        report.add(entry.value.place, message, help);
    }
}
