//! How the runner ends: one failure type, one exit code per kind.
//!
//! The training command's own exit code is the job's. The runner's own codes follow
//! `sysexits.h`, so that they rarely meet a training script's. One of them makes a difference to AWS Batch and the control
//! plane, [`INTERRUPTED`]: a command never ends the job with it (see [`spotsweep_attempt::of_command`]).

use spotsweep_attempt::{INTERRUPTED, REFUSED, UPLOAD};
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
/// The control plane could not be reached, or answered nonsense (`EX_PROTOCOL`).
const UNAVAILABLE: u8 = 76;
/// The environment or the command is wrong (`EX_CONFIG`).
const CONFIGURATION: u8 = 78;
/// As shells say it: the command exists and cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// As shells say it: no such command.
const NOT_FOUND: u8 = 127;

/// What a part of the runner says of its failure. Each part turns its own errors into a [`Failure`]: this file knows
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
    /// `trial-claim` gave no answer, which may pass.
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
    /// The system refused something the runner cannot work without.
    #[error("cannot {0}")]
    System(&'static str, #[source] io::Error),
    /// Outputs could not be uploaded: a model that is not collected is not a success.
    #[error("the trial's outputs could not be collected")]
    Upload(#[source] Cause),
    /// An output pattern is not a glob.
    #[error("the sweep file's output patterns cannot be used")]
    Patterns(#[from] Unusable),
    /// The sweep file's patterns of metrics; its validation lets only those through that can be compiled.
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
    /// The command would have more privileges than it may.
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
    /// The runner was gone when its child was about to become the command.
    #[error("the runner is gone")]
    Orphaned,
}

impl Failure {
    /// The attempt was ended because its training showed no sign of life for so many seconds; the trial goes on.
    pub(crate) fn stalled(seconds: u64) -> Self {
        Self::Interrupted(StopReason::Stalled { seconds }.to_string())
    }

    /// The exit code that tells this failure.
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
            // The next attempt may be answered; what the trial has saved must not end with an outage.
            Self::Unanswered(_) => INTERRUPTED,
            Self::Claim(_) | Self::Parameters(_) | Self::Restore(_) | Self::Code(_) => UNAVAILABLE,
            Self::Refused(_) => REFUSED,
            Self::Prepare { .. } | Self::System(..) | Self::Workspace(_) | Self::Orphaned => INTERNAL,
            Self::Upload(_) => UPLOAD,
            Self::Interrupted(_) | Self::Unavailable(_) | Self::Unfit(_) => INTERRUPTED,
        }
    }
}
