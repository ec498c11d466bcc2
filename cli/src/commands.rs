//! One file per command.

mod demo;
mod expand;
pub(crate) mod explain;
mod local;
mod ls;
pub(crate) mod redrive;
pub(crate) mod replay;
mod status;
mod submit;
mod validate;

use std::process::ExitCode;

use crate::args::Command;
use crate::failure::Failure;

/// Runs a command to its exit code.
pub(crate) async fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Demo(args) => demo::run(args).await,
        Command::Local(args) => local::run(args).await,
        Command::Submit(args) => submit::run(args).await,
        Command::Ls(args) => ls::run(args).await,
        Command::Status(args) => status::run(args).await,
        Command::Explain(args) => explain::run(args).await,
        Command::Redrive(args) => redrive::run(args).await,
        Command::Validate(args) => validate::run(&args),
        Command::Expand(args) => expand::run(&args),
        Command::Replay(args) => replay::run(*args),
    }
}
