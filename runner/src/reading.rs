//! Reads what a training wrote, in processes of their own.
//!
//! A training may write anything into a line, a file of metrics or a checkpoint. What reads that may panic, or take too
//! much memory or time. The release profile ends a process at a panic, and the runner is process 1 of its container: no
//! seal and no upload would follow. So the runner hands text to other processes of the same program, and asks them for
//! files by name. They have the training's rights at most, and bounds of their own. One that ends, or is silent for too
//! long, costs what it was reading, and another one takes its place.
//!
//! A process and not a thread with a caught panic: only a process can be given a bound of memory, be ended while it
//! computes, and let go of a volume for certain.

mod asked;
mod formats;
mod lines;
mod log_files;
mod logs;
mod serve;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spotsweep_beneath::is_odd;
use spotsweep_checkpoint_formats::Completeness;
use spotsweep_protocol::metric::MetricPattern;
use spotsweep_training_metrics::{Logged, Read};

pub(crate) use asked::is_reader;
pub(crate) use formats::FormatReader;
pub(crate) use lines::{Lines, read_lines};
pub(crate) use logs::Logs;
pub(crate) use serve::{READ, serve};

/// What a reading process is for.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Task {
    /// Metrics in lines of text.
    Lines {
        /// The metric that ranks the trials.
        named: Option<String>,
        patterns: Vec<MetricPattern>,
    },
    /// Metrics in the files of libraries.
    Logs {
        /// Folders whose paths only the runner can change, and paths below them.
        roots: Vec<(PathBuf, PathBuf)>,
        /// Seconds since 1970: what was logged before is recorded already.
        since: f64,
        /// The metric that ranks the trials.
        named: Option<String>,
        /// Files that are not read, because the process before has ended over them.
        skipped: BTreeSet<String>,
    },
    /// Formats of checkpoints.
    Formats,
}

/// What it is asked.
#[derive(Debug, Serialize, Deserialize)]
enum Request {
    /// For the metrics in lines of one of several streams.
    Lines(usize, Vec<String>),
    /// For what is new in the files.
    Look(Read),
    /// Whether a file is complete, by a folder whose path only the runner can change and the path below it.
    Completeness(PathBuf, PathBuf),
    /// Whether a file may have bytes of two versions.
    MayMix(PathBuf, PathBuf),
}

/// What it answers: any number of these, the last one `Done`.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Logged(Logged),
    /// What it does not search for metrics: a sentence. Others are of a kind that is never read.
    Unread {
        what: String,
        is_other: bool,
    },
    /// It goes on, with this file or folder.
    Reading(String),
    Completeness(Completeness),
    MayMix(bool),
    Failed(Failed),
    Done,
}

/// The error of an operation on a file.
#[derive(Debug, Serialize, Deserialize)]
struct Failed {
    /// Whether no such file is there, or something else than a regular file.
    is_missing: bool,
    text: String,
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        let is_missing = is_odd(&error) || error.kind() == io::ErrorKind::NotFound;
        Self { is_missing, text: error.to_string() }
    }
}
