//! The reasons why spotsweep itself stops an attempt, a trial or a sweep. Records, replies and the reasons in AWS Batch
//! use the same type.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::stall::NO_SIGN;
use crate::words::{counted, duration};

/// The prefix of each reason in Batch, whose `statusReason` is a plain text.
const PREFIX: &str = "spotsweep: ";
const BUDGET: &str = "budget reached: ";
const CANCELLED: &str = "cancelled by ";
const DISCARDED: &str = "cancelled, with its checkpoints, by ";
const FAILING_FAST: &str = "failing fast: ";
const NEVER_STARTS: (&str, &str) = ("its container could not be started ", " times in a row");
const EARLY: &str = "stopped early at rung ";
const STALLED: &str = "stalled: ";
const TARGET: &str = "target reached: ";
const WITHDRAWN: &str = "a later part of the sweep was refused";

/// The reason why spotsweep stops an attempt, a trial or a sweep.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "stop", rename_all = "kebab-case")]
pub enum StopReason {
    /// A newer attempt has claimed the trial.
    Fenced {
        /// The attempt that is stopped.
        attempt: u32,
    },
    /// Batch has reported the end of the attempt.
    AttemptEnded {
        /// The attempt.
        attempt: u32,
    },
    /// The attempt has not claimed the trial.
    NotClaimed {
        /// The attempt.
        attempt: u32,
    },
    /// Another runner has claimed the attempt, because the request has another secret.
    OtherRunner {
        /// The attempt.
        attempt: u32,
    },
    /// The request has no secret, or no claim token.
    NoSecret,
    /// There is no such sweep, trial or job, or the request has another claim token. The reply does not say which of
    /// these, so that the sender of such a request learns nothing.
    Unproven,
    /// The trial has ended, and its record no longer changes.
    TrialEnded,
    /// Something that a runner needs does not exist.
    NotFound {
        /// The missing thing.
        what: String,
    },
    /// The training has shown no sign of life for too long.
    Stalled {
        /// Seconds since the last sign.
        seconds: u64,
    },
    /// The attempt has taken longer than the job may.
    TimedOut {
        /// Seconds that an attempt may take.
        seconds: u64,
    },
    /// The sweep's budget is reached.
    Budget {
        /// The limit, and its value.
        reached: String,
    },
    /// The sweep's first trials have all failed at once.
    FailingFast {
        /// The number of trials, and their failure.
        cause: String,
    },
    /// The trial was stopped early, because others are better at the same rung.
    StoppedEarly {
        /// The rung.
        rung: u64,
    },
    /// A trial has reached the sweep's target.
    Target {
        /// The trial, and its value.
        reached: String,
    },
    /// A user has called `spotsweep cancel`.
    Cancelled {
        /// The user's name.
        by: String,
        /// Whether no snapshot of the trial is kept.
        #[serde(default)]
        discard: bool,
    },
    /// The job's container does not start.
    NeverStarts {
        /// Failed starts in a row.
        starts: u32,
    },
    /// The attempt's runner has found that its instance cannot train.
    UnfitInstance {
        /// What is wrong with the instance.
        cause: String,
    },
    /// EC2 refuses the trial's workspace permanently.
    Workspace {
        /// EC2's reason.
        cause: String,
    },
    /// Batch no longer has the trial's job.
    JobLost,
    /// Batch refused the trial's next job.
    Resubmission {
        /// Attempts that have ended.
        attempts: u32,
        /// Batch's reason.
        cause: String,
    },
    /// Batch refused a later array job of the sweep, so the earlier ones end.
    Withdrawn,
    /// A reason of a newer version, which a runner in an older image may receive.
    #[serde(other)]
    Other,
}

impl StopReason {
    /// Returns the reason for TerminateJob and CancelJob. [`StopReason::of_batch`] parses it.
    pub fn for_batch(&self) -> String {
        format!("{PREFIX}{self}")
    }

    /// Parses the reason that [`StopReason::for_batch`] returned; `None` for a reason of Batch's own.
    pub fn of_batch(reason: &str) -> Option<Self> {
        let reason = reason.strip_prefix(PREFIX)?;
        if let Some(reached) = reason.strip_prefix(BUDGET) {
            return Some(Self::Budget { reached: reached.to_owned() });
        }
        if let Some(cause) = reason.strip_prefix(FAILING_FAST) {
            return Some(Self::FailingFast { cause: cause.to_owned() });
        }
        if let Some(rung) = reason.strip_prefix(EARLY) {
            return Some(Self::StoppedEarly { rung: rung.parse().ok()? });
        }
        if let Some(reached) = reason.strip_prefix(TARGET) {
            return Some(Self::Target { reached: reached.to_owned() });
        }
        if let Some(by) = reason.strip_prefix(CANCELLED) {
            return Some(Self::Cancelled { by: by.to_owned(), discard: false });
        }
        if let Some(by) = reason.strip_prefix(DISCARDED) {
            return Some(Self::Cancelled { by: by.to_owned(), discard: true });
        }
        let (before, after) = NEVER_STARTS;
        if let Some(starts) = reason.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)) {
            return Some(Self::NeverStarts { starts: starts.parse().ok()? });
        }
        (reason == WITHDRAWN).then_some(Self::Withdrawn)
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fenced { attempt } => write!(to, "attempt {attempt} is over, a later one has the trial"),
            Self::AttemptEnded { attempt } => write!(to, "Batch has ended attempt {attempt} of this trial"),
            Self::NotClaimed { attempt } => write!(to, "attempt {attempt} does not have the trial"),
            Self::OtherRunner { attempt } => write!(to, "another runner has claimed attempt {attempt}"),
            Self::NoSecret => {
                to.write_str("the request has no secret or no claim token: the image has an older spotsweep-runner")
            }
            Self::Unproven => to.write_str("the request does not show that it is of a runner of the trial's job"),
            Self::TrialEnded => to.write_str("the trial has ended"),
            Self::NotFound { what } => write!(to, "there is no {what}"),
            Self::Stalled { seconds } => write!(to, "{STALLED}{NO_SIGN} for {}", duration(*seconds as f64)),
            Self::TimedOut { seconds } => write!(to, "timed out after {}", duration(*seconds as f64)),
            Self::Budget { reached } => write!(to, "{BUDGET}{reached}"),
            Self::FailingFast { cause } => write!(to, "{FAILING_FAST}{cause}"),
            Self::StoppedEarly { rung } => write!(to, "{EARLY}{rung}"),
            Self::Target { reached } => write!(to, "{TARGET}{reached}"),
            Self::Cancelled { by, discard } => write!(to, "{}{by}", if *discard { DISCARDED } else { CANCELLED }),
            Self::NeverStarts { starts } => write!(to, "{}{starts}{}", NEVER_STARTS.0, NEVER_STARTS.1),
            Self::UnfitInstance { cause } => write!(to, "its instance cannot train: {cause}"),
            Self::Workspace { cause } => write!(to, "EC2 refuses the workspace: {cause}"),
            Self::JobLost => to.write_str("AWS Batch does not know this job any more"),
            Self::Resubmission { attempts, cause } => {
                write!(to, "AWS Batch refused the next job after {}: {cause}", counted(*attempts, "attempt"))
            }
            Self::Withdrawn => to.write_str(WITHDRAWN),
            Self::Other => to.write_str("a newer version of spotsweep stopped it"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_batch_is_given_is_read_back() {
        let given = [
            StopReason::Budget { reached: "10 USD: 10.02 USD so far".into() },
            StopReason::FailingFast { cause: "5 trials failed; trial 0: exit code 1, KeyError: 'lr'".into() },
            StopReason::Cancelled { by: "jo@host: again".into(), discard: false },
            StopReason::Cancelled { by: "jo".into(), discard: true },
            StopReason::NeverStarts { starts: 5 },
            StopReason::StoppedEarly { rung: 27 },
            StopReason::Target { reached: "trial 3 has val_acc 0.99".into() },
            StopReason::Withdrawn,
        ];
        for reason in given {
            assert_eq!(StopReason::of_batch(&reason.for_batch()), Some(reason));
        }
        for foreign in ["", "Host EC2 (instance i-1) terminated.", "cancelled by Jo", "spotsweep: later words"] {
            assert_eq!(StopReason::of_batch(foreign), None);
        }
    }

    #[test]
    fn a_stall_says_what_was_missing_and_for_how_long() {
        for (seconds, time) in [(59, "59 s"), (90, "1 min 30 s"), (1800, "30 min"), (3725, "1 h 02 min")] {
            let expected = format!("stalled: no output, metric, checkpoint or GPU activity for {time}");
            assert_eq!(StopReason::Stalled { seconds }.to_string(), expected);
        }
    }

    #[test]
    fn an_older_runner_stops_for_a_newer_reason() {
        let newer = r#"{"stop": "eclipse", "until": 7}"#;
        assert_eq!(serde_json::from_str::<StopReason>(newer).unwrap(), StopReason::Other);
    }
}
