//! The events of an attempt, and the actions that the runner takes.

use std::time::Duration;

use rustix::process::Signal;
use spotsweep_protocol::stop::StopReason;

use crate::answer::Answer;
use crate::conclusion::Cause;
use crate::stop::Stop;

/// An event of the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// EC2 reclaims the instance.
    Noticed {
        /// The time until the reclaim.
        left: Duration,
        /// The reason that the attempt ends with.
        why: String,
    },
    /// The container is asked to stop.
    Signalled(Signal),
    /// `trial-claim` refuses a report because another attempt has the trial.
    Fenced(StopReason),
    /// `trial-claim` answers a report that the trial is stopped early, with the reason.
    StoppedEarly(String),
    /// The training has stalled.
    Stalled {
        /// Seconds since the last sign of progress.
        seconds: u64,
        /// Whether the trial ends with the attempt.
        is_last: bool,
    },
    /// Everything that the command needs is ready.
    Prepared {
        /// Whether the next attempt gets the checkpoints of this one.
        has_workspace: bool,
    },
    /// The runner cannot go on, for a reason that its driver keeps.
    Failed {
        /// Whether the trial is released: the next attempt may succeed, and waits for the workspace.
        is_left: bool,
    },
    /// What the command needs could not be made ready: the code, a secret or the setup. Another attempt would fail alike,
    /// so the trial ends.
    SetupFailed {
        /// The job's exit code.
        code: u8,
    },
    /// The command and all processes that it has started have ended.
    CommandEnded {
        /// Exit code.
        code: i32,
        /// Whether the training reports that it is complete.
        is_finished: bool,
        /// Whether it has ended without a request to stop.
        is_by_itself: bool,
    },
    /// The runner has judged whether the checkpoint or the MLflow run caused the failure.
    Judged {
        /// Whether the next attempt starts from another checkpoint or run. The driver keeps which.
        goes_back: bool,
    },
    /// The upload has ended.
    Collected {
        /// Whether every output is uploaded.
        is_whole: bool,
    },
    /// The workspace is sealed, or sealing has failed.
    Sealed,
    /// The workspace is unmounted, or unmounting has failed.
    Unmounted,
    /// The answer to the last request; `None` if no answer came.
    Answered(Option<Answer>),
    /// The time of the action is over: see [`Machine::until`].
    TimeOver,
}

/// An action of the runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Claim the trial, mount its workspace, and prepare everything for the command.
    Prepare,
    /// Start the command, and watch it until it ends.
    Train,
    /// Stop the running command.
    Stop(Stop),
    /// Limit the grace of a command that is being stopped to this time from now. A shorter grace stays.
    Shorten(Duration),
    /// Find out whether the checkpoint or the MLflow run caused the command's failure.
    Judge,
    /// Upload the outputs of the command.
    Collect {
        /// Whether the trial succeeds if all is uploaded.
        has_succeeded: bool,
    },
    /// Write out the workspace, and seal it.
    Seal {
        /// The time by which reading must end, because other steps follow.
        reading_until: Duration,
        /// Whether the next attempt continues the trial.
        is_left: bool,
    },
    /// Unmount the workspace, if one is mounted.
    Unmount,
    /// Release the trial, with the last seal if there is one.
    Release,
    /// Report the end of the trial.
    End {
        /// The job's exit code.
        code: u8,
        /// The pause before the report.
        after: Duration,
    },
    /// Do nothing on this instance until EC2 takes it.
    AwaitEnd,
    /// The attempt is over.
    Exit(Exit),
}

/// How the runner ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// The trial has ended with this exit code.
    Code(u8),
    /// The next attempt continues the trial. Without a cause, the driver keeps the reason.
    Left(Option<Cause>),
    /// Another attempt has the trial.
    Refused(StopReason),
    /// The instance is to blame for the failure of the command.
    Unfit(String),
    /// The runner could not go on, for a reason that its driver keeps.
    Failed,
}
