//! The runner's own lines in the job's log.

use spotsweep_protocol::visible::escaped;

/// One line, whatever is in the message: a training chooses names of files, and none of them may forge a line.
pub(crate) fn say(message: &str) {
    eprintln!("spotsweep-runner: {}", escaped(message));
}
