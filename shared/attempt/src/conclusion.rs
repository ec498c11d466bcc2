//! How an attempt ends after its command has ended.

use spotsweep_protocol::stop::StopReason;

/// Exit code of a training that was ended because it stalled or took too long, and of its trial. timeout(1) uses the
/// same code.
pub const TIMED_OUT: u8 = 124;

/// Why the command is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The container or the instance is about to end.
    Interrupted(String),
    /// `trial-claim` refused a report because another attempt has the trial.
    Fenced(StopReason),
    /// `trial-claim` has stopped the trial early, with the reason.
    StoppedEarly(String),
    /// The attempt has reached Batch's timeout.
    TimedOut {
        /// The timeout in seconds.
        seconds: u64,
    },
    /// The training has stalled.
    Stalled {
        /// Seconds since the last sign of progress.
        seconds: u64,
        /// Whether the trial ends with the attempt.
        is_last: bool,
    },
}

/// The result of the attempt for its trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conclusion {
    /// Another attempt has the trial: the runner uploads nothing, and saved files stay on the workspace.
    Refuse,
    /// The next attempt continues the trial.
    Leave,
    /// The trial ends with this exit code, because its training must not continue.
    End(u8),
    /// The trial has succeeded, although the command was asked to stop.
    Succeed,
    /// The command has ended by itself, and its exit code decides.
    ByItself,
}

/// The result of a command that has ended with `code` after it was stopped for a `cause`. `is_finished` is whether the
/// training reports that it is complete.
///
/// An exit code proves nothing after a stop signal: a script that saves its half-trained model and exits with 0 is not
/// complete (fact 37). A complete training resumes in the next attempt, and ends at once.
pub(crate) fn conclusion(code: i32, is_finished: bool, cause: Option<&Cause>) -> Conclusion {
    match cause {
        None => Conclusion::ByItself,
        Some(Cause::Fenced(_)) => Conclusion::Refuse,
        Some(Cause::StoppedEarly(_)) => Conclusion::End(0),
        // Batch starts no further attempt, and the trial fails.
        Some(Cause::TimedOut { .. }) => Conclusion::End(TIMED_OUT),
        Some(Cause::Interrupted(_) | Cause::Stalled { .. }) if code == 0 && is_finished => Conclusion::Succeed,
        // The command's own code could start another attempt.
        Some(Cause::Stalled { is_last: true, .. }) => Conclusion::End(TIMED_OUT),
        Some(Cause::Interrupted(_) | Cause::Stalled { .. }) => Conclusion::Leave,
    }
}
