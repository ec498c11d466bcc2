//! The product in real processes: the functions on the local stack, the command, and the SDKs against the emulator.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod acceptance;
mod bad_input;
mod bayes;
mod before_deploy;
mod by_hand;
mod code;
mod commands;
mod commands_help;
mod counted;
mod demo;
mod deploy;
mod deployed;
mod example;
mod executor;
mod hidden;
mod history;
mod hostile;
mod kept;
mod kill;
mod killed;
mod local;
mod managed_secrets;
mod newcomer;
mod own_files;
mod pull;
mod reclaims;
mod redrive;
mod secrets;
mod submit;
mod telemetry;
mod tried;
mod watch;

use std::sync::Mutex;

/// Held by a test whose trainings must save within a notice of two seconds, so that no other training slows them down.
static TRAINING: Mutex<()> = Mutex::new(());
