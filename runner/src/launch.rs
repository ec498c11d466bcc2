//! From the command line to the right way of running: a trial, a command by hand, or the
//! runner's own child on its way to become the training command.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::attempt;
use crate::config::Config;
use crate::exit::{Failure, say};

/// First argument of the runner's own child; the parent's process id and the command follow.
pub(crate) const LAUNCH: &str = "--launch";

/// How long a write to a blocked stdout may hold up the exit.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(1);

/// Runs what the arguments and the environment ask for; returns the exit code.
pub(crate) fn start(arguments: Vec<OsString>) -> Result<u8, Failure> {
    let mut arguments = arguments.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    if arguments.first().is_some_and(|first| first == LAUNCH) {
        return Err(launch(&arguments[1..]));
    }
    if arguments.first().is_some_and(|first| first == "--") {
        arguments.remove(0);
    }
    if arguments.is_empty() {
        return Err(Failure::NoCommand);
    }
    let Some(config) = Config::read(&|name| std::env::var(name).ok())? else {
        say("SPOTSWEEP_SWEEP is not set: no trial here, the command runs as it is");
        return Err(exec(&arguments));
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|source| Failure::System("start the runtime", source))?;
    let code = runtime.block_on(attempt::run(&config, &arguments));
    runtime.shutdown_timeout(SHUTDOWN_LIMIT);
    code
}

fn text(argument: OsString) -> Result<String, Failure> {
    argument.into_string().map_err(Failure::NotText)
}

/// In the child, before it becomes the training command: dies with the runner, as everything in
/// a container does, so that a killed runner never leaves a training behind on the local stack.
/// This step between fork and exec is also the place to drop privileges, in safe code.
fn launch(arguments: &[String]) -> Failure {
    let Some((parent, command)) = arguments.split_first() else {
        return Failure::NoCommand;
    };
    if let Err(errno) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return Failure::System("tie the command to the runner's life", errno.into());
    }
    let orphaned = getppid().is_none_or(|pid| pid.as_raw_nonzero().to_string() != *parent);
    if orphaned {
        return Failure::Stopped(Signal::KILL.as_raw());
    }
    exec(command)
}

/// Becomes the command; returns only where that failed.
fn exec(command: &[String]) -> Failure {
    let Some((program, arguments)) = command.split_first() else {
        return Failure::NoCommand;
    };
    let source = Command::new(program).args(arguments).exec();
    Failure::Exec { command: program.clone(), source }
}
