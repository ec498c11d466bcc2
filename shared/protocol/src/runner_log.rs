//! Lines of the runner's log that other programs read: how they are written and parsed.

use crate::claim::Rollback;

/// The prefix of the runner's own lines. All other lines are the training's.
pub const RUNNER: &str = "spotsweep-runner: ";
/// The prefix of the reason why an attempt has ended although the trial goes on.
pub const INTERRUPTED: &str = "interrupted: ";
/// The line for a training that is killed at the end of the grace because it has saved nothing.
pub const GRACE_OVER: &str = "the grace is over: killing the command";
/// The line for a training that is killed before that, so that what it has saved can be written to the volume.
pub const NO_TIME_TO_SAVE: &str =
    "what is not yet written to the volume takes all the time that is left: killing the command";
const MOUNTED: &str = " is mounted and verified after ";
const NEWEST: &str = "; newest checkpoint: ";
const NO_CHECKPOINT: &str = "none";
const SENT: &str = "sent ";
const TO_SAVE: &str = " s to save";
const UNHANDLED: &str = "no process handles ";
const KILLED_IN: &str = ": the command is killed in ";
const AT_THE_LATEST: &str = " s at the latest";
const ENDED: &str = "the command ended with code ";
const CHECKPOINT: &str = "checkpoint ";
const IS_BACK: &str = " is rewritten in place: its last complete version is back";
const IS_BACK_TOO: &str = " belongs to the newer version: its sealed version is back, too";
const IS_AHEAD: &str = " tells of a version that is gone: it is put aside";
const MAY_DIFFER: &str = " may belong to another version than the files beside it that are back: the runner has no \
                          versions of them from one seal";

/// The meaning of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event<'a> {
    /// The workspace is mounted, with this newest checkpoint, and the training starts.
    Mounted {
        /// The checkpoint's path below `checkpoints/`.
        newest: Option<&'a str>,
    },
    /// The stop signal was sent; or it would only kill the training, which goes on until its next checkpoint.
    Stopping {
        /// Seconds until the training is killed.
        seconds: f64,
    },
    /// An earlier version of a checkpoint has been restored.
    Back {
        /// The checkpoint's path below `checkpoints/`, or a pattern of several.
        name: &'a str,
    },
    /// A file may be of another step than a restored one next to it.
    MayDiffer,
    /// The training was killed, because no time was left for it to save.
    Killed,
    /// The training has ended by itself.
    Ended {
        /// The training's exit code.
        code: i32,
    },
    /// The attempt has ended, and the trial goes on.
    Interrupted {
        /// The reason.
        reason: &'a str,
    },
}

impl<'a> Event<'a> {
    /// Parses a line of the runner, without [`RUNNER`]. `None` for lines that only people read.
    pub fn read(line: &'a str) -> Option<Self> {
        if let Some(reason) = line.strip_prefix(INTERRUPTED) {
            return Some(Self::Interrupted { reason });
        }
        if let Some(rest) = line.strip_prefix(ENDED) {
            return Some(Self::Ended { code: rest.split(' ').next()?.parse().ok()? });
        }
        if [GRACE_OVER, NO_TIME_TO_SAVE].contains(&line) {
            return Some(Self::Killed);
        }
        if line.starts_with(SENT) || line.starts_with(UNHANDLED) {
            let before = line.strip_suffix(TO_SAVE).or_else(|| line.strip_suffix(AT_THE_LATEST))?;
            return Some(Self::Stopping { seconds: before.rsplit(' ').next()?.parse().ok()? });
        }
        let back = line.strip_prefix(CHECKPOINT).and_then(|rest| rest.strip_suffix(IS_BACK));
        if let Some(name) = back.or_else(|| line.strip_suffix(IS_BACK_TOO)) {
            return Some(Self::Back { name });
        }
        if line.ends_with(MAY_DIFFER) {
            return Some(Self::MayDiffer);
        }
        let (_, newest) = line.split_once(MOUNTED)?.1.split_once(NEWEST)?;
        Some(Self::Mounted { newest: Some(newest).filter(|newest| *newest != NO_CHECKPOINT) })
    }
}

/// Returns the line for a mounted workspace.
pub fn mounted(volume: &str, seconds: f64, newest: Option<&str>) -> String {
    let newest = newest.unwrap_or(NO_CHECKPOINT);
    format!("workspace {volume}{MOUNTED}{seconds:.1} s{NEWEST}{newest}")
}

/// Returns the line for a checkpoint whose last complete version has replaced a newer, incomplete one.
pub fn is_back(name: &str) -> String {
    format!("{CHECKPOINT}{name}{IS_BACK}")
}

/// Returns the line for a file of which the version that was saved with such a checkpoint was restored.
pub fn is_back_too(path: &str) -> String {
    format!("{path}{IS_BACK_TOO}")
}

/// Returns the line for a text next to a checkpoint that names a newer one, and of which no older version exists.
pub fn is_ahead(path: &str) -> String {
    format!("{path}{IS_AHEAD}")
}

/// Returns the line for a file next to a checkpoint of which no version was saved with it.
pub fn may_differ(path: &str) -> String {
    format!("{path}{MAY_DIFFER}")
}

/// Returns the line for a training that has to stop, with the remaining time. A signal without a handler would only
/// kill it.
pub fn stopping(signal: &str, seconds: f64, is_handled: bool) -> String {
    if is_handled {
        format!("{SENT}{signal}, {seconds:.1}{TO_SAVE}")
    } else {
        format!("{UNHANDLED}{signal}{KILLED_IN}{seconds:.1}{AT_THE_LATEST}")
    }
}

/// Returns the line for a training that has ended by itself.
pub fn ended(code: i32, seconds: f64, files: u64, bytes: u64) -> String {
    format!("{ENDED}{code} after {seconds:.1} s; {files} files, {bytes} bytes collected")
}

/// Whether an attempt was interrupted because its training failed on its checkpoint.
pub fn is_rollback(reason: &str) -> bool {
    reason.contains(Rollback::NOT_LOADED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let rollback = Rollback { checkpoint: "e_3.pt".to_owned(), exit_code: 1, to: None }.to_string();
        for (line, expected) in [
            (mounted("vol-1", 0.1, Some("e_2.pt")), Event::Mounted { newest: Some("e_2.pt") }),
            (mounted("vol-1", 0.1, None), Event::Mounted { newest: None }),
            (stopping("SIGTERM", 90.0, true), Event::Stopping { seconds: 90.0 }),
            (stopping("SIGTERM", 11.2, false), Event::Stopping { seconds: 11.2 }),
            (is_back("model.pt"), Event::Back { name: "model.pt" }),
            (is_back_too("b/state.json"), Event::Back { name: "b/state.json" }),
            (may_differ("optimizer.pt"), Event::MayDiffer),
            (GRACE_OVER.to_owned(), Event::Killed),
            (NO_TIME_TO_SAVE.to_owned(), Event::Killed),
            (ended(-1, 2.0, 3, 4), Event::Ended { code: -1 }),
            (format!("{INTERRUPTED}{rollback}"), Event::Interrupted { reason: &rollback }),
        ] {
            assert_eq!(Event::read(&line), Some(expected), "{line}");
        }
        assert_eq!(Event::read("uploaded 3 files"), None);
        assert!(is_rollback(&rollback) && !is_rollback("EC2 takes this instance"));
    }
}
