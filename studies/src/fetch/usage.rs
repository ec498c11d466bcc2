//! What a process takes.

use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde::{Deserialize, Serialize};

/// What a process and those that it has waited for have taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Seconds from its start to its end.
    pub seconds: f64,
    /// Seconds of the processor, in user and kernel mode.
    pub cpu_seconds: f64,
    /// The most memory of one process, without the page cache and files in memory.
    pub peak_bytes: u64,
}

/// Runs a command to its end. Call it once in the life of a process: the kernel has one maximum for all children.
///
/// # Errors
/// If the command cannot be started, or fails.
pub fn watch(command: &[OsString]) -> io::Result<Usage> {
    let (program, arguments) = command.split_first().ok_or_else(|| io::Error::other("no command"))?;
    let began = Instant::now();
    let status = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    let seconds = began.elapsed().as_secs_f64();
    if !status.success() {
        return Err(io::Error::other(format!("{} ends with {status}", program.display())));
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = usage.user_time() + usage.system_time();
    // Linux counts in KiB: https://man7.org/linux/man-pages/man2/getrusage.2.html.
    let peak_bytes = u64::try_from(usage.max_rss()).unwrap_or_default() << 10;
    Ok(Usage { seconds, cpu_seconds: cpu.num_microseconds() as f64 / 1e6, peak_bytes })
}
