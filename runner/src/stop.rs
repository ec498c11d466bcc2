//! Whether the attempt has to end before its command does, and how much time there is.

use std::time::Duration;

use jiff::Timestamp;
use rustix::process::Signal;
use spotsweep_attempt::Cause;
use spotsweep_protocol::stop::StopReason;
use tokio::time::Instant;

use crate::config::Config;
use crate::exit::Failure;
use crate::log::say;
use crate::notices::{Interruption, Notices};
use crate::signals::Signals;
use crate::stack_dump;

/// How long the end of an attempt may take that nothing outside asks for, and the command's share of that, where nothing
/// else is said.
const BY_ITSELF: Duration = Duration::from_secs(30);
const GRACE_BY_ITSELF: Duration = Duration::from_secs(20);
/// The most that a seal may take before the command gets a signal of which nothing was announced.
const SEALING_FIRST: Duration = Duration::from_secs(5);
/// Batch counts an attempt's time from the start of its container, which is a moment before the runner's.
const BEFORE_RUNNER: Duration = Duration::from_secs(10);
/// The least that is taken to be left after a notice, and to be enough to close a small workspace.
const LEAST: Duration = Duration::from_secs(1);
/// The most that is set aside of a notice for sealing, unmounting and the release. Writing out comes on top.
const CLOSING: Duration = Duration::from_secs(12);

/// How much longer the end of an attempt may take where nothing presses.
const UNHURRIED: Duration = Duration::from_secs(60);

/// A request to stop the command.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    pub(crate) cause: Cause,
    pub(crate) signal: Signal,
    /// Between the signal and SIGKILL.
    pub(crate) grace: Duration,
    /// When everything must be over.
    pub(crate) deadline: Instant,
    /// How long a seal of what is complete may take first: the container may end at any moment.
    pub(crate) sealing_first: Option<Duration>,
}

impl Stop {
    /// The answer to a report: the trial is another attempt's, or is stopped early.
    pub(crate) fn answered(cause: Cause, config: &Config) -> Self {
        Self::by_itself(cause, config)
    }

    /// A stall: nothing presses.
    pub(crate) fn stalled(seconds: u64, is_last: bool, config: &Config) -> Self {
        let stop = Self::by_itself(Cause::Stalled { seconds, is_last }, config);
        Self { deadline: stop.deadline + UNHURRIED, ..stop }
    }

    /// Whether the command's processes are to dump their stacks first. Not where the signal for that asks them to stop.
    pub(crate) fn wants_stacks(&self) -> bool {
        matches!(self.cause, Cause::Stalled { .. }) && self.signal != stack_dump::SIGNAL
    }

    /// Seconds without a sign of life, where it is for that.
    pub(crate) fn stalled_seconds(&self) -> Option<u64> {
        match self.cause {
            Cause::Stalled { seconds, .. } => Some(seconds),
            Cause::Interrupted(_) | Cause::TimedOut { .. } | Cause::Fenced(_) | Cause::StoppedEarly(_) => None,
        }
    }

    /// Why spotsweep itself ends the trial with the attempt, if it does.
    pub(crate) fn reason(&self) -> Option<StopReason> {
        match self.cause {
            Cause::Stalled { seconds, .. } => Some(StopReason::Stalled { seconds }),
            Cause::TimedOut { seconds } => Some(StopReason::TimedOut { seconds }),
            Cause::Interrupted(_) | Cause::Fenced(_) | Cause::StoppedEarly(_) => None,
        }
    }

    /// Whether the container is killed at the deadline, though the trial ends with this attempt.
    pub(crate) fn is_pressing(&self) -> bool {
        matches!(self.cause, Cause::TimedOut { .. })
    }

    /// Nothing presses: the configured grace, and as much as usual after it.
    fn by_itself(cause: Cause, config: &Config) -> Self {
        let grace = config.grace.unwrap_or(GRACE_BY_ITSELF);
        let deadline = Instant::now() + BY_ITSELF.max(grace * 4 / 3);
        Self { cause, signal: config.stop_signal, grace, deadline, sealing_first: None }
    }

    /// The container is killed a configured time after the signal.
    fn after_signal(signal: Signal, config: &Config) -> Self {
        let cause = match config.timeout.filter(|timeout| config.started.elapsed() + BEFORE_RUNNER >= *timeout) {
            Some(timeout) if signal == Signal::TERM => Cause::TimedOut { seconds: timeout.as_secs() },
            Some(_) | None => Cause::Interrupted(format!("stopped by signal {}", signal.as_raw())),
        };
        // A person's Ctrl-C reaches the command as such.
        let signal = if signal == Signal::TERM { config.stop_signal } else { signal };
        let left = config.stop_after;
        let sealing_first = SEALING_FIRST.min(left / 10);
        let most = left.saturating_sub(closing(left) + sealing_first);
        let grace = config.grace.unwrap_or(most).min(most);
        if let Some(wanted) = config.grace.filter(|wanted| *wanted > most) {
            say(&format!(
                "the container is killed {left:.0?} after the signal: of SPOTSWEEP_GRACE_SECONDS={}, {grace:.1?} are left",
                wanted.as_secs_f64()
            ));
        }
        Self { cause, signal, grace, deadline: Instant::now() + left, sealing_first: Some(sealing_first) }
    }

    /// The end of the time left is for sealing, unmounting and the release; the rest is the command's, as a large
    /// checkpoint takes longer to write than anything else: 10 GiB on gp3 82 s.
    fn notice(notice: Interruption, config: &Config) -> Self {
        let left = Duration::try_from(notice.at.duration_since(Timestamp::now())).unwrap_or_default().max(LEAST);
        Self {
            cause: Cause::Interrupted(format!("EC2 takes this instance at {}", notice.at)),
            signal: config.stop_signal,
            grace: config.grace.unwrap_or(left).min(left - closing(left)),
            deadline: Instant::now() + left,
            sealing_first: None,
        }
    }
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Interrupted(reason) | Cause::StoppedEarly(reason) => Self::Interrupted(reason),
            Cause::Fenced(reason) => Self::Refused(reason),
            // The job's own end says why.
            Cause::TimedOut { seconds } => Self::Interrupted(StopReason::TimedOut { seconds }.to_string()),
            Cause::Stalled { seconds, .. } => Self::stalled(seconds),
        }
    }
}

/// The end of the time that is left, for sealing, unmounting and the release: a quarter, or a second where that is more.
pub(crate) fn closing(left: Duration) -> Duration {
    CLOSING.min((left / 4).max(LEAST.min(left / 2)))
}

/// Comes back when the container or the instance is about to end. Without `notices`, the command
/// has no workspace to save anything on, and may as well use the time that it has.
pub(crate) async fn interruption(signals: &mut Signals, notices: Option<&mut Notices>, config: &Config) -> Stop {
    let noticed = async {
        match notices {
            Some(notices) => notices.interruption().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        signal = signals.next() => Stop::after_signal(signal, config),
        notice = noticed => Stop::notice(notice, config),
    }
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
