//! Rungs: the points of a training at which trials of a sweep are compared, for early stopping.
//!
//! The runner counts them, because only it gets every value. It notes the metric at each rung and repeats all rungs in
//! every report, so that a lost report loses none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The unit in which rungs are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// The finite values of the metric that the training has logged, as W&B counts them.
    #[default]
    Reports,
    /// The step that was logged with a value: `step`, `global_step`, or else `epoch`.
    Step,
}

/// A trial's metric at one rung.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// The value that reached the rung.
    pub value: f64,
    /// The best value up to the rung.
    pub best: f64,
    /// The mean of the values up to the rung.
    pub mean: f64,
}

impl Rung {
    /// Whether the figures can be compared and stored. DynamoDB's numbers end at 1E126.
    pub fn is_usable(&self) -> bool {
        [self.value, self.best, self.mean].iter().all(|value| value.abs() < 1e125)
    }
}

/// A trial's rungs by their step. The first value that reaches a rung decides its figures.
pub type Curve = BTreeMap<u64, Rung>;

/// A rung that an attempt has reached, as part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// The rung.
    pub step: u64,
    /// The metric at the rung.
    #[serde(flatten)]
    pub rung: Rung,
}

/// The rungs that a runner has to note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RungPlan {
    /// The unit of the rungs.
    #[serde(default)]
    pub unit: Unit,
    /// The rungs, ascending.
    pub steps: Vec<u64>,
    /// Whether larger values are better.
    pub maximize: bool,
}
