//! How the runner ends: one failure type, and one exit code for each kind.
//!
//! The training command's exit code is the job's. The runner's own codes follow `sysexits.h`, so that a training script
//! rarely uses the same ones. AWS Batch and the control plane react to only one of them, [`INTERRUPTED`]. A command
//! never ends the job with it (see [`spotsweep_attempt::of_command`]).

use spotsweep_attempt::{INTERRUPTED, REFUSED, UPLOAD, of_command};
use spotsweep_protocol::claim::UNAVAILABLE;
use spotsweep_protocol::metric::UnusableRegex;
use spotsweep_protocol::patterns::Unusable;
use spotsweep_protocol::runner_log;
use spotsweep_protocol::stop::StopReason;
use std::error::Error;
use std::io;
use std::path::PathBuf;

use crate::config::ConfigError;
use crate::parameters::ParametersError;

/// Something inside the runner failed (`EX_SOFTWARE`).
const INTERNAL: u8 = 70;
/// The environment or the command is wrong (`EX_CONFIG`).
const CONFIGURATION: u8 = 78;
/// As in shells: the command exists and cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// As in shells: there is no such command.
const NOT_FOUND: u8 = 127;

/// The error of a part of the runner. Each part turns its own errors into a [`Failure`], so that this file depends on
/// none of them.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// Why the runner ends with a code of its own.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// No command on the command line.
    #[error(
        "no command to run: give one in the image's CMD, in the job definition's command, or as \
         `command` in the sweep file"
    )]
    NoCommand,
    /// An argument that is not text.
    #[error("argument {0:?} is not UTF-8; rename what it names")]
    NotText(std::ffi::OsString),
    /// Missing or malformed variables.
    #[error("the environment does not describe a trial")]
    Config(#[from] ConfigError),
    /// The command cannot be executed.
    #[error("cannot start `{command}`")]
    Exec {
        /// The program's name.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// `trial-claim` gave no answer; a later attempt may get one.
    #[error("the trial could not be claimed")]
    Unanswered(#[source] Cause),
    /// `trial-claim` gave no usable answer.
    #[error("the trial could not be claimed")]
    Claim(#[source] Cause),
    /// Another attempt has the trial, or the trial is over.
    #[error("this attempt must not run: {0}")]
    Refused(StopReason),
    /// The trial's parameters could not be read.
    #[error("the trial's parameters could not be read")]
    Parameters(#[from] ParametersError),
    /// A macro in the command has no meaning.
    #[error("the command's macros cannot be expanded")]
    Macro(#[from] spotsweep_protocol::command_line::MacroError),
    /// A folder or file of the runner's own could not be made.
    #[error("cannot prepare {path}")]
    Prepare {
        /// What was to be made.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused a call that the runner depends on.
    #[error("cannot {0}")]
    System(&'static str, #[source] io::Error),
    /// Outputs could not be uploaded. Without its outputs a trial has not succeeded.
    #[error("the trial's outputs could not be collected")]
    Upload(#[source] Cause),
    /// An output pattern is not a glob.
    #[error("the sweep file's output patterns cannot be used")]
    Patterns(#[from] Unusable),
    /// A metric pattern of the sweep file cannot be compiled. The validation of the sweep file should have refused it.
    #[error("a pattern of `metrics` is not usable: {0}")]
    MetricPatterns(#[from] UnusableRegex),
    /// The workspace cannot be used.
    #[error("the trial's workspace cannot be used")]
    Workspace(#[source] Cause),
    /// The checkpoint of another trial, from which this one starts, is not whole in the bucket.
    #[error("the checkpoint that the trial starts from could not be restored")]
    Restore(#[source] Cause),
    /// The training code could not be fetched.
    #[error("the training code could not be fetched")]
    Code(#[source] Cause),
    /// A secret is missing, or the trial may not read it.
    #[error("the trial's secrets could not be read")]
    Secrets(#[source] Cause),
    /// A data set is not whole on the instance.
    #[error("the trial's data could not be fetched")]
    Data(#[source] Cause),
    /// A command of `setup` has failed.
    #[error("setup failed: `{command}` (exit code {code}): {reason}")]
    Setup {
        /// The command, on one line and cut.
        command: String,
        /// Its exit code.
        code: i32,
        /// The line of its output that names the reason.
        reason: String,
    },
    /// The command's privileges could not be dropped.
    #[error("cannot drop the command's privileges")]
    Privileges(#[source] io::Error),
    /// This attempt is over, the trial is not.
    #[error("{before}{0}", before = runner_log::INTERRUPTED)]
    Interrupted(String),
    /// The control plane has no workspace for this instance.
    #[error("the trial's workspace cannot come here, leaving for another instance: {0}")]
    Unavailable(String),
    /// Nothing can be trained on this instance.
    #[error("this instance cannot train, leaving for another one: {0}")]
    Unfit(String),
    /// The runner had ended when its child was about to become the command.
    #[error("the runner is gone")]
    Orphaned,
}

impl Failure {
    /// The attempt ends after a stall of so many seconds; the trial goes on.
    pub(crate) fn stalled(seconds: u64) -> Self {
        Self::Interrupted(StopReason::Stalled { seconds }.to_string())
    }

    /// The exit code for this failure.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::NoCommand
            | Self::NotText(_)
            | Self::Config(_)
            | Self::Macro(_)
            | Self::Patterns(_)
            | Self::MetricPatterns(_)
            | Self::Privileges(_) => CONFIGURATION,
            Self::Exec { source, .. } if source.kind() == io::ErrorKind::NotFound => NOT_FOUND,
            Self::Exec { .. } => NOT_EXECUTABLE,
            // The next attempt may get an answer, and an outage must not end the trial and lose its checkpoints.
            Self::Unanswered(_) => INTERRUPTED,
            Self::Claim(_)
            | Self::Parameters(_)
            | Self::Restore(_)
            | Self::Code(_)
            | Self::Secrets(_)
            | Self::Data(_) => UNAVAILABLE,
            Self::Refused(_) => REFUSED,
            Self::Prepare { .. } | Self::System(..) | Self::Workspace(_) | Self::Orphaned => INTERNAL,
            Self::Upload(_) => UPLOAD,
            Self::Setup { code, .. } => of_command(*code),
            Self::Interrupted(_) | Self::Unavailable(_) | Self::Unfit(_) => INTERRUPTED,
        }
    }
}
