//! What the command was writing when it ended.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::files::Stamp;

/// A file that changed so shortly before the end may have been open then, though no look has found it open.
const SHORTLY: Duration = Duration::from_secs(1);

/// The end of the command.
#[derive(Debug, Clone)]
pub(crate) struct AtEnd {
    /// Files that were open for writing at the last look before it.
    open: BTreeSet<PathBuf>,
    /// Nanoseconds since 1970.
    time: i64,
    /// Whether the command was killed, so that it may have been cut off in the middle of a write.
    was_killed: bool,
}

impl AtEnd {
    /// The end that is now.
    pub(crate) fn now(open: BTreeSet<PathBuf>, was_killed: bool) -> Self {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { open, time: i64::try_from(time.as_nanos()).unwrap_or(i64::MAX), was_killed }
    }

    /// Whether the file at `path` may be cut off.
    pub(super) fn was_writing(&self, path: &Path, stamp: Stamp) -> bool {
        let shortly = i64::try_from(SHORTLY.as_nanos()).unwrap_or(i64::MAX);
        let is_young = self.was_killed && stamp.modified_ns >= self.time.saturating_sub(shortly);
        is_young || self.open.contains(path) || path.canonicalize().is_ok_and(|path| self.open.contains(&path))
    }
}
