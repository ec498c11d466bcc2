//! What a sweep goes on from: snapshots that are kept of other trials.

use std::error::Error;
use std::sync::Arc;

use super::{Plan, Prepared};
use crate::workspace::Origin;
use spotsweep_protocol::ids::SweepId;
use spotsweep_sweep_file::{Start, Workspace};

/// How many snapshots a plan names.
pub fn named(plan: &Plan) -> u32 {
    match plan.workspace.as_ref().map(|workspace| &workspace.origin) {
        Some(Origin::Snapshots) => plan.trials,
        Some(Origin::Snapshot { .. }) => 1,
        Some(Origin::Blank | Origin::Adopted { .. }) | None => 0,
    }
}

impl Prepared {
    /// The snapshots that it names, as its file has them.
    pub fn snapshots(&self) -> &[String] {
        match &self.file.settings.workspace {
            Some(Workspace::Volume { start: Start::Snapshot(snapshot), .. }) => std::slice::from_ref(snapshot),
            Some(Workspace::Volume { start: Start::Snapshots(snapshots), .. }) => snapshots,
            Some(Workspace::Volume { start: Start::Blank, .. } | Workspace::Off | Workspace::Adopted { .. }) | None => {
                &[]
            }
        }
    }
}

/// Key of the snapshots that a sweep names: a JSON list of their ids. Where each trial has its own, in the order of the
/// trials.
pub fn snapshots_key(sweep: &SweepId) -> String {
    format!("{}snapshots.json", sweep.results_prefix())
}

/// The trial's own of these snapshots.
///
/// # Errors
/// Where the list is none, or too short.
pub fn snapshot_of(listed: &[u8], index: u32) -> Result<String, Box<dyn Error + Send + Sync>> {
    let mut listed: Vec<String> = serde_json::from_slice(listed)?;
    let is_there = (index as usize) < listed.len();
    is_there.then(|| listed.swap_remove(index as usize)).ok_or_else(|| format!("no snapshot of trial {index}").into())
}

/// Some of the snapshots that a sweep names, and how many of them are kept for it.
#[derive(Debug, Clone)]
pub struct Continuation {
    /// The sweep.
    pub sweep: SweepId,
    /// The place of the first of them among all.
    pub first: u32,
    /// They themselves.
    pub snapshots: Arc<[String]>,
    /// How many of them are kept for the sweep.
    pub kept: usize,
}

/// Snapshots of one invocation, which ends with a commit of the sweep. Each takes about five calls of the table, so these
/// take some seconds.
const PAGE: usize = 100;

impl Continuation {
    /// Those of the `named` that a sweep keeps next, from the one at that place on.
    pub fn page(sweep: SweepId, first: u32, named: &[String]) -> Self {
        let snapshots = named.iter().skip(first as usize).take(PAGE).cloned().collect();
        Self { sweep, first, snapshots, kept: 0 }
    }

    /// The place of the snapshot after them.
    pub fn after(&self) -> u32 {
        self.first.saturating_add(u32::try_from(self.snapshots.len()).unwrap_or(u32::MAX))
    }

    /// The snapshot that is next; `None` where all are kept.
    pub fn next(&self) -> Option<&str> {
        self.snapshots.get(self.kept).map(String::as_str)
    }

    /// The same with one more that is kept.
    #[must_use]
    pub fn with_next(&self) -> Self {
        Self { kept: self.kept + 1, ..self.clone() }
    }
}
