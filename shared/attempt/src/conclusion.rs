//! How an attempt ends, once its command has.

use spotsweep_protocol::stop::StopReason;

/// Exit code of a training that was ended because it showed no sign of life or took too long, and of the trial with it. As
/// timeout(1) has it.
pub const TIMED_OUT: u8 = 124;

/// Why the command is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The container or the instance is about to end.
    Interrupted(String),
    /// `trial-claim` refused a report: the trial is another attempt's.
    Fenced(StopReason),
    /// `trial-claim` has stopped the trial early: why.
    StoppedEarly(String),
    /// Batch lets the attempt run no longer.
    TimedOut {
        /// How long it may take.
        seconds: u64,
    },
    /// It has shown no sign of life for too long.
    Stalled {
        /// Seconds since the last sign.
        seconds: u64,
        /// Whether the trial ends with the attempt.
        is_last: bool,
    },
}

/// What becomes of the trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conclusion {
    /// It is another attempt's: nothing is uploaded, and what is saved stays on the workspace.
    Refuse,
    /// The next attempt goes on with it.
    Leave,
    /// It ends with this exit code, as a training that was not to go on.
    End(u8),
    /// It has succeeded, though the command was to stop.
    Succeed,
    /// The command has ended by itself: it decides.
    ByItself,
}

/// How an attempt ends whose command has ended with `code`, after it was stopped for a `cause`. `is_finished` says whether
/// the training says of itself that it has trained to its end.
///
/// An exit code proves nothing after a stop signal: a script that saves its half-trained model and exits with 0 is not at
/// its end (fact 37). One that is, resumes in the next attempt and ends at once.
pub(crate) fn conclusion(code: i32, is_finished: bool, cause: Option<&Cause>) -> Conclusion {
    match cause {
        None => Conclusion::ByItself,
        Some(Cause::Fenced(_)) => Conclusion::Refuse,
        Some(Cause::StoppedEarly(_)) => Conclusion::End(0),
        // Batch starts no further attempt, and ends the trial as failed.
        Some(Cause::TimedOut { .. }) => Conclusion::End(TIMED_OUT),
        Some(Cause::Interrupted(_) | Cause::Stalled { .. }) if code == 0 && is_finished => Conclusion::Succeed,
        // Its own code must not be the one that starts another attempt.
        Some(Cause::Stalled { is_last: true, .. }) => Conclusion::End(TIMED_OUT),
        Some(Cause::Interrupted(_) | Cause::Stalled { .. }) => Conclusion::Leave,
    }
}
