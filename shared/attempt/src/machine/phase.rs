//! The phases of an attempt.

use spotsweep_protocol::stop::StopReason;

use crate::conclusion::Cause;

/// A mounted workspace. Without one there is nothing to seal.
#[derive(Debug, Clone)]
pub(super) struct Mounted;

/// The current action of the attempt.
#[derive(Debug, Clone)]
pub(super) enum Phase {
    Preparing,
    Training(Option<Mounted>),
    Judging(u8, Option<Mounted>),
    Collecting(Ending, Option<Mounted>),
    Sealing(Ending, Mounted),
    Unmounting(Ending),
    Reporting(Ending),
    AwaitingEnd,
    Over,
}

/// How the attempt ends its part in the trial.
#[derive(Debug, Clone)]
pub(super) enum Ending {
    /// Another attempt has the trial. Saved files stay on the workspace.
    Refuse(StopReason),
    /// The next attempt continues the trial.
    Leave(Option<Cause>),
    /// The trial ends.
    End {
        /// The job's exit code.
        code: u8,
        /// Whether it ends as a success.
        has_succeeded: bool,
    },
    /// Nothing was trained.
    GiveUp {
        /// The cause; `None` if the runner itself cannot continue.
        cause: Option<Cause>,
        /// Whether the trial is released.
        is_left: bool,
    },
}
