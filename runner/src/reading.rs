//! Reads what a training wrote, in separate processes.
//!
//! A training may write anything into a line, a file of metrics or a checkpoint. The code that reads it may panic, or
//! take too much memory or time. The release profile ends a process at a panic. The runner is process 1 of its
//! container, so there would be no seal and no upload. So the runner hands text to other processes of the same program,
//! and asks them for files by name. They have at most the training's rights, and their own limits. If a process ends or
//! is silent for too long, only what it was reading is lost, and another process replaces it.
//!
//! A thread with a caught panic is not enough. Only a process can have a memory limit, be ended while it computes, and
//! close its files on a volume for certain.

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
        /// The name of the metric that ranks the trials.
        named: Option<String>,
        patterns: Vec<MetricPattern>,
    },
    /// Metrics in the files of libraries.
    Logs {
        /// Pairs of a folder whose path only the runner can change, and a path below it.
        roots: Vec<(PathBuf, PathBuf)>,
        /// Seconds since 1970: values logged before this time are recorded already.
        since: f64,
        /// The name of the metric that ranks the trials.
        named: Option<String>,
        /// Files that are not read, because an earlier process ended while it read them.
        skipped: BTreeSet<String>,
    },
    /// Whether checkpoints are complete by their formats.
    Formats,
}

/// A request to a reading process.
#[derive(Debug, Serialize, Deserialize)]
enum Request {
    /// Asks for the metrics in lines of the stream with this number.
    Lines(usize, Vec<String>),
    /// Asks for what is new in the files.
    Look(Read),
    /// Asks whether a file is complete. Only the runner can change the first path; the second is below it.
    Completeness(PathBuf, PathBuf),
    /// Asks whether a file may have bytes of two versions; the paths are as above.
    MayMix(PathBuf, PathBuf),
}

/// An answer of a reading process: a request gets any number of these, and the last one is `Done`.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Logged(Logged),
    /// What is not searched for metrics, as a sentence. If `is_other`, it is of a kind that is never read.
    Unread {
        what: String,
        is_other: bool,
    },
    /// The process is now reading this file or folder.
    Reading(String),
    Completeness(Completeness),
    MayMix(bool),
    Failed(Failed),
    Done,
}

/// The error of an operation on a file.
#[derive(Debug, Serialize, Deserialize)]
struct Failed {
    /// Whether the file is missing, or is not a regular file.
    is_missing: bool,
    text: String,
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        let is_missing = is_odd(&error) || error.kind() == io::ErrorKind::NotFound;
        Self { is_missing, text: error.to_string() }
    }
}
