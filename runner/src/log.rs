//! The runner's own lines in the job's log.

use std::io::Write;

use spotsweep_protocol::runner_log::RUNNER;
use spotsweep_protocol::visible::escaped;

/// One line, whatever is in the message: a training chooses names of files, and none of them may forge a line. It is
/// written at once, so that no line of the command's gets into it.
pub(crate) fn say(message: &str) {
    let line = format!("{RUNNER}{}\n", escaped(message));
    // A log that takes nothing is no reason to stop a training.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
