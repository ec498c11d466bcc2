//! What the record says of checkpoints that a training failed on.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How a training has failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadEnd {
    /// Its exit code.
    pub exit_code: i32,
    /// The line of its output that says why; none where there is no line.
    pub error: Option<String>,
}

/// A checkpoint that a training failed on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) name: String,
    /// When each of its files was modified, in nanoseconds since 1970: of two versions the mark may be the same.
    pub(crate) modified: BTreeMap<String, i64>,
    /// When the newest checkpoint that was there was modified.
    pub(crate) newest_ns: i64,
    pub(crate) end: BadEnd,
    /// Whether it was complete.
    pub(crate) is_proven: bool,
    /// The folder in `.spotsweep/torn/` of what was put aside for it.
    pub(crate) folder: String,
    /// The files and folders there, as paths below `checkpoints/`.
    pub(crate) moved: Vec<String>,
    /// The pointers that were replaced, as they were.
    pub(crate) replaced: Vec<Replaced>,
}

/// A pointer as it was, by its path below `checkpoints/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Replaced {
    /// A symbolic link, and its target.
    #[serde(rename = "link")]
    Link(String, PathBuf),
    /// A text.
    #[serde(rename = "text")]
    Text(String, String),
    /// A text that was put aside.
    #[serde(rename = "moved")]
    Moved(String),
}
