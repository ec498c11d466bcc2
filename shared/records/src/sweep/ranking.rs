//! The metric that ranks trials.

use serde::{Deserialize, Serialize};
use spotsweep_protocol::rungs::{Curve, Rung};
use spotsweep_sweep_file::Over;

/// The metric that ranks trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranking {
    /// Metric name.
    pub name: String,
    /// Whether larger is better.
    pub maximize: bool,
    /// Which of a trial's values counts.
    #[serde(default)]
    pub over: Over,
}

impl Ranking {
    /// A value of the metric as a cost, of which less is better; and a cost as a value.
    pub fn cost(&self, value: f64) -> f64 {
        if self.maximize { -value } else { value }
    }

    /// A curve of values as costs.
    pub fn costs(&self, curve: &Curve) -> Curve {
        let rung = |of: &Rung| Rung { value: self.cost(of.value), best: self.cost(of.best), mean: self.cost(of.mean) };
        curve.iter().map(|(step, of)| (*step, rung(of))).collect()
    }
}
