//! What happens to an attempt, and what it does.

use std::time::Duration;

use rustix::process::Signal;
use spotsweep_protocol::stop::StopReason;

use crate::answer::Answer;
use crate::conclusion::Cause;
use crate::stop::Stop;

/// What has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// EC2 takes the instance.
    Noticed {
        /// When that is.
        left: Duration,
        /// The reason that the attempt ends with.
        why: String,
    },
    /// The container is asked to stop.
    Signalled(Signal),
    /// The answer to a report: the trial is another attempt's.
    Fenced(StopReason),
    /// The answer to a report: the trial is stopped early.
    StoppedEarly(String),
    /// The training has shown no sign of life for too long.
    Stalled {
        /// Seconds since the last sign.
        seconds: u64,
        /// Whether the trial ends with the attempt.
        is_last: bool,
    },
    /// All is there for the command.
    Prepared {
        /// Whether the next attempt gets the checkpoints of this one.
        has_workspace: bool,
    },
    /// The runner cannot go on, for a reason that its driver keeps.
    Failed {
        /// Whether the trial is given back: the next attempt may be luckier, and waits for the workspace.
        is_left: bool,
    },
    /// The command has ended, and all that it has started.
    CommandEnded {
        /// Exit code.
        code: i32,
        /// Whether the training reports that it has trained to its end.
        is_finished: bool,
        /// Whether it has ended without having been asked to.
        is_by_itself: bool,
    },
    /// What a failed command was given has been judged.
    Judged {
        /// Whether the next attempt starts from something else. The driver keeps what.
        goes_back: bool,
    },
    /// The upload has ended.
    Collected {
        /// Whether all is there.
        is_whole: bool,
    },
    /// The workspace is sealed, or could not be.
    Sealed,
    /// The workspace is unmounted, or could not be.
    Unmounted,
    /// What comes of the last request; `None` where no answer came.
    Answered(Option<Answer>),
    /// The time of the action is over: see [`Machine::until`].
    TimeOver,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Claim the trial, mount its workspace, and lay everything out.
    Prepare,
    /// Start the command, and look after it until its end.
    Train,
    /// The command that runs is to stop.
    Stop(Stop),
    /// The command that is to stop has this much time from now on, if it has not less.
    Shorten(Duration),
    /// The command has failed by itself: look whether that is because of what it was given.
    Judge,
    /// Upload what the command leaves.
    Collect {
        /// Whether the trial succeeds if all is uploaded.
        has_succeeded: bool,
    },
    /// Write everything out, and seal it.
    Seal {
        /// When reading must end, for what comes after it.
        reading_until: Duration,
        /// Whether the next attempt goes on with the trial.
        is_left: bool,
    },
    /// Unmount the workspace, where one is mounted.
    Unmount,
    /// Give the trial back, with the last seal if there is one.
    Release,
    /// Report the end of the trial.
    End {
        /// The job's exit code.
        code: u8,
        /// When, from now on.
        after: Duration,
    },
    /// Nothing is done on this instance until it is taken.
    AwaitEnd,
    /// The attempt is over.
    Exit(Exit),
}

/// How the runner ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// With this code: the trial has ended.
    Code(u8),
    /// The next attempt goes on with the trial; without a cause, for a reason that the driver keeps.
    Left(Option<Cause>),
    /// The trial is another attempt's.
    Refused(StopReason),
    /// The instance is to blame for the failure of the command.
    Unfit(String),
    /// The runner could not go on, for a reason that its driver keeps.
    Failed,
}
