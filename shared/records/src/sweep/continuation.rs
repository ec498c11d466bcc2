//! What a sweep goes on from: snapshots that are kept of other trials, or checkpoints that are collected of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Plan, Prepared};
use crate::workspace::{Origin, TrialRef};
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
    /// The objects that list what it goes on from, by key.
    ///
    /// # Errors
    /// Where they cannot be written as JSON.
    pub fn starts(&self, sweep: &SweepId) -> serde_json::Result<Vec<(String, Vec<u8>)>> {
        let mut objects = Vec::new();
        if !self.snapshots().is_empty() {
            objects.push((Listed::Snapshots.key(sweep), serde_json::to_vec(self.snapshots())?));
        }
        if let Some(named) = &self.file.settings.checkpoints_of {
            let trials = named.iter().map(|(of, index)| TrialRef { sweep: of.clone(), index: *index });
            let starts = Starts { checkpoints_of: trials.collect() };
            objects.push((Listed::Checkpoints.key(sweep), serde_json::to_vec(&starts)?));
        }
        Ok(objects)
    }

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

/// Which object lists what a sweep goes on from. It is one of its own, as a sweep's record is read with each event of its
/// trials. The record tells which one: S3 answers 403 for an object that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// `snapshots.json`: a list of the ids of snapshots. Where each trial has its own, in the order of the trials.
    Snapshots,
    /// `starts.json`: the trials whose collected checkpoints are restored, in the order of the trials that start from them.
    Checkpoints,
}

/// What `starts.json` has.
#[derive(Debug, Serialize, Deserialize)]
struct Starts {
    checkpoints_of: Vec<TrialRef>,
}

/// What one trial starts from, as far as the sweep has one for each trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialStart {
    /// The snapshot that its volume is made from.
    pub snapshot: Option<String>,
    /// The trial whose collected checkpoint is put on its volume.
    pub restores: Option<TrialRef>,
}

impl Listed {
    /// Where it is listed what each trial starts from.
    pub fn of_trials(plan: &Plan) -> Self {
        if plan.restores { Self::Checkpoints } else { Self::Snapshots }
    }

    /// Key of the object.
    pub fn key(self, sweep: &SweepId) -> String {
        let name = match self {
            Self::Snapshots => "snapshots",
            Self::Checkpoints => "starts",
        };
        format!("{}{name}.json", sweep.results_prefix())
    }

    /// What the trial starts from by what the object has.
    ///
    /// # Errors
    /// Where that is no such list.
    pub fn start(self, listed: &[u8], index: u32) -> serde_json::Result<TrialStart> {
        let at = index as usize;
        Ok(match self {
            Self::Snapshots => {
                let snapshots: Vec<String> = serde_json::from_slice(listed)?;
                TrialStart { snapshot: snapshots.into_iter().nth(at), restores: None }
            }
            Self::Checkpoints => {
                let starts: Starts = serde_json::from_slice(listed)?;
                TrialStart { snapshot: None, restores: starts.checkpoints_of.into_iter().nth(at) }
            }
        })
    }
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
