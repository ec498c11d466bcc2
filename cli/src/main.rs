//! The `spotsweep` command. Exit codes: 0 ok, 1 failed or invalid, 2 wrong usage, and what `try` cannot prove.

mod code_folder;
mod commands;
mod consent;
mod download;
mod dropped;
mod live;
mod metrics_record;
mod out;
mod progress;
mod queue;
mod save;
mod secrets;
mod show;
mod signals;
mod sweep_file;
mod sweeps;
mod target;
mod timeline;
#[cfg(feature = "local")]
mod tried_metrics;

use std::process::ExitCode;

use clap::Parser;

use crate::commands::Args;
use spotsweep_protocol::failure::{self, Failure};

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(said) => {
            out::usage(&said);
            return ExitCode::from(if said.use_stderr() { failure::USAGE } else { 0 });
        }
    };
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("cannot start the async runtime").caused_by(error))
        .and_then(|runtime| {
            let outcome = runtime.block_on(commands::run(args.command));
            // A read of standard input cannot be cancelled, and must not delay the exit.
            runtime.shutdown_background();
            outcome
        });
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            out::note(format_args!("error: {failure}"));
            failure.exit_code()
        }
    }
}
