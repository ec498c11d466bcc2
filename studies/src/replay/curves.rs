//! Learning curves of recorded tasks: the values of trials at the rungs and at their ends.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use spotsweep_protocol::rungs::{Reached, Rung};

use super::ReplayError;

/// The metric that the trials report. Larger values are better.
pub(super) const METRIC: &str = "accuracy";

/// Trials of several tasks, in the order in which random search has drawn them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curves {
    /// The epochs of a whole training.
    epochs: u64,
    /// The epochs at which trials are compared.
    rungs: Vec<u64>,
    /// Each trial's values by task: one at each rung, and the last one at its end.
    tasks: BTreeMap<String, Vec<Vec<f64>>>,
}

/// The trials of one window with their curves.
#[derive(Debug, Clone)]
pub(super) struct Study {
    epochs: u64,
    rungs: Vec<u64>,
    trials: Vec<Vec<f64>>,
    /// Whether an interrupted trial ends if others have passed it.
    pub(super) ends: bool,
}

impl Curves {
    /// Reads a file of curves.
    ///
    /// # Errors
    /// Returns [`ReplayError::Asked`] with what the file lacks.
    pub fn read(path: &Path) -> Result<Self, ReplayError> {
        let asked = |why: String| ReplayError::Asked(format!("--curves {}: {why}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| asked(error.to_string()))?;
        let curves: Self = serde_json::from_str(&text).map_err(|error| asked(error.to_string()))?;
        let values = curves.rungs.len() + 1;
        if curves.tasks.values().flatten().any(|trial| trial.len() != values) {
            return Err(asked(format!("each trial needs {values} values: one at each rung, and one at its end")));
        }
        Ok(curves)
    }

    /// Returns the trials of a window. Each window takes the next task. After the last task, they take the next trials
    /// of each.
    pub(super) fn of_window(&self, window: usize, trials: u32, ends: bool) -> Result<Study, ReplayError> {
        let asked = |why: &str| ReplayError::Asked(format!("--curves has {why}"));
        let (tasks, trials) = (self.tasks.len(), trials as usize);
        let (_, task) = self.tasks.iter().nth(window % tasks.max(1)).ok_or_else(|| asked("no task"))?;
        let first = window / tasks * trials;
        let trials = task
            .get(first..first + trials)
            .ok_or_else(|| asked("too few trials for so many windows: give fewer --windows, or fewer --trials"))?;
        Ok(Study { epochs: self.epochs, rungs: self.rungs.clone(), trials: trials.to_vec(), ends })
    }
}

impl Study {
    /// Returns the rungs that a trial has reached after a share of its training.
    pub(super) fn reached(&self, trial: u32, share: f64) -> Vec<Reached> {
        let epochs = (share * self.epochs as f64 + 1e-6).floor() as u64;
        let rungs = self.rungs.iter().zip(&self.trials[trial as usize]);
        let rung = |(step, value): (&u64, &f64)| Reached {
            step: *step,
            rung: Rung { value: *value, best: *value, mean: *value },
        };
        rungs.take_while(|(step, _)| **step <= epochs).map(rung).collect()
    }

    /// Returns a trial's value at its end.
    pub(super) fn last(&self, trial: u32) -> f64 {
        self.trials[trial as usize].last().copied().unwrap_or(f64::NAN)
    }

    /// Returns the sweep file's lines about the search: a grid in which each trial has a number.
    pub(super) fn lines(&self) -> String {
        let rule = "early_terminate: {type: interruption}\n";
        format!("metric: {{name: {METRIC}, goal: maximize}}\n{}", if self.ends { rule } else { "" })
    }
}
