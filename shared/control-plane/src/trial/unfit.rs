//! Attempts on instances that cannot train.

use super::{Attempt, Reason, Trial};
use spotsweep_protocol::stop::StopReason;

impl Attempt {
    /// What is wrong with its instance, where its runner has found that nothing can be trained there.
    pub fn unfit(&self) -> Option<&str> {
        match self.reason.as_ref().and_then(Reason::stopped) {
            Some(StopReason::UnfitInstance { cause }) => Some(cause),
            Some(_) | None => None,
        }
    }
}

impl Trial {
    /// How many attempts have ended that count towards the sweep file's `attempts`: an instance that cannot train says
    /// nothing of the trial.
    pub fn tried(&self) -> usize {
        self.ended_attempts().filter(|attempt| attempt.unfit().is_none()).count()
    }
}
