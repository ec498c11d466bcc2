//! A request to stop the command, and how much time it leaves.

use std::time::Duration;

use rustix::process::Signal;
use spotsweep_protocol::stop::StopReason;

use crate::conclusion::Cause;

/// How long the end of an attempt may take that nothing outside asks for, and the command's share of that, where nothing
/// else is said.
const BY_ITSELF: Duration = Duration::from_secs(30);
const GRACE_BY_ITSELF: Duration = Duration::from_secs(20);
/// How much longer the end of an attempt may take without a deadline from outside.
pub(crate) const WITHOUT_DEADLINE: Duration = Duration::from_secs(60);
/// The most that a seal may take before the command gets a signal of which nothing was announced.
const SEALING_FIRST: Duration = Duration::from_secs(5);
/// Batch counts an attempt's time from the start of its container, which is a moment before the runner's.
const BEFORE_RUNNER: Duration = Duration::from_secs(10);
/// The least that is taken to be left after a notice, and to be enough to close a small workspace.
const LEAST: Duration = Duration::from_secs(1);
/// The most that is set aside of a notice for sealing, unmounting and the release. Writing out comes on top.
const CLOSING: Duration = Duration::from_secs(12);

/// The report that the trial is free is worth this much time even when none is left: without it, the next attempt waits
/// until Batch reports that the instance is gone.
const LAST_REQUEST: Duration = Duration::from_secs(2);

/// How long before its container is killed the runner exits: AWS Batch would take the code of a killed one for the
/// trial's own failure.
const EXITING: Duration = Duration::from_secs(1);

/// What a job says of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// What asks the command to save and leave.
    pub signal: Signal,
    /// The most that the command gets between the stop signal and SIGKILL.
    pub grace: Option<Duration>,
    /// How long after SIGTERM the container is killed.
    pub stop_after: Duration,
    /// How long Batch lets the attempt run.
    pub timeout: Option<Duration>,
}

/// A request to stop the command. Times count from the beginning of the attempt, where not said otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// Why.
    pub cause: Cause,
    /// What asks the command for it.
    pub signal: Signal,
    /// Between the signal and SIGKILL.
    pub grace: Duration,
    /// When everything must be over.
    pub deadline: Duration,
    /// How long a seal of what is complete may take first: the container may end at any moment.
    pub sealing_first: Option<Duration>,
}

impl Stop {
    /// The answer to a report, or a stall: there is no deadline from outside. The command has the configured grace, and as much as usual
    /// comes after it.
    pub(crate) fn by_itself(cause: Cause, terms: &Terms, at: Duration) -> Self {
        let grace = terms.grace.unwrap_or(GRACE_BY_ITSELF);
        let more = if matches!(cause, Cause::Stalled { .. }) { WITHOUT_DEADLINE } else { Duration::ZERO };
        let deadline = at + BY_ITSELF.max(grace * 4 / 3) + more;
        Self { cause, signal: terms.signal, grace, deadline, sealing_first: None }
    }

    /// The container is killed a configured time after the signal.
    pub(crate) fn after_signal(signal: Signal, terms: &Terms, at: Duration) -> Self {
        let cause = match terms.timeout.filter(|timeout| at + BEFORE_RUNNER >= *timeout) {
            Some(timeout) if signal == Signal::TERM => Cause::TimedOut { seconds: timeout.as_secs() },
            Some(_) | None => Cause::Interrupted(format!("stopped by signal {}", signal.as_raw())),
        };
        // A person's Ctrl-C reaches the command as such.
        let signal = if signal == Signal::TERM { terms.signal } else { signal };
        let left = terms.stop_after;
        let sealing_first = SEALING_FIRST.min(left / 10);
        let most = left.saturating_sub(closing(left) + sealing_first);
        let grace = terms.grace.unwrap_or(most).min(most);
        Self { cause, signal, grace, deadline: at + left, sealing_first: Some(sealing_first) }
    }

    /// The end of the time left is for sealing, unmounting and the release; the rest is the command's, as a large
    /// checkpoint takes longer to write than anything else: 10 GiB on gp3 82 s.
    pub(crate) fn noticed(why: String, left: Duration, terms: &Terms, at: Duration) -> Self {
        let left = left.max(LEAST);
        let grace = terms.grace.unwrap_or(left).min(left - closing(left));
        let cause = Cause::Interrupted(why);
        Self { cause, signal: terms.signal, grace, deadline: at + left, sealing_first: None }
    }

    /// Another request comes while this one is under way. What leaves less time counts; a trial that is another
    /// attempt's, or that Batch ends, does not go on, whatever the first request was for.
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

    /// Seconds without a sign of life, where it is for that.
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

/// The end of the time that is left, for sealing, unmounting and the release: a quarter, or a second where that is more.
pub(crate) fn closing(left: Duration) -> Duration {
    CLOSING.min((left / 4).max(LEAST.min(left / 2)))
}

/// Until when a request is worth waiting for that is the last one.
pub(crate) fn last_request_until(end: Duration, at: Duration) -> Duration {
    end.saturating_sub(EXITING).max(at + LAST_REQUEST)
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
