//! The files that the command was writing when it ended.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Stamp};
use crate::groups::{Written, is_next};

/// A file that changed within this time before the end may have been open then, even if no look has found it open.
const SHORTLY_NS: i64 = 1_000_000_000;

/// The end of the command.
#[derive(Debug, Clone)]
pub struct AtEnd {
    /// Files that were open for writing at the last look before the end.
    open: BTreeSet<PathBuf>,
    /// Time of the end, in nanoseconds since 1970.
    time: i64,
    /// Whether the command may have been cut off in the middle of a write.
    pub(crate) is_cut_off: bool,
}

impl AtEnd {
    /// The end at `now_ns`, in nanoseconds since 1970, with the files that were `open` for writing.
    pub fn new(open: BTreeSet<PathBuf>, now_ns: i64, is_cut_off: bool) -> Self {
        Self { open, time: now_ns, is_cut_off }
    }

    /// Whether the file at `path` may be cut off.
    pub(crate) fn was_writing(&self, disk: &dyn Disk, path: &Path, stamp: Stamp) -> bool {
        let is_young = self.is_cut_off && stamp.modified_ns >= self.time.saturating_sub(SHORTLY_NS);
        is_young || self.had_open(disk, path)
    }

    /// Whether the command may have been cut off between two files of one save: the first one is as `written`, and the
    /// next one is still as it was `before`.
    pub(crate) fn was_between(&self, written: Stamp, before: Stamp) -> bool {
        let next = Written { at: self.time, bytes: before.bytes, path: "" };
        self.is_cut_off && is_next(&Written { at: written.modified_ns, bytes: written.bytes, path: "" }, &next)
    }

    fn had_open(&self, disk: &dyn Disk, path: &Path) -> bool {
        self.open.contains(path) || disk.canonical(path).is_ok_and(|path| self.open.contains(&path))
    }
}
