//! Finds out when a training writes to its folder of checkpoints, and whether what it wrote stays there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File as OpenFile};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A checkpoint is complete when it has not changed for so many seconds.
const QUIET: f64 = 0.7;
/// If checkpoints follow each other without such a pause for so many seconds, the training has saved.
const NO_PAUSE: f64 = 3.0;
/// So many new files in that time are checkpoints. Fewer may be one that takes long.
const SEVERAL: usize = 2;
/// Most files that are looked at.
const MOST_FILES: usize = 10_000;
/// Bytes at the beginning and at the end of a file that show whether its next version begins with it.
const SAMPLE_BYTES: usize = 4096;

/// Number of files, their bytes, and the newest change.
type State = (usize, u64, Option<SystemTime>);

/// One file at one look.
#[derive(Debug, Clone, Copy, PartialEq)]
struct File {
    bytes: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

/// Files by their paths below the folder of checkpoints.
type Files = BTreeMap<String, File>;

/// The first and the last bytes of the beginning of a file. `None` if the file does not exist or is shorter.
type Sample = Option<(Vec<u8>, Vec<u8>)>;

/// Reads the sample of the first so many bytes of a file.
type ReadSample<'a> = &'a dyn Fn(&str, u64) -> Sample;

/// Looks at the folder repeatedly.
#[derive(Debug, Default)]
pub(super) struct Saves {
    last: Option<State>,
    /// Since when it has changed without a pause, and what was there then.
    busy: Option<(f64, State)>,
    /// When the last change was seen, of a checkpoint that is not complete yet.
    changed: Option<f64>,
    /// The files now, and those when a checkpoint was last complete.
    files: Files,
    complete: Files,
    /// Samples of the complete files.
    samples: BTreeMap<String, Sample>,
    /// Files that were appended to from one checkpoint to the next. They are logs, which do not show whether there is a
    /// checkpoint.
    logs: BTreeSet<String>,
    /// The other files that were complete, when there last were any.
    states: BTreeSet<String>,
}

/// Result of a look.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Look {
    Quiet,
    Writing,
    Complete(Written),
}

/// A complete checkpoint, or logs that are not recognized as such yet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written {
    /// Since when it is complete.
    pub(super) at: f64,
    /// The files that were written since the previous one, with their bytes.
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
    /// Looks at the time `now`, in seconds.
    pub(super) fn look(&mut self, folders: &[PathBuf], now: f64) -> Look {
        let mut files = Files::new();
        folders.iter().for_each(|folder| add(folder, "", &mut files));
        self.take_files(files, now, &|name, bytes| folders.iter().find_map(|folder| sample(&folder.join(name), bytes)))
    }

    fn take_files(&mut self, files: Files, now: f64, read: ReadSample<'_>) -> Look {
        let bytes = files.values().map(|file| file.bytes).sum();
        let newest = files.values().filter_map(|file| file.modified).max();
        let state = (files.len(), bytes, newest);
        self.files = files;
        match self.take(state, now) {
            Pace::Quiet => Look::Quiet,
            Pace::Writing => Look::Writing,
            Pace::Complete(at) => {
                let files = self.written(read);
                // A write to a log or the removal of an old checkpoint is no save.
                if files.is_empty() { Look::Quiet } else { Look::Complete(Written { at, files }) }
            }
        }
    }

    /// Whether everything from which a training could start was removed.
    pub(super) fn are_removed(&self) -> bool {
        !self.states.is_empty() && self.files.keys().all(|name| self.logs.contains(name))
    }

    /// What was written since the last call, except for logs.
    fn written(&mut self, read: ReadSample<'_>) -> Vec<(String, u64)> {
        let mut written = Vec::new();
        for (name, file) in &self.files {
            let before = self.complete.get(name);
            if before == Some(file) {
                continue;
            }
            let grew = before.filter(|before| before.inode == file.inode && (1..file.bytes).contains(&before.bytes));
            let goes_on = |before: &File| {
                let now = read(name, before.bytes);
                now.is_some() && self.samples.get(name) == Some(&now)
            };
            if grew.is_some_and(goes_on) {
                self.logs.insert(name.clone());
            } else {
                self.logs.remove(name);
                written.push((name.clone(), file.bytes));
            }
            self.samples.insert(name.clone(), read(name, file.bytes));
        }
        self.complete.clone_from(&self.files);
        self.samples.retain(|name, _| self.complete.contains_key(name));
        let states: BTreeSet<String> =
            self.complete.keys().filter(|name| !self.logs.contains(*name)).cloned().collect();
        if states.is_empty() {
            self.states.retain(|name| !self.logs.contains(name));
        } else {
            self.states = states;
        }
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

    /// Notes a change, which may be a part of a checkpoint, or one of many checkpoints that follow each other. Many
    /// either rewrite files or add new ones, and one that takes long grows.
    fn without_pause(&mut self, state: State, now: f64) -> Pace {
        let (since, then) = *self.busy.get_or_insert((now, state));
        if now - since < NO_PAUSE {
            return Pace::Writing;
        }
        self.busy = Some((now, state));
        if state.1 <= then.1 || state.0 >= then.0 + SEVERAL { Pace::Complete(now) } else { Pace::Writing }
    }
}

/// Adds the files below `folder`. Its path below the folder of checkpoints is `shown`, with a slash at its end.
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

/// The sample of the first so many `bytes` of the file at `path`.
fn sample(path: &Path, bytes: u64) -> Sample {
    let file = OpenFile::open(path).ok()?;
    let length = usize::try_from(bytes).unwrap_or(SAMPLE_BYTES).min(SAMPLE_BYTES);
    let read = |at: u64| {
        let mut buffer = vec![0; length];
        file.read_exact_at(&mut buffer, at).ok().map(|()| buffer)
    };
    Some((read(0)?, read(bytes.saturating_sub(length as u64))?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
        // Each file has an inode and a content. The folder is looked at until nothing changes.
        let mut look = |named: &[(&str, u64, &str)]| {
            let mut written = Vec::new();
            for _ in 0..3 {
                now += 1.0;
                let file = |inode, content: &str| File { bytes: content.len() as u64, modified: None, inode };
                let files = named.iter().map(|(name, inode, content)| ((*name).to_owned(), file(*inode, content)));
                let read = |name: &str, bytes: u64| {
                    let (_, _, content) = named.iter().find(|(named, _, _)| *named == name)?;
                    let start = content.as_bytes().get(..bytes as usize)?.to_vec();
                    Some((start.clone(), start))
                };
                if let Look::Complete(complete) = saves.take_files(files.collect(), now, &read) {
                    written = complete.files;
                }
            }
            (written.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), saves.are_removed())
        };
        let all = || ["b/w.h5", "log.csv", "model.txt"].map(str::to_owned).to_vec();
        assert_eq!(look(&[]), (vec![], false), "nothing was there");
        assert_eq!(look(&[("b/w.h5", 1, "111"), ("log.csv", 2, "a"), ("model.txt", 3, "1 1")]), (all(), false));
        // One file is renamed to its name, one is appended to, and one is rewritten in place, with more bytes than
        // before.
        let states = vec!["b/w.h5".to_owned(), "model.txt".to_owned()];
        assert_eq!(look(&[("b/w.h5", 4, "1111"), ("log.csv", 2, "ab"), ("model.txt", 3, "2 2 2")]), (states, false));
        assert_eq!(look(&[("log.csv", 2, "ab"), ("model.txt", 3, "2 2 2")]), (vec![], false), "one is left");
        assert_eq!(look(&[("log.csv", 2, "ab")]), (vec![], true), "the training has removed its checkpoints");
        assert_eq!(look(&[("b/w.h5", 5, "1"), ("log.csv", 2, "ab")]), (vec!["b/w.h5".to_owned()], false));
    }

    #[test]
    fn to_write_to_a_log_is_no_save() {
        let (mut saves, folder) = (Saves::default(), tempfile::tempdir().unwrap());
        let at = [folder.path().to_owned()];
        let mut count = 0;
        for second in 1..10 {
            let model: &[u8] = if second < 5 { b"1" } else { b"22" };
            if second == 1 || second == 5 {
                fs::write(folder.path().join("model.pt"), model).unwrap();
            }
            fs::write(folder.path().join("train.log"), "line\n".repeat(second)).unwrap();
            for look in 0..3 {
                let now = second as f64 * 3.0 + f64::from(look);
                count += u32::from(matches!(saves.look(&at, now), Look::Complete(_)));
            }
        }
        assert_eq!(count, 2, "one of them is seen with the log, before that is known to be one");
    }

    #[test]
    fn what_is_known_to_be_a_log_was_never_a_checkpoint_that_is_gone() {
        let mut saves = Saves::default();
        let folder = tempfile::tempdir().unwrap();
        let mut now = 0.0;
        saves.look(&[folder.path().to_owned()], now);
        let mut grow = |content: &str| {
            fs::write(folder.path().join("journal.log"), content).unwrap();
            for _ in 0..3 {
                now += 1.0;
                saves.look(&[folder.path().to_owned()], now);
            }
            (saves.logs.len(), saves.are_removed())
        };
        assert_eq!(grow("one\n"), (0, false));
        assert_eq!(grow("one\ntwo\n"), (1, false));
        assert_eq!(grow("another\none and two\n"), (0, false), "it is written again");
    }
}
