//! The runner's own lines in the job's log.

use std::io::Write;

use spotsweep_protocol::runner_log::RUNNER;
use spotsweep_protocol::visible::escaped;

/// Writes one line. The message is escaped, because a training chooses names of files and must not forge a line. The
/// line is written at once, so that no line of the command gets into it.
pub(crate) fn say(message: &str) {
    let line = format!("{RUNNER}{}\n", escaped(message));
    // A log that cannot be written is no reason to stop a training.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
