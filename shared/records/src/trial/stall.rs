//! A training that shows no sign of progress, as its runner reports it.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Attempt, Reason, Trial};
use spotsweep_protocol::stall::{NO_SIGN, StallRule};
use spotsweep_protocol::stop::StopReason;

/// How many attempts are ended for a stall and followed by one that continues from their checkpoint. The next stall
/// ends the trial.
const MOST_ENDS: usize = 2;

/// A stall of which people were notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// The stalled attempt's number.
    pub attempt: u32,
    /// The time of the training's last sign of life.
    pub since: Timestamp,
}

impl fmt::Display for Stall {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "attempt {}: {NO_SIGN} since {}", self.attempt, self.since.strftime("%F %H:%M:%S UTC"))
    }
}

impl Attempt {
    /// Whether the attempt was ended for a stall.
    pub fn has_stalled(&self) -> bool {
        matches!(self.reason.as_ref().and_then(Reason::stopped), Some(StopReason::Stalled { .. }))
    }
}

impl Trial {
    /// Returns the stall that lasts, if there is one. It lasts at most until its attempt ends.
    pub fn stalled(&self) -> Option<Stall> {
        self.stall.filter(|stall| stall.attempt > self.ended && !self.is_over())
    }

    /// Returns the sweep's rule as it is for the trial's next stall.
    pub fn stall_rule(&self, of_sweep: StallRule) -> StallRule {
        let ends = self.attempts.values().filter(|attempt| attempt.has_stalled()).count();
        StallRule { is_last: ends >= MOST_ENDS, ..of_sweep }
    }

    /// Returns the note about a stall that lasts.
    pub(super) fn stall_note(&self) -> Option<String> {
        self.stalled().as_ref().map(ToString::to_string)
    }
}
