//! The results of a trial's comparison with other trials at its rungs.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Trial;
use crate::stored::is_default;
use spotsweep_protocol::rungs::Reached;
use spotsweep_protocol::words::{counted, figure};

/// The comparison of a trial with the others that have reached the same rung. Each rung has one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The trial's value.
    pub value: f64,
    /// The threshold that the trial had to reach; absent where too few trials have reached the rung.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<f64>,
    /// How many trials had reached the rung, including this one.
    pub of: usize,
}

/// The final decision that a trial does not continue, because it was worse than the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EarlyStop {
    /// The rung of the comparison.
    pub rung: u64,
    /// The comparison that stopped it.
    #[serde(flatten)]
    pub by: Comparison,
    /// Whether the trial was compared because of an interruption.
    #[serde(default, skip_serializing_if = "is_default")]
    pub at_interruption: bool,
}

impl fmt::Display for Comparison {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, cut, of } = self;
        let value = figure(*value);
        match cut {
            Some(cut) => write!(to, "{value}, and the cut of {} is {}", counted(*of, "trial"), figure(*cut)),
            None => write!(to, "{value}, with too few trials to compare ({of})"),
        }
    }
}

impl fmt::Display for EarlyStop {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = if self.at_interruption { " when it was interrupted" } else { "" };
        write!(to, "stopped early{when}: at rung {} it had {}", self.rung, self.by)
    }
}

impl Trial {
    /// Returns the reported rungs that count. No rung counts before Batch has reported that the attempt's container has
    /// started. Each report repeats all rungs, so this delays a comparison by a few seconds. Without the rule, a forged
    /// claim of a waiting attempt could have other trials stopped.
    pub fn trained<'r>(&self, attempt: u32, reported: &'r [Reached]) -> &'r [Reached] {
        if self.has_started(attempt) { reported } else { &[] }
    }

    /// Whether the trial is stopped early and no attempt of it is under way.
    pub fn is_left_for_good(&self) -> bool {
        self.stopped.is_some() && self.claimed_by.is_none_or(|attempt| attempt <= self.ended)
    }
}
