//! Measures how fast clients fetch a data set from S3, over links of a given rate.
//!
//! A [`Server`] in this process stands for S3 and for `trial-claim`. A [`Link`] leads to it, and each [`Client`] is a
//! process that fetches the whole set into a [`Target`].

mod answers;
mod client;
mod link;
mod objects;
mod report;
mod request;
mod server;
mod target;
mod usage;

pub use client::{Client, Kind};
pub use link::Link;
pub use objects::Objects;
pub use report::{Case, Row, measure, row, rows_header};
pub use server::Server;
pub use target::Target;
pub use usage::{Usage, watch};

use std::io;
use std::process::Command;

/// Runs one of the system's programs to its end.
fn run_program(command: &mut Command) -> io::Result<()> {
    let output = command.output().map_err(|error| io::Error::other(format!("cannot start {command:?}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let problem = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?} fails: {}", problem.trim())))
}
