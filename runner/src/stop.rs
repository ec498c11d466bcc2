//! Whether the attempt has to end before its command does, and how much time there is.

use std::time::Duration;

use jiff::Timestamp;
use rustix::process::Signal;
use spotsweep_protocol::stop::StopReason;
use tokio::time::Instant;

use crate::config::Config;
use crate::notices::{Interruption, Notices};
use crate::signals::Signals;
use crate::stack_dump;

/// ECS kills a container so long after SIGTERM unless told otherwise (`ECS_CONTAINER_STOP_TIMEOUT`).
const AFTER_SIGNAL: Duration = Duration::from_secs(30);
/// The command's share of that, where nothing else is said; the rest is for the upload.
const GRACE_AFTER_SIGNAL: Duration = Duration::from_secs(20);
/// The least that is taken to be left after a notice.
const LEAST: Duration = Duration::from_secs(1);
/// The most that is set aside of a notice for sealing, unmounting and the release. Writing out comes on top.
const CLOSING: Duration = Duration::from_secs(12);

/// How much longer the end of an attempt may take where nothing presses.
const UNHURRIED: Duration = Duration::from_secs(60);

/// Why the command is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The container or the instance is about to end.
    Interrupted(String),
    /// `trial-claim` refused a report: the trial is another attempt's.
    Fenced(StopReason),
    /// It has shown no sign of life for too long.
    Stalled {
        /// Seconds since the last sign.
        seconds: u64,
        /// Whether the trial ends with the attempt.
        is_last: bool,
    },
}

/// A request to stop the command.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    pub(crate) cause: Cause,
    pub(crate) signal: Signal,
    /// Between the signal and SIGKILL.
    pub(crate) grace: Duration,
    /// When everything must be over.
    pub(crate) deadline: Instant,
}

impl Stop {
    /// The trial is another attempt's.
    pub(crate) fn fenced(reason: StopReason, config: &Config) -> Self {
        Self::after_signal(Cause::Fenced(reason), config.stop_signal, config)
    }

    /// A stall: nothing presses.
    pub(crate) fn stalled(seconds: u64, is_last: bool, config: &Config) -> Self {
        let stop = Self::after_signal(Cause::Stalled { seconds, is_last }, config.stop_signal, config);
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
            Cause::Interrupted(_) | Cause::Fenced(_) => None,
        }
    }

    /// Whether it takes all that is left of the grace, after `elapsed` of it, to write out what the kernel still holds.
    /// Not in the first half of the grace: what the kernel holds may be another program's, and it may become faster.
    pub(crate) fn is_last_moment(&self, elapsed: Duration, writing: Duration) -> bool {
        elapsed >= self.grace / 2 && writing >= self.grace.saturating_sub(elapsed)
    }

    /// Nobody says how much time there is: the configured grace, and as much as usual after it.
    fn after_signal(cause: Cause, signal: Signal, config: &Config) -> Self {
        let grace = config.grace.unwrap_or(GRACE_AFTER_SIGNAL);
        let deadline = Instant::now() + AFTER_SIGNAL.max(grace * 4 / 3);
        Self { cause, signal, grace, deadline }
    }

    /// The end of the time left is for sealing, unmounting and the release; the rest is the command's, as a large
    /// checkpoint takes longer to write than anything else: 10 GiB on gp3 82 s.
    fn notice(notice: Interruption, config: &Config) -> Self {
        let left = Duration::try_from(notice.at.duration_since(Timestamp::now())).unwrap_or_default().max(LEAST);
        Self {
            cause: Cause::Interrupted(format!("EC2 takes this instance at {}", notice.at)),
            signal: config.stop_signal,
            grace: config.grace.unwrap_or(left).min(left - CLOSING.min(left / 4)),
            deadline: Instant::now() + left,
        }
    }
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
        signal = signals.next() => {
            let cause = Cause::Interrupted(format!("stopped by signal {}", signal.as_raw()));
            // A person's Ctrl-C reaches the command as such.
            let passed_on = if signal == Signal::TERM { config.stop_signal } else { signal };
            Stop::after_signal(cause, passed_on, config)
        }
        notice = noticed => Stop::notice(notice, config),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_written_ends_the_grace_early_but_not_before_its_half() {
        let cause = Cause::Interrupted("a notice".to_owned());
        let grace = Duration::from_secs(100);
        let stop = Stop { cause, signal: Signal::TERM, grace, deadline: Instant::now() + grace };
        for (elapsed, writing, expected) in
            [(99, 0, false), (60, 39, false), (60, 40, true), (49, 500, false), (50, 50, true)]
        {
            let found = stop.is_last_moment(Duration::from_secs(elapsed), Duration::from_secs(writing));
            assert_eq!(found, expected, "{elapsed} {writing}");
        }
    }
}
