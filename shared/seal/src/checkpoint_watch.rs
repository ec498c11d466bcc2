//! Waits for the end of a training's next checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::disk::{Disk, Stamp};
use crate::files::newest;
use crate::names::{is_log, is_unfinished};

/// A checkpoint is complete when none of its files is open for writing, and nothing has changed for an eighth of the
/// time that is left, within these bounds: libraries write a checkpoint file by file, with some computing between them.
const QUIET: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// Compares what lies in the folder of checkpoints with what lay there.
#[derive(Debug, Clone)]
pub struct CheckpointWatch {
    folder: PathBuf,
    first: BTreeMap<String, Stamp>,
    last: BTreeMap<String, Stamp>,
    /// When `last` was different the last time.
    changed: Duration,
    /// Whether something was written since the beginning.
    wrote: bool,
}

impl CheckpointWatch {
    /// A watch on the checkpoints in `folder`. All times count from one moment, which the caller chooses.
    pub fn new(disk: &dyn Disk, folder: PathBuf, now: Duration) -> Self {
        let first = disk.files(&folder).unwrap_or_default();
        Self { folder, last: first.clone(), first, changed: now, wrote: false }
    }

    /// The checkpoint that has been completed since the beginning. `open` are the files that are open for
    /// writing; there is time `until` then.
    pub fn look(
        &mut self,
        disk: &dyn Disk,
        open: &BTreeSet<PathBuf>,
        now: Duration,
        until: Duration,
    ) -> Option<String> {
        let files = disk.files(&self.folder).unwrap_or_default();
        let folder = disk.canonical(&self.folder).unwrap_or_else(|_| self.folder.clone());
        let is_written = open.iter().any(|path| path.starts_with(&folder));
        if files != self.last || is_written {
            self.changed = now;
            self.wrote = true;
            self.last = files;
            return None;
        }
        let quiet = (until.saturating_sub(now) / 8).clamp(QUIET.0, QUIET.1);
        let is_quiet = self.wrote && now.saturating_sub(self.changed) >= quiet;
        let is_new = |path: &str, stamp| self.first.get(path) != Some(stamp) && !is_unfinished(path) && !is_log(path);
        let changed = || self.last.iter().filter(|(path, stamp)| is_new(path, *stamp));
        is_quiet.then(|| newest(changed().map(|(path, stamp)| (path.as_str(), *stamp)))).flatten()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    #![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
    use std::fs;

    use super::*;
    use crate::disk::MountedDisk;

    #[test]
    fn a_checkpoint_is_complete_when_it_is_closed_and_quiet() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), "whole").unwrap();
        let mut now = Duration::ZERO;
        let disk = MountedDisk::below(folder.path());
        let mut watch = CheckpointWatch::new(&disk, folder.path().to_owned(), now);
        let none = BTreeSet::new();
        let left = QUIET.1 * 8;
        let mut look = |open: &BTreeSet<PathBuf>, wait: Duration| {
            now += wait;
            watch.look(&disk, open, now, now + left)
        };
        assert_eq!(look(&none, QUIET.1 * 10), None, "nothing was written");
        for name in ["log.csv", "new.tmp"] {
            fs::write(at(name), "ha").unwrap();
            assert_eq!(look(&none, QUIET.1), None);
            assert_eq!(look(&none, QUIET.1), None, "{name} is no checkpoint");
        }
        fs::write(at("new"), "ha").unwrap();
        let open = BTreeSet::from([at("new").canonicalize().unwrap()]);
        assert_eq!(look(&open, QUIET.1), None);
        assert_eq!(look(&open, QUIET.1), None, "it is still open");
        fs::write(at("new"), "half and half").unwrap();
        assert_eq!(look(&none, QUIET.1), None);
        assert_eq!(look(&none, QUIET.1 / 2), None, "another file may follow");
        assert_eq!(look(&none, QUIET.1 / 2), Some("new".into()));
    }
}
