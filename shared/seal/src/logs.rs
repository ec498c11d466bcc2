//! How files change from one sealed version to the next.
//!
//! Which of the files that are named like logs are logs, and which are states that a training starts from?
//!
//! A training appends to a log, and rewrites a state. So two sealed versions of one file show which of the two it is: a
//! log begins with its earlier version. Until then it is not known, and a version is kept as of any checkpoint.

use serde::{Deserialize, Serialize};

use crate::names::{is_library_log, is_log_name};

/// How a file has changed between two seals of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Change {
    /// It has its earlier version as its beginning.
    #[serde(rename = "appended")]
    Appended,
    /// It was rewritten.
    #[serde(rename = "rewritten")]
    Rewritten,
    /// Another file was put in its place. It may have much in common with the one before, such as CatBoost's snapshots, but
    /// none of its sectors. Not noted of a file that is named like a log.
    #[serde(rename = "replaced")]
    Replaced,
}

/// Whether a file is known to be a log: it is never put aside, and no version of it is kept.
pub(crate) fn is_log(path: &str, change: Option<Change>) -> bool {
    is_library_log(path) || change == Some(Change::Appended)
}

/// Whether a file may be a log: it is named like one, and was not seen to be rewritten.
pub(crate) fn may_be_log(path: &str, change: Option<Change>) -> bool {
    is_log_name(path) && change != Some(Change::Rewritten)
}
