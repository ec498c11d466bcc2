//! One file per command.

pub(crate) mod acceptance;
pub(crate) mod cancel;
pub(crate) mod completions;
pub(crate) mod cost;
mod demo;
pub(crate) mod doctor;
mod expand;
pub(crate) mod explain;
pub(crate) mod export;
mod local;
pub(crate) mod logs;
mod ls;
pub(crate) mod pull;
pub(crate) mod redrive;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod retry;
mod status;
mod submit;
pub(crate) mod top;
mod validate;
pub(crate) mod watch;

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
        Command::Watch(args) => watch::run(args).await,
        Command::Top(args) => top::run(args).await,
        Command::Explain(args) => explain::run(args).await,
        Command::Logs(args) => logs::run(args).await,
        Command::Report(args) => report::run(args).await,
        Command::Cost(args) => cost::run(args).await,
        Command::Pull(args) => pull::run(args).await,
        Command::Export(args) => export::run(args).await,
        Command::Cancel(args) => cancel::run(args).await,
        Command::Retry(args) => retry::run(args).await,
        Command::Doctor(args) => doctor::run(args).await,
        Command::Acceptance(args) => acceptance::run(args).await,
        Command::Redrive(args) => redrive::run(args).await,
        Command::Validate(args) => validate::run(&args),
        Command::Expand(args) => expand::run(&args),
        Command::Replay(args) => replay::run(*args),
        Command::Completions(args) => completions::run(&args),
    }
}
