//! What rungs are counted by: where trials of a sweep are compared while they run.

use serde::{Deserialize, Serialize};

/// What a trial's place among the rungs is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// How many finite values of the metric it has reported, as W&B counts.
    #[default]
    Reports,
    /// The report's `epoch`.
    Epoch,
    /// The report's `step`.
    Step,
}
