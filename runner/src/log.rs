//! The runner's own lines in the job's log.

use std::io::Write;

/// One line. It is written at once, so that no line of the command's gets into it.
pub(crate) fn say(message: &str) {
    let line = format!("spotsweep-runner: {message}\n");
    // A log that takes nothing is no reason to stop a training.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
