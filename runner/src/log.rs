//! The runner's own lines in the job's log.

/// One line.
pub(crate) fn say(message: &str) {
    eprintln!("spotsweep-runner: {message}");
}
