//! Lines of the runner's log that other programs read: how they are written, and what they say.

use crate::claim::Rollback;

/// The runner's own lines begin so; all others are the training's.
pub const RUNNER: &str = "spotsweep-runner: ";
/// Before the reason why an attempt has ended and the trial has not.
pub const INTERRUPTED: &str = "interrupted: ";
/// The training has saved nothing until the end of the grace.
pub const GRACE_OVER: &str = "the grace is over: killing the command";
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

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event<'a> {
    /// The workspace is there, with this checkpoint as its newest one. The training starts.
    Mounted {
        /// Its path below `checkpoints/`.
        newest: Option<&'a str>,
    },
    /// The stop signal was sent, or would only kill the training, which goes on until its next checkpoint.
    Stopping {
        /// Seconds until it is killed.
        seconds: f64,
    },
    /// An earlier version of a checkpoint is back.
    Back {
        /// Its path below `checkpoints/`, or a pattern of several.
        name: &'a str,
    },
    /// A file may be of another step than one beside it that is back.
    MayDiffer,
    /// The training was killed at the end of the grace.
    GraceOver,
    /// The training has ended by itself.
    Ended {
        /// Its exit code.
        code: i32,
    },
    /// The attempt has ended, and the trial goes on.
    Interrupted {
        /// Why.
        reason: &'a str,
    },
}

impl<'a> Event<'a> {
    /// What a line of the runner says, without [`RUNNER`]. `None` for lines that only people read.
    pub fn read(line: &'a str) -> Option<Self> {
        if let Some(reason) = line.strip_prefix(INTERRUPTED) {
            return Some(Self::Interrupted { reason });
        }
        if let Some(rest) = line.strip_prefix(ENDED) {
            return Some(Self::Ended { code: rest.split(' ').next()?.parse().ok()? });
        }
        if line == GRACE_OVER {
            return Some(Self::GraceOver);
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

/// The workspace is there.
pub fn mounted(volume: &str, seconds: f64, newest: Option<&str>) -> String {
    let newest = newest.unwrap_or(NO_CHECKPOINT);
    format!("workspace {volume}{MOUNTED}{seconds:.1} s{NEWEST}{newest}")
}

/// The last complete version of a checkpoint is in the place of a newer one, which is not complete.
pub fn is_back(name: &str) -> String {
    format!("{CHECKPOINT}{name}{IS_BACK}")
}

/// So is the version of a file that was saved with it.
pub fn is_back_too(path: &str) -> String {
    format!("{path}{IS_BACK_TOO}")
}

/// A text beside it tells of a newer one, and no version of the text does not.
pub fn is_ahead(path: &str) -> String {
    format!("{path}{IS_AHEAD}")
}

/// Of a file beside it, there is no version that was saved with it.
pub fn may_differ(path: &str) -> String {
    format!("{path}{MAY_DIFFER}")
}

/// What a training is asked, and how long it has. A signal that no process handles would only kill it.
pub fn stopping(signal: &str, seconds: f64, is_handled: bool) -> String {
    if is_handled {
        format!("{SENT}{signal}, {seconds:.1}{TO_SAVE}")
    } else {
        format!("{UNHANDLED}{signal}{KILLED_IN}{seconds:.1}{AT_THE_LATEST}")
    }
}

/// The training has ended by itself.
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
            (GRACE_OVER.to_owned(), Event::GraceOver),
            (ended(-1, 2.0, 3, 4), Event::Ended { code: -1 }),
            (format!("{INTERRUPTED}{rollback}"), Event::Interrupted { reason: &rollback }),
        ] {
            assert_eq!(Event::read(&line), Some(expected), "{line}");
        }
        assert_eq!(Event::read("uploaded 3 files"), None);
        assert!(is_rollback(&rollback) && !is_rollback("EC2 takes this instance"));
    }
}
