//! The launch step: the runner's own child becomes the training command or another program of the training's user.
#![expect(clippy::disallowed_methods, reason = "the one place where programs are started as the training's user")]

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use spotsweep_protocol::secret::TOKEN_VARIABLE;

use crate::config::Config;
use crate::exit::Failure;
use crate::gpus::Gpus;
use crate::privileges;
use crate::user::User;
use crate::view;

/// First argument of the runner's own child. The parent's process id, the user, the hidden files and the command
/// follow.
pub(crate) const LAUNCH: &str = "--launch";

/// Starts programs as the training's user; no such program is started in another way. The training can look into every
/// process of that user (`/proc/<pid>/root`, proc_pid_root(5)), so each of them has the training's own view of the
/// devices.
#[derive(Debug, Clone)]
pub(crate) struct Launcher {
    user: Option<User>,
    /// Device files that the training must not see.
    hidden: Vec<PathBuf>,
}

impl Launcher {
    /// A launcher for a training that has these GPUs.
    pub(crate) fn new(config: &Config, gpus: &Gpus) -> Result<Self, Failure> {
        Ok(Self { user: config.user.clone(), hidden: gpus.of_others(config)? })
    }

    /// A launcher for programs before the claim. It hides no GPUs: no training runs yet that could look into these
    /// programs.
    pub(crate) fn before_claim(config: &Config) -> Self {
        Self { user: config.user.clone(), hidden: Vec::new() }
    }

    /// The user that the training runs as. If absent, it runs as the container's user.
    pub(crate) fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// A command that starts the runner's own child, which goes through [`launch`].
    pub(crate) fn command(&self, words: &[String]) -> std::io::Result<Command> {
        let hidden = serde_json::to_string(&self.hidden)?;
        let mut command = Command::new(std::env::current_exe()?);
        // Programs of the training's user must not have the token that claims the sweep's trials.
        command.env_remove(TOKEN_VARIABLE);
        command.arg(LAUNCH).arg(std::process::id().to_string());
        command.arg(self.user.as_ref().map(ToString::to_string).unwrap_or_default()).arg(hidden).args(words);
        Ok(command)
    }
}

/// Runs in the child, before it becomes the training command. It drops all privileges and ties the child's life to the
/// runner's, as in a container: a killed runner never leaves a training behind on the local stack. Both are done
/// between fork and exec because only there safe code can do them.
pub(crate) fn launch(arguments: &[String]) -> Failure {
    let [parent, user, hidden, command @ ..] = arguments else {
        return Failure::NoCommand;
    };
    let hidden = serde_json::from_str::<Vec<PathBuf>>(hidden).map_err(std::io::Error::from);
    if let Err(source) = hidden.and_then(|hidden| view::hide(&hidden)) {
        return Failure::System("hide the device files of other trials' GPUs", source);
    }
    let user = if user.is_empty() { Ok(None) } else { User::from_words(user).map(Some).ok_or(()) };
    let dropped = match user {
        Ok(user) => privileges::drop(user.as_ref()),
        Err(()) => Err(std::io::ErrorKind::InvalidInput.into()),
    };
    if let Err(source) = dropped {
        return Failure::Privileges(source);
    }
    // This comes after the drop, because a change of user clears the death signal (prctl(2)).
    if let Err(errno) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return Failure::System("tie the command to the runner's life", errno.into());
    }
    let orphaned = getppid().is_none_or(|pid| pid.as_raw_nonzero().to_string() != *parent);
    if orphaned {
        return Failure::Orphaned;
    }
    exec(command)
}

/// Becomes the command; returns only if that failed.
pub(crate) fn exec(command: &[String]) -> Failure {
    let Some((program, arguments)) = command.split_first() else {
        return Failure::NoCommand;
    };
    let source = Command::new(program).args(arguments).exec();
    Failure::Exec { command: program.clone(), source }
}
