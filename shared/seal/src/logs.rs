//! Decides from the changes between two sealed versions whether a file that is named like a log is one.
//!
//! A training appends to a log, and rewrites a state that it starts from. So a log begins with its earlier version.
//! Until there are two sealed versions, a version is kept as of any checkpoint.

use serde::{Deserialize, Serialize};

use crate::names::{is_library_log, is_log_name};

/// How a file has changed between two seals of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Change {
    /// Its earlier version is its beginning.
    #[serde(rename = "appended")]
    Appended,
    /// It was rewritten.
    #[serde(rename = "rewritten")]
    Rewritten,
    /// Another file was put in its place. It may have much in common with the one before, such as CatBoost's snapshots,
    /// but shares no sectors with it. Not noted for a file that is named like a log.
    #[serde(rename = "replaced")]
    Replaced,
}

/// Whether a file is known to be a log: it is never quarantined, and no version of it is kept.
pub(crate) fn is_log(path: &str, change: Option<Change>) -> bool {
    is_library_log(path) || change == Some(Change::Appended)
}

/// Whether a file may be a log: it is named like one, and no look has found it rewritten.
pub(crate) fn may_be_log(path: &str, change: Option<Change>) -> bool {
    is_log_name(path) && change != Some(Change::Rewritten)
}
