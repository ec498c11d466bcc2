//! Chooses from the command line what to run: a trial, a command by hand, or the runner's own child.

use std::ffi::OsString;
use std::time::Duration;

use spotsweep_protocol::secret::TOKEN_VARIABLE;

use crate::attempt;
use crate::code::packed::{UNPACK, unpack_here};
use crate::config::Config;
use crate::exit::Failure;
use crate::launch::{LAUNCH, exec, launch};
use crate::log::say;
use crate::reading::{READ, serve};
use crate::workplace::PARAMS_VARIABLE;

/// How long a write to a blocked stdout may delay the exit.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(1);

/// Runs what the arguments and the environment ask for, and returns the exit code.
pub(crate) fn start(arguments: Vec<OsString>) -> Result<u8, Failure> {
    let mut arguments = arguments.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    if arguments.first().is_some_and(|first| first == LAUNCH) {
        return Err(launch(&arguments[1..]));
    }
    if arguments.first().is_some_and(|first| first == UNPACK) {
        return unpack_here(&arguments[1..]);
    }
    if arguments.first().is_some_and(|first| first == READ) {
        return serve(&arguments[1..]);
    }
    if arguments.first().is_some_and(|first| first == "--") {
        arguments.remove(0);
    }
    if arguments.is_empty() {
        return Err(Failure::NoCommand);
    }
    if is_training(&|name| std::env::var_os(name).is_some()) {
        return Err(exec(&arguments));
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

/// Whether another runner has started this one as its training: that of the image, with the command of a definition
/// that starts the instance's runner. Only a training has the paths of its trial, and it does not have the claim token.
fn is_training(has: &dyn Fn(&str) -> bool) -> bool {
    has(PARAMS_VARIABLE) && !has(TOKEN_VARIABLE)
}

fn text(argument: OsString) -> Result<String, Failure> {
    argument.into_string().map_err(Failure::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_that_another_one_has_started_claims_nothing() {
        for (variables, expected) in [
            (&["SPOTSWEEP_SWEEP", PARAMS_VARIABLE][..], true),
            (&["SPOTSWEEP_SWEEP", TOKEN_VARIABLE], false),
            // A person may have set it in the job definition.
            (&["SPOTSWEEP_SWEEP", TOKEN_VARIABLE, PARAMS_VARIABLE], false),
            (&[], false),
        ] {
            assert_eq!(is_training(&|name| variables.contains(&name)), expected, "{variables:?}");
        }
    }
}
