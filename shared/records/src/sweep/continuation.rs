//! What a sweep's trials continue from: kept snapshots or collected checkpoints of other trials.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Plan, Prepared};
use crate::workspace::{Origin, TrialRef};
use spotsweep_protocol::ids::SweepId;
use spotsweep_sweep_file::{Start, Workspace};

/// Returns how many snapshots a plan names.
pub fn named(plan: &Plan) -> u32 {
    match plan.workspace.as_ref().map(|workspace| &workspace.origin) {
        Some(Origin::Snapshots) => plan.trials,
        Some(Origin::Snapshot { .. }) => 1,
        Some(Origin::Blank | Origin::Adopted { .. }) | None => 0,
    }
}

impl Prepared {
    /// Returns the keys and contents of the objects that list what the trials start from.
    ///
    /// # Errors
    /// Returns an error if a list cannot be written as JSON.
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

    /// Returns the snapshots that the file names, in its order.
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

/// The object that lists what a sweep's trials start from. It is an object of its own, because a sweep's record is read
/// with each event of its trials. The record says which object there is, because S3 may answer 403 for one that does
/// not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// `snapshots.json`: the ids of snapshots. They are in the order of the trials, if each trial has its own.
    Snapshots,
    /// `starts.json`: the trials whose collected checkpoints are restored, in the order of the trials that start from
    /// them.
    Checkpoints,
}

/// The content of `starts.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Starts {
    checkpoints_of: Vec<TrialRef>,
}

/// What one trial starts from, where each trial of the sweep has its own start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialStart {
    /// The snapshot that its volume is made from.
    pub snapshot: Option<String>,
    /// The trial whose collected checkpoint is restored to this one's volume.
    pub restores: Option<TrialRef>,
}

impl Listed {
    /// Returns the object that lists a start for each trial.
    pub fn of_trials(plan: &Plan) -> Self {
        if plan.restores { Self::Checkpoints } else { Self::Snapshots }
    }

    /// Returns the key of the object.
    pub fn key(self, sweep: &SweepId) -> String {
        let name = match self {
            Self::Snapshots => "snapshots",
            Self::Checkpoints => "starts",
        };
        format!("{}{name}.json", sweep.results_prefix())
    }

    /// Returns what a trial starts from, by the content of the object.
    ///
    /// # Errors
    /// Returns an error if the content is not such a list.
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

/// Consecutive snapshots that a sweep names, and how many of them are kept for it already.
#[derive(Debug, Clone)]
pub struct Continuation {
    /// The sweep that names them.
    pub sweep: SweepId,
    /// The index of the first one among all snapshots that the sweep names.
    pub first: u32,
    /// The ids of the snapshots.
    pub snapshots: Arc<[String]>,
    /// How many of them have been kept for the sweep, from the first one on.
    pub kept: usize,
}

/// Number of snapshots for one invocation, which ends with a commit of the sweep. Each snapshot takes about five calls
/// to the table, so a page takes some seconds.
const PAGE: usize = 100;

impl Continuation {
    /// Takes the next page of the snapshots that a sweep names, from index `first` on.
    pub fn page(sweep: SweepId, first: u32, named: &[String]) -> Self {
        let snapshots = named.iter().skip(first as usize).take(PAGE).cloned().collect();
        Self { sweep, first, snapshots, kept: 0 }
    }

    /// Returns the index of the snapshot after this page.
    pub fn after(&self) -> u32 {
        self.first.saturating_add(u32::try_from(self.snapshots.len()).unwrap_or(u32::MAX))
    }

    /// Returns the next snapshot to be kept; `None` if all are.
    pub fn next(&self) -> Option<&str> {
        self.snapshots.get(self.kept).map(String::as_str)
    }

    /// Returns the page with one more kept snapshot.
    #[must_use]
    pub fn with_next(&self) -> Self {
        Self { kept: self.kept + 1, ..self.clone() }
    }
}
