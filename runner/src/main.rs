//! Container entrypoint of a trial: claims the trial, runs the training command as a child, passes its output and
//! metrics on, and collects its outputs.
//!
//! Usage: `spotsweep-runner [--] COMMAND…`. The flow is in [`attempt`], the exit codes are in [`exit`].

mod attempt;
mod cache;
mod child;
mod claim;
mod clients;
mod code;
mod config;
mod data;
mod descendants;
mod error_line;
mod exit;
mod gpu_activity;
mod gpus;
mod instance_check;
mod kernel;
mod launch;
mod leave;
mod log;
mod metrics_file;
mod mlflow;
mod notices;
mod output;
mod own_files;
mod parameters;
mod place;
mod prepare;
mod privileges;
mod process_group;
mod processes;
mod progress;
mod reading;
mod record;
mod reports;
mod restore;
mod rungs;
mod sealing;
mod secrets;
mod setup;
mod shared_memory;
mod signals;
mod stack_dump;
mod stalling;
mod start;
mod stop;
mod stopping;
mod storage;
mod surroundings;
mod trained;
mod training;
mod unread;
mod upload;
mod user;
mod view;
mod wandb;
mod workplace;
mod workspace;
mod writeback;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1).collect();
    match start::start(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            log::say(&spotsweep_protocol::cause::chain(&failure));
            ExitCode::from(failure.code())
        }
    }
}
