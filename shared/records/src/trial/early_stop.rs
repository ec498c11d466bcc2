//! A trial's rungs, and what came of its comparison with other trials.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Trial;
use crate::stored::is_default;
use spotsweep_protocol::rungs::Reached;
use spotsweep_protocol::words::{counted, figure};

/// The comparison of a trial with the others that have reached the same rung. It is made once for each rung.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The trial's value that was compared.
    pub value: f64,
    /// The value that it had to reach; absent where too few trials have reached the rung.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<f64>,
    /// Trials that had reached the rung, this one included.
    pub of: usize,
}

/// A trial that does not go on: it was worse than the cut. That is final.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EarlyStop {
    /// The rung.
    pub rung: u64,
    /// The comparison that stopped it.
    #[serde(flatten)]
    pub by: Comparison,
    /// Whether it was compared because it was interrupted.
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
    /// Of the rungs that an attempt reports, those that count: none before Batch has reported that its container has
    /// started. Each report repeats them all, so that costs a few seconds. Without it, whoever can claim an attempt that
    /// waits could have other trials stopped.
    pub fn trained<'r>(&self, attempt: u32, reported: &'r [Reached]) -> &'r [Reached] {
        if self.has_started(attempt) { reported } else { &[] }
    }

    /// Whether it is stopped early, and none of its attempts is under way.
    pub fn is_left_for_good(&self) -> bool {
        self.stopped.is_some() && self.claimed_by.is_none_or(|attempt| attempt <= self.ended)
    }
}
