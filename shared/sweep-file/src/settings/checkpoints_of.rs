//! `checkpoints_of:` under `spotsweep:`: the trials of earlier sweeps from whose collected checkpoints these trials
//! start.

use spotsweep_protocol::ids::{SweepId, trial_named};
use spotsweep_protocol::words::counted;

use super::super::fields::texts;
use super::super::problem::Report;
use super::super::tree::{Kind, Node};

/// The most trials in the list. It equals the limit of `snapshots`, because each first claim reads the list.
const MOST: usize = 10_000;

/// Keys of a workspace that already has checkpoints of its own.
const WITH_CHECKPOINTS: [&str; 2] = ["snapshots", "volume"];

pub(super) fn read(node: &Node, report: &mut Report<'_>) -> Option<Vec<(SweepId, u32)>> {
    let names = texts(node, "checkpoints_of", report)?;
    let mut trials = Vec::new();
    for name in &names {
        match trial_named(name) {
            Some(trial) => trials.push(trial),
            None => {
                let help = "write `<sweep>/<index>`, for example digits-1a2b3c4d5e6f/5";
                report.add(node.place, format!("`{name}` names no trial"), help);
            }
        }
    }
    Some(trials)
}

/// Checks that there is one checkpoint for each trial, and that the volume does not come with others.
pub(super) fn check(node: &Node, workspace: Option<&Node>, trials: u64, report: &mut Report<'_>) {
    if let Kind::List(list) = &node.kind {
        let count = list.len();
        if count as u64 != trials {
            let (named, trials) = (counted(count, "trial"), counted(trials, "trial"));
            let message = format!("`checkpoints_of` names {named}, and the sweep has {trials}");
            report.add(node.place, message, "name one for each trial, in the order of the trials");
        }
        if count > MOST {
            let message = format!("`checkpoints_of` names {count} trials, and at most {MOST} are possible");
            report.add(node.place, message, "divide the trials among several files");
        }
    }
    let Some(Kind::Mapping(entries)) = workspace.map(|node| &node.kind) else { return };
    for entry in entries.iter().filter(|entry| WITH_CHECKPOINTS.contains(&entry.key.as_str())) {
        let message = format!("`{}` comes with checkpoints, and `checkpoints_of` names others", entry.key);
        report.add(entry.key_place, message, "keep one of the two");
    }
}
