//! A training that shows no sign of life, as its runner reports it.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Attempt, Reason, Trial};
use spotsweep_protocol::stall::{NO_SIGN, StallRule};
use spotsweep_protocol::stop::StopReason;

/// Attempts that are ended for a stall and go on from their checkpoint. The next stall ends the trial.
const MOST_ENDS: usize = 2;

/// A stall that people have been notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// The attempt.
    pub attempt: u32,
    /// The training's last sign of life.
    pub since: Timestamp,
}

impl fmt::Display for Stall {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "attempt {}: {NO_SIGN} since {}", self.attempt, self.since.strftime("%F %H:%M:%S UTC"))
    }
}

impl Attempt {
    /// Whether it was ended because its training showed no sign of life.
    pub fn has_stalled(&self) -> bool {
        matches!(self.reason.as_ref().and_then(Reason::stopped), Some(StopReason::Stalled { .. }))
    }
}

impl Trial {
    /// The stall that lasts, if any: the end of its attempt ends it too.
    pub fn stalled(&self) -> Option<Stall> {
        self.stall.filter(|stall| stall.attempt > self.ended && !self.is_over())
    }

    /// The sweep's rule, as it holds for the trial's next stall.
    pub fn stall_rule(&self, of_sweep: StallRule) -> StallRule {
        let ends = self.attempts.values().filter(|attempt| attempt.has_stalled()).count();
        StallRule { is_last: ends >= MOST_ENDS, ..of_sweep }
    }

    /// What people read of a stall that lasts.
    pub(super) fn stall_note(&self) -> Option<String> {
        self.stalled().as_ref().map(ToString::to_string)
    }
}
