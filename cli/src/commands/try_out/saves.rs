//! When a training writes to its folder of checkpoints, and whether what it wrote stays there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Unchanged for so many seconds, a checkpoint is complete.
const QUIET: f64 = 0.7;
/// A training whose checkpoints follow each other without such a pause has saved by now.
const NO_PAUSE: f64 = 3.0;
/// So many new files in that time are checkpoints; fewer may be one that takes long.
const SEVERAL: usize = 2;
/// Files that are looked at.
const MOST_FILES: usize = 10_000;

/// Files, bytes, and the newest change.
type State = (usize, u64, Option<SystemTime>);

/// One file at a look.
#[derive(Debug, Clone, Copy, PartialEq)]
struct File {
    bytes: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

/// Files by their paths below the folder of checkpoints.
type Files = BTreeMap<String, File>;

/// Looks at the folder again and again.
#[derive(Debug, Default)]
pub(super) struct Saves {
    last: Option<State>,
    /// Since when it has changed without a pause, and what was there then.
    busy: Option<(f64, State)>,
    /// When the last change was seen, of a checkpoint that is not complete yet.
    changed: Option<f64>,
    /// What is there now, and what was there when a checkpoint was complete the last time.
    files: Files,
    complete: Files,
    /// Files that grew from one checkpoint to the next: logs, which say nothing of whether a checkpoint is there.
    logs: BTreeSet<String>,
}

/// What a look has shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Look {
    Quiet,
    Writing,
    Complete(Written),
}

/// A checkpoint that is complete, or logs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written {
    /// Since when.
    pub(super) at: f64,
    /// The files that were written since the one before, with their bytes.
    pub(super) files: Vec<(String, u64)>,
}

/// Whether the folder changes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pace {
    Quiet,
    Writing,
    /// Nothing has changed since this time.
    Complete(f64),
}

impl Saves {
    /// Looks `now`, in seconds.
    pub(super) fn look(&mut self, folders: &[PathBuf], now: f64) -> Look {
        let mut files = Files::new();
        folders.iter().for_each(|folder| add(folder, "", &mut files));
        self.take_files(files, now)
    }

    fn take_files(&mut self, files: Files, now: f64) -> Look {
        let bytes = files.values().map(|file| file.bytes).sum();
        let newest = files.values().filter_map(|file| file.modified).max();
        let state = (files.len(), bytes, newest);
        self.files = files;
        match self.take(state, now) {
            Pace::Quiet => Look::Quiet,
            Pace::Writing => Look::Writing,
            Pace::Complete(at) => Look::Complete(Written { at, files: self.written() }),
        }
    }

    /// Whether nothing is there that a training could start from.
    pub(super) fn is_empty(&self) -> bool {
        self.files.keys().all(|name| self.logs.contains(name))
    }

    /// What was written since this was asked before.
    fn written(&mut self) -> Vec<(String, u64)> {
        let mut written = Vec::new();
        for (name, file) in &self.files {
            let before = self.complete.get(name);
            if before == Some(file) {
                continue;
            }
            if before.is_some_and(|before| before.inode == file.inode && before.bytes < file.bytes) {
                self.logs.insert(name.clone());
            } else {
                self.logs.remove(name);
            }
            written.push((name.clone(), file.bytes));
        }
        self.complete.clone_from(&self.files);
        written
    }

    fn take(&mut self, state: State, now: f64) -> Pace {
        let before = self.last.replace(state);
        if before.is_some_and(|before| before != state) && state.0 > 0 {
            self.changed = Some(now);
            return self.without_pause(state, now);
        }
        match self.changed {
            Some(changed) if now - changed >= QUIET => {
                (self.changed, self.busy) = (None, None);
                Pace::Complete(changed)
            }
            Some(_) => Pace::Writing,
            None => Pace::Quiet,
        }
    }

    /// A change: a part of a checkpoint, or one of many that follow each other. Those are written again in place, or have
    /// new files, and one that takes long grows.
    fn without_pause(&mut self, state: State, now: f64) -> Pace {
        let (since, then) = *self.busy.get_or_insert((now, state));
        if now - since < NO_PAUSE {
            return Pace::Writing;
        }
        self.busy = Some((now, state));
        if state.1 <= then.1 || state.0 >= then.0 + SEVERAL { Pace::Complete(now) } else { Pace::Writing }
    }
}

/// Adds the files below `folder`, whose path below the folder of checkpoints is `shown`, with a slash.
fn add(folder: &Path, shown: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(found) = entry.metadata() else { continue };
        if files.len() >= MOST_FILES {
            return;
        }
        let name = format!("{shown}{}", entry.file_name().to_string_lossy());
        if found.is_dir() {
            add(&entry.path(), &format!("{name}/"), files);
        } else {
            files.insert(name, File { bytes: found.len(), modified: found.modified().ok(), inode: found.ino() });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_checkpoint_is_complete_when_nothing_changes() {
        let mut saves = Saves::default();
        let looks = [(0, 0.0), (0, 0.1), (5, 0.2), (9, 0.3), (9, 0.4), (9, 1.1), (9, 1.2)];
        let seen = looks.map(|(bytes, now)| saves.take((usize::from(bytes > 0), bytes, None), now));
        use Pace::{Complete, Quiet, Writing};
        assert_eq!(seen, [Quiet, Quiet, Writing, Writing, Writing, Complete(0.3), Quiet]);
    }

    #[test]
    fn checkpoints_without_a_pause_between_them_are_seen() {
        let complete = |bytes: &dyn Fn(u32) -> (usize, u64)| {
            let mut saves = Saves::default();
            let looks = (0..100u32).map(|look| {
                let (files, bytes) = bytes(look);
                let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(look.into());
                saves.take((files, bytes, Some(changed)), f64::from(look) / 10.0)
            });
            looks.filter(|look| matches!(look, Pace::Complete(_))).count()
        };
        assert_eq!(complete(&|_| (1, 500)), 3, "one file, written again and again");
        assert_eq!(complete(&|look| (look as usize, u64::from(look) * 500)), 3, "a file for each epoch");
        assert_eq!(complete(&|look| (1, u64::from(look) * 500)), 0, "one large file");
    }

    #[test]
    fn a_log_is_no_checkpoint_that_stays() {
        let mut saves = Saves::default();
        let mut now = 0.0;
        // Bytes and inodes of each file; looked at until nothing changes.
        let mut look = |named: &[(&str, u64, u64)]| {
            let mut written = Vec::new();
            for _ in 0..3 {
                now += 1.0;
                let file = |bytes, inode| File { bytes, modified: None, inode };
                let files = named.iter().map(|(name, bytes, inode)| ((*name).to_owned(), file(*bytes, *inode)));
                if let Look::Complete(complete) = saves.take_files(files.collect(), now) {
                    written = complete.files;
                }
            }
            (written.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), saves.is_empty())
        };
        assert_eq!(look(&[]), (vec![], true));
        assert_eq!(look(&[("b/w.h5", 9, 1), ("log.csv", 5, 2)]).0, ["b/w.h5", "log.csv"]);
        // One is written again under another name, and renamed; the other is appended to.
        assert_eq!(
            look(&[("b/w.h5", 12, 3), ("log.csv", 8, 2)]),
            (vec!["b/w.h5".to_owned(), "log.csv".to_owned()], false)
        );
        assert_eq!(look(&[("log.csv", 8, 2)]), (vec![], true), "the training has removed its checkpoint");
        assert_eq!(look(&[("b/w.h5", 9, 4), ("log.csv", 8, 2)]), (vec!["b/w.h5".to_owned()], false));
    }
}
