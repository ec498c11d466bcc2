//! `workspace:` under `spotsweep:`: the trial's EBS volume, either a new or an existing one.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use spotsweep_protocol::words::counted;

use super::super::fields::{Fields, mismatch, texts, written};
use super::super::problem::Report;
use super::super::quantity::seconds;
use super::super::scalar::Scalar;
use super::super::tree::{Kind, Node};
use super::{Quantity, size};

/// The trial's EBS volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workspace {
    /// There is no volume, so an interrupted trial starts from the beginning.
    Off,
    /// A volume of the trial's own.
    Volume {
        /// The size in GiB.
        size_gib: Option<u32>,
        /// The contents that the volume starts with.
        start: Start,
        /// See [`InitializationRate`].
        initialization_rate: Option<InitializationRate>,
        /// How long a snapshot of it is kept after the trial's end.
        keep: Keep,
    },
    /// An existing volume. Only a sweep of one trial has it, because a volume belongs to one trial at a time.
    Adopted {
        /// The volume's id, `vol-…`, or the value of its Name tag.
        volume: String,
        /// The rate of the copies that a move to another zone makes; see [`InitializationRate`].
        initialization_rate: Option<InitializationRate>,
    },
}

/// The contents that new volumes start with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// Nothing.
    Blank,
    /// One snapshot for all trials, `snap-…`.
    Snapshot(String),
    /// A snapshot for each trial, by index.
    Snapshots(Vec<String>),
}

/// The seconds for which a snapshot of a volume is kept after its trial's end. 0 keeps nothing. If absent, the
/// deployment decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// For a trial that failed or was cancelled.
    pub failed_seconds: Option<u32>,
    /// For a trial that succeeded.
    pub succeeded_seconds: Option<u32>,
}

/// The MiB/s at which a volume loads its data from a snapshot; `None` is EC2's own rate, which is free.
pub type InitializationRate = Option<u32>;

/// MiB/s that CreateVolume takes as `VolumeInitializationRate`
/// (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateVolume.html>).
const INITIALIZATION_RATES: RangeInclusive<u32> = 100..=300;

/// Returns the rate for a written number: 0 means EC2's own. `None` if CreateVolume does not take the rate.
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
    /// `snap-…` to start from, one for each trial, in their order. `spotsweep retry --continue` writes it.
    snapshots: Option<Vec<String>>,
    /// How long a snapshot of a trial that failed or was cancelled is kept for `retry --continue`: seconds, or for
    /// example `12h`, `3d`; 0 keeps nothing. Three days if absent.
    keep_failed: Option<Quantity>,
    /// The same for a trial that succeeded. Nothing is kept if absent.
    keep_succeeded: Option<Quantity>,
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

pub(super) const KEYS: [&str; 7] =
    ["size", "snapshot", "snapshots", "volume", "initialization_rate", "keep_failed", "keep_succeeded"];

/// Keys of a new volume that an existing one does not take.
const OF_NEW: [&str; 5] = ["size", "snapshot", "snapshots", "keep_failed", "keep_succeeded"];

/// The longest time for which a snapshot is kept, in seconds.
const LONGEST_KEEP: u32 = 30 * 86_400;

/// The most trials with snapshots of their own. One invocation asks EC2 about all of them, 200 in a call.
const MAX_SNAPSHOTS: usize = 10_000;

/// The largest size of a gp3 volume.
const MAX_WORKSPACE_GIB: u64 = 65_536;

/// The most characters of a tag's value (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html>).
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
    let fields = Fields::known(node, "`workspace`", &KEYS, report)?;
    let mib = fields.get("size").and_then(|node| size(node, "size", 1024..=MAX_WORKSPACE_GIB * 1024, report));
    let start = start(fields, report);
    let initialization_rate = rate(fields, report);
    if fields.has("volume") {
        return adopted(fields, initialization_rate, report);
    }
    let size_gib = mib.map(|mib| mib.div_ceil(1024));
    let mut kept = |key| fields.get(key).and_then(|node| kept_seconds(node, key, report));
    let keep = Keep { failed_seconds: kept("keep_failed"), succeeded_seconds: kept("keep_succeeded") };
    Some(Workspace::Volume { size_gib, start, initialization_rate, keep })
}

fn start(fields: Fields<'_>, report: &mut Report<'_>) -> Start {
    if let (Some(_), Some(node)) = (fields.get("snapshot"), fields.get("snapshots")) {
        report.add(
            node.place,
            "`snapshot` is one for all trials, and `snapshots` has one for each",
            "keep one of the two",
        );
    }
    if let Some(id) = fields.text("snapshot", report) {
        if let Some(node) = fields.get("snapshot") {
            check_snapshot(id, node, report);
        }
        return Start::Snapshot(id.to_owned());
    }
    let Some(node) = fields.get("snapshots") else { return Start::Blank };
    let ids = texts(node, "snapshots", report).unwrap_or_default();
    ids.iter().for_each(|id| check_snapshot(id, node, report));
    Start::Snapshots(ids)
}

fn check_snapshot(id: &str, node: &Node, report: &mut Report<'_>) {
    let hex = id.strip_prefix("snap-").unwrap_or_default();
    if hex.is_empty() || !hex.bytes().all(|c| c.is_ascii_hexdigit()) {
        let help = "write the id, for example snap-0123456789abcdef0";
        report.add(node.place, format!("`{id}` is not a snapshot id"), help);
    }
}

fn kept_seconds(node: &Node, key: &str, report: &mut Report<'_>) -> Option<u32> {
    let written = written(node, key, report)?;
    let valid = seconds(&written).and_then(|seconds| u32::try_from(seconds).ok()).filter(|held| *held <= LONGEST_KEEP);
    if valid.is_none() {
        let help = "write at most 30 days, for example 12h or 3d, or 0 to keep nothing";
        report.add(node.place, format!("`{key}` is not a time for which a workspace is kept: {written}"), help);
    }
    valid
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
    for entry in fields.entries().iter().filter(|entry| OF_NEW.contains(&entry.key.as_str())) {
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

/// Checks the number of trials. A volume is attached to one instance at a time, so a sweep that adopts one has one
/// trial. A list of snapshots has one for each trial.
pub(super) fn check_trials(node: &Node, trials: u64, report: &mut Report<'_>) {
    let Kind::Mapping(entries) = &node.kind else { return };
    let of_key = |key| entries.iter().find(|entry| entry.key == key);
    if let Some(entry) = of_key("snapshots")
        && let Kind::List(list) = &entry.value.kind
    {
        let count = list.len();
        if count as u64 != trials {
            let message = format!(
                "`snapshots` has {}, and the sweep has {}",
                counted(count, "snapshot"),
                counted(trials, "trial")
            );
            report.add(entry.value.place, message, "list one for each trial, in the order of the trials");
        }
        if count > MAX_SNAPSHOTS {
            let message = format!("`snapshots` has {count} snapshots, and at most {MAX_SNAPSHOTS} are possible");
            report.add(entry.value.place, message, "divide the trials among several files");
        }
    }
    if let Some(entry) = of_key("volume").filter(|_| trials > 1) {
        let message = format!("`volume` is one volume, and the sweep has {trials} trials that would need it at once");
        let help = "keep one trial, or make a snapshot of the volume and write `snapshot: snap-…` instead: each trial then gets a copy";
        report.add(entry.value.place, message, help);
    }
}
