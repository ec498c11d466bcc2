//! The manifest's entries for checkpoints that a training failed on.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How a training has failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadEnd {
    /// Its exit code.
    pub exit_code: i32,
    /// The line of its output that gives the reason; `None` if there is no such line.
    pub error: Option<String>,
}

/// A checkpoint that a training failed on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) name: String,
    /// When each of its files was modified, in nanoseconds since 1970, because the mark may be the same in two
    /// versions.
    pub(crate) modified: BTreeMap<String, i64>,
    /// When the newest checkpoint that was there was modified.
    pub(crate) newest_ns: i64,
    pub(crate) end: BadEnd,
    /// Whether it was complete.
    pub(crate) is_proven: bool,
    /// The folder in `.spotsweep/torn/` with the files that were quarantined for it.
    pub(crate) folder: String,
    /// The files and folders there, as paths below `checkpoints/`.
    pub(crate) moved: Vec<String>,
    /// The pointers that were replaced, with their earlier content.
    pub(crate) replaced: Vec<Replaced>,
}

/// The earlier state of a pointer, with its path below `checkpoints/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Replaced {
    /// A symbolic link, and its target.
    #[serde(rename = "link")]
    Link(String, PathBuf),
    /// A text.
    #[serde(rename = "text")]
    Text(String, String),
    /// A text that was quarantined.
    #[serde(rename = "moved")]
    Moved(String),
}
