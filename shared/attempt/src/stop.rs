//! A request to stop the command, and how much time it leaves.

use std::time::Duration;

use rustix::process::Signal;
use spotsweep_protocol::stop::StopReason;

use crate::conclusion::Cause;

/// The default time for an attempt's end without a deadline from outside, and the default grace of the command within
/// it.
const BY_ITSELF: Duration = Duration::from_secs(30);
const GRACE_BY_ITSELF: Duration = Duration::from_secs(20);
/// The additional time for the end of an attempt without a deadline from outside.
pub(crate) const WITHOUT_DEADLINE: Duration = Duration::from_secs(60);
/// The longest seal before the command gets an unannounced signal.
const SEALING_FIRST: Duration = Duration::from_secs(5);
/// Batch counts an attempt's time from the start of its container, which is earlier than the runner's start.
const BEFORE_RUNNER: Duration = Duration::from_secs(10);
/// The least time that the runner assumes after a notice. It is enough to close a small workspace.
const LEAST: Duration = Duration::from_secs(1);
/// The most time of a notice that the runner reserves to seal, unmount and release. The time to write out is added.
const CLOSING: Duration = Duration::from_secs(12);

/// The time for the last request even if no time is left under a notice. Without a release, the next attempt waits
/// until Batch reports that the instance is gone.
pub(crate) const LAST_REQUEST: Duration = Duration::from_secs(2);

/// How long before the kill of its container the runner exits. AWS Batch would treat a killed container's exit code as
/// the trial's own failure.
const EXITING: Duration = Duration::from_secs(1);

/// The job's settings for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The signal that asks the command to save and end.
    pub signal: Signal,
    /// The longest time between the stop signal and SIGKILL.
    pub grace: Option<Duration>,
    /// The time from SIGTERM until the container is killed.
    pub stop_after: Duration,
    /// Batch's timeout for the attempt.
    pub timeout: Option<Duration>,
}

/// A request to stop the command. Times count from the beginning of the attempt, unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// The reason.
    pub cause: Cause,
    /// The signal that asks the command to stop.
    pub signal: Signal,
    /// The time between the signal and SIGKILL.
    pub grace: Duration,
    /// When everything must be over: the end of the instance, or shortly before the container is killed.
    pub deadline: Duration,
    /// How long the first seal of complete checkpoints may take, because the container may end at any moment.
    pub sealing_first: Option<Duration>,
}

impl Stop {
    /// A stop after an answer to a report or after a stall, without a deadline from outside. The command has the
    /// configured grace, and the usual time follows it.
    pub(crate) fn by_itself(cause: Cause, terms: &Terms, at: Duration) -> Self {
        let grace = terms.grace.unwrap_or(GRACE_BY_ITSELF);
        let more = if matches!(cause, Cause::Stalled { .. }) { WITHOUT_DEADLINE } else { Duration::ZERO };
        let deadline = at + BY_ITSELF.max(grace * 4 / 3) + more;
        Self { cause, signal: terms.signal, grace, deadline, sealing_first: None }
    }

    /// A stop after a signal. The container is killed a configured time later.
    pub(crate) fn after_signal(signal: Signal, terms: &Terms, at: Duration) -> Self {
        let cause = match terms.timeout.filter(|timeout| at + BEFORE_RUNNER >= *timeout) {
            Some(timeout) if signal == Signal::TERM => Cause::TimedOut { seconds: timeout.as_secs() },
            Some(_) | None => Cause::Interrupted(format!("stopped by signal {}", signal.as_raw())),
        };
        // A person's Ctrl-C is passed to the command unchanged.
        let signal = if signal == Signal::TERM { terms.signal } else { signal };
        let left = terms.stop_after.saturating_sub(EXITING);
        let sealing_first = SEALING_FIRST.min(left / 10);
        let most = left.saturating_sub(closing(left) + sealing_first);
        let grace = terms.grace.unwrap_or(most).min(most);
        Self { cause, signal, grace, deadline: at + left, sealing_first: Some(sealing_first) }
    }

    /// A stop after a notice. The runner reserves the last part of the time for sealing, unmounting and the release.
    /// The command gets the rest, because a large checkpoint takes longest to write: 10 GiB on gp3 82 s.
    pub(crate) fn noticed(why: String, left: Duration, terms: &Terms, at: Duration) -> Self {
        let left = left.max(LEAST);
        let grace = terms.grace.unwrap_or(left).min(left - closing(left));
        let cause = Cause::Interrupted(why);
        Self { cause, signal: terms.signal, grace, deadline: at + left, sealing_first: None }
    }

    /// Adds a later request to this one. The earlier deadline counts. If another attempt has the trial, or Batch ends
    /// it, the trial does not continue, whatever the first request was for.
    pub(crate) fn join(&mut self, later: &Self) {
        self.deadline = self.deadline.min(later.deadline);
        let is_fenced = matches!(self.cause, Cause::Fenced(_));
        let is_over = matches!(self.cause, Cause::TimedOut { .. } | Cause::StoppedEarly(_));
        match later.cause {
            Cause::Fenced(_) if !is_fenced => self.cause = later.cause.clone(),
            Cause::TimedOut { .. } if !is_fenced && !is_over => self.cause = later.cause.clone(),
            _ => {}
        }
    }

    /// Seconds without a sign of progress, if the cause is a stall.
    pub fn stalled_seconds(&self) -> Option<u64> {
        match self.cause {
            Cause::Stalled { seconds, .. } => Some(seconds),
            Cause::Interrupted(_) | Cause::TimedOut { .. } | Cause::Fenced(_) | Cause::StoppedEarly(_) => None,
        }
    }

    /// Why spotsweep itself ends the trial with the attempt, if it does.
    pub fn reason(&self) -> Option<StopReason> {
        match self.cause {
            Cause::Stalled { seconds, .. } => Some(StopReason::Stalled { seconds }),
            Cause::TimedOut { seconds } => Some(StopReason::TimedOut { seconds }),
            Cause::Interrupted(_) | Cause::Fenced(_) | Cause::StoppedEarly(_) => None,
        }
    }
}

/// The reserved part of the time left, for sealing, unmounting and the release: a quarter, or a second if that is
/// more.
pub(crate) fn closing(left: Duration) -> Duration {
    CLOSING.min((left / 4).max(LEAST.min(left / 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_notice_leaves_a_second_to_close_the_workspace() {
        for (left, expected) in [(120.0, 12.0), (40.0, 10.0), (10.0, 2.5), (2.0, 1.0), (1.0, 0.5)] {
            assert_eq!(closing(Duration::from_secs_f64(left)), Duration::from_secs_f64(expected), "{left}");
        }
    }
}
