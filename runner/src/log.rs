//! The runner's own lines in the job's log.

use std::io::Write;
use std::sync::OnceLock;

use spotsweep_protocol::mask::Mask;
use spotsweep_protocol::runner_log::RUNNER;
use spotsweep_protocol::visible::escaped;

/// The values of the attempt's secrets.
static SECRETS: OnceLock<Mask> = OnceLock::new();

/// Hides these values from now on. An attempt has one set of secrets, so later ones have no effect.
pub(crate) fn hide(secrets: Mask) {
    let _ = SECRETS.set(secrets);
}

/// What hides the secrets.
pub(crate) fn mask() -> Mask {
    SECRETS.get().cloned().unwrap_or_default()
}

/// Writes one line. The message is escaped, because a training chooses names of files and must not forge a line. The
/// line is written at once, so that no line of the command gets into it.
pub(crate) fn say(message: &str) {
    let line = format!("{RUNNER}{}\n", escaped(&mask().hide(message)));
    // A log that cannot be written is no reason to stop a training.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
