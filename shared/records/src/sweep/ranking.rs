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
    /// Which of a trial's values ranks it.
    #[serde(default)]
    pub over: Over,
}

impl Ranking {
    /// Converts a value of the metric to a cost, which is better if it is less, or a cost to a value.
    pub fn cost(&self, value: f64) -> f64 {
        if self.maximize { -value } else { value }
    }

    /// Converts a curve of values to costs.
    pub fn costs(&self, curve: &Curve) -> Curve {
        let rung = |of: &Rung| Rung { value: self.cost(of.value), best: self.cost(of.best), mean: self.cost(of.mean) };
        curve.iter().map(|(step, of)| (*step, rung(of))).collect()
    }
}
