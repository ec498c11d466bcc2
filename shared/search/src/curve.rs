//! What a trial has reported at its rungs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A trial's costs at one rung. A rung is a count of reported values, or a step, at which trials are compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// The value that was reported at the rung.
    pub value: f64,
    /// The best value up to the rung.
    pub best: f64,
    /// The mean of the values up to the rung.
    pub mean: f64,
}

/// A trial's rungs, by their step. The first report that reaches a rung decides its figures.
pub type Curve = BTreeMap<u64, Rung>;
