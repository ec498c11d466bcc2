//! Waits for the end of a training's next checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::OWN;
use crate::content::hash;
use crate::disk::{Disk, Stamp};
use crate::files::newest;
use crate::names::{is_numbered, is_unfinished};
use crate::record::Record;
use crate::shape::shape;
use crate::uses::Use;

/// A checkpoint is complete when none of its files is open for writing, and nothing has changed for an eighth of the
/// time that is left, within these bounds: libraries write a checkpoint file by file, with some computing between them.
const QUIET: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// Compares what lies in the folder of checkpoints with what lay there. Logs do not count: a training may write to them
/// all the time.
#[derive(Debug, Clone)]
pub struct CheckpointWatch {
    folder: PathBuf,
    /// The newest seal: what files are for.
    seal: Record,
    first: BTreeMap<String, Stamp>,
    last: BTreeMap<String, Stamp>,
    /// When `last` was different the last time.
    changed: Duration,
    /// Whether something was written since the beginning.
    wrote: bool,
}

impl CheckpointWatch {
    /// A watch on the checkpoints in `folder` of a workspace. All times count from one moment, which the caller chooses.
    pub fn new(disk: &dyn Disk, folder: PathBuf, now: Duration) -> Self {
        let first = disk.files(&folder).unwrap_or_default();
        // One that cannot be read says nothing: then a log counts as a checkpoint.
        let seal = Record::read(disk, &folder.with_file_name(OWN), |_| ()).ok().flatten().unwrap_or_default();
        Self { folder, seal, last: first.clone(), first, changed: now, wrote: false }
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
        let is_log = |path: &str| files.get(path).is_some_and(|stamp| self.use_of(disk, path, *stamp) == Use::Log);
        let is_written = open
            .iter()
            .filter_map(|path| path.strip_prefix(&folder).ok())
            .any(|path| !path.to_str().is_some_and(is_log));
        let differs = |(path, stamp): (&String, &Stamp)| self.last.get(path) != Some(stamp) && !is_log(path);
        let is_gone = |path: &String| !files.contains_key(path);
        if is_written || files.iter().any(differs) || self.last.keys().any(is_gone) {
            self.changed = now;
            self.wrote = true;
            self.last = files;
            return None;
        }
        let quiet = (until.saturating_sub(now) / 8).clamp(QUIET.0, QUIET.1);
        let is_quiet = self.wrote && now.saturating_sub(self.changed) >= quiet;
        is_quiet.then(|| self.completed(disk)).flatten()
    }

    fn use_of(&self, disk: &dyn Disk, path: &str, stamp: Stamp) -> Use {
        self.seal.uses.of(disk, &self.folder, path, stamp.bytes)
    }

    /// The newest checkpoint of those that have changed: with a state; of text only where nothing has a state, and the
    /// text is one that was there before.
    fn completed(&self, disk: &dyn Disk) -> Option<String> {
        let use_of = |(path, stamp): &(&String, &Stamp)| self.use_of(disk, path, **stamp);
        let is_new = |(path, stamp): &(&String, &Stamp)| self.first.get(*path) != Some(*stamp) && !is_unfinished(path);
        let changed: Vec<_> = self.last.iter().filter(|file| is_new(file) && use_of(file) != Use::Log).collect();
        let has_state = changed.iter().any(|file| use_of(file) == Use::State);
        if !has_state && self.last.iter().any(|file| use_of(&file) == Use::State) {
            return None;
        }
        let complete = changed.into_iter().filter(|(path, _)| has_state || self.is_known_text(disk, path));
        newest(complete.map(|(path, stamp)| (path.as_str(), *stamp)))
    }

    /// Whether a text that has changed is one of a kind that was there before, and was not appended to.
    fn is_known_text(&self, disk: &dyn Disk, path: &str) -> bool {
        if is_numbered(path) {
            return self.first.keys().any(|other| shape(other) == shape(path));
        }
        let Some(before) = self.seal.files.get(path).filter(|sealed| self.first.get(path) == Some(&sealed.stamp))
        else {
            return false;
        };
        hash(disk, &self.folder.join(path), before.stamp.bytes).is_ok_and(|start| start != before.sha256)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    #![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
    use std::fs::{self, OpenOptions};
    use std::io::Write as _;

    use super::*;
    use crate::disk::MountedDisk;
    use crate::{CHECKPOINTS, Sealer};

    /// A folder of checkpoints on a workspace, and a watch on it.
    struct Bench {
        workspace: tempfile::TempDir,
        watch: Option<CheckpointWatch>,
        now: Duration,
    }

    impl Bench {
        fn new() -> Self {
            let workspace = tempfile::tempdir().unwrap();
            fs::create_dir_all(workspace.path().join(CHECKPOINTS)).unwrap();
            fs::create_dir_all(workspace.path().join(OWN)).unwrap();
            Self { workspace, watch: None, now: Duration::ZERO }
        }

        fn disk(&self) -> MountedDisk {
            MountedDisk::below(self.workspace.path())
        }

        fn at(&self, name: &str) -> PathBuf {
            self.workspace.path().join(CHECKPOINTS).join(name)
        }

        fn write(&self, name: &str, content: &[u8]) {
            fs::write(self.at(name), content).unwrap();
        }

        fn append(&self, name: &str, content: &str) {
            let mut file = OpenOptions::new().create(true).append(true).open(self.at(name)).unwrap();
            file.write_all(content.as_bytes()).unwrap();
        }

        /// What the runner seals while the training runs.
        fn seal(&self, sealer: &mut Sealer) {
            let now = i64::MAX / 2;
            sealer.seal_resting(&self.disk(), Duration::ZERO, now, &BTreeSet::new).unwrap();
        }

        fn sealer(&self) -> Sealer {
            Sealer::resume(&self.disk(), self.workspace.path(), 1, true, |_| ()).unwrap().0
        }

        /// Looks after a while.
        fn look(&mut self, open: &[&str], wait: Duration) -> Option<String> {
            let open = open.iter().map(|name| self.at(name).canonicalize().unwrap()).collect();
            let (disk, folder) = (self.disk(), self.workspace.path().join(CHECKPOINTS));
            let watch = self.watch.get_or_insert_with(|| CheckpointWatch::new(&disk, folder, self.now));
            self.now += wait;
            watch.look(&disk, &open, self.now, self.now + QUIET.1 * 8)
        }
    }

    const STATE: &[u8] = &[0x80, 4, b'N', b'.'];

    #[test]
    fn a_checkpoint_is_complete_when_it_is_closed_and_quiet() {
        let mut bench = Bench::new();
        bench.write("old", STATE);
        assert_eq!(bench.look(&[], QUIET.1 * 10), None, "nothing was written");
        for name in ["notes", "new.tmp"] {
            bench.write(name, b"ha");
            assert_eq!(bench.look(&[], QUIET.1), None);
            assert_eq!(bench.look(&[], QUIET.1), None, "{name} is no checkpoint");
        }
        bench.write("new", STATE);
        assert_eq!(bench.look(&["new"], QUIET.1), None);
        assert_eq!(bench.look(&["new"], QUIET.1), None, "it is still open");
        bench.write("new", &[STATE, STATE].concat());
        assert_eq!(bench.look(&[], QUIET.1), None);
        assert_eq!(bench.look(&[], QUIET.1 / 2), None, "another file may follow");
        assert_eq!(bench.look(&[], QUIET.1 / 2), Some("new".into()));
    }

    /// Whatever they are called: a folder to which a training writes all the time is complete between two checkpoints.
    #[test]
    fn logs_are_not_waited_for() {
        let logs = ["log.txt", "time_left.tsv", "test_error", "events.out.tfevents.1.host.1.0"];
        let mut bench = Bench::new();
        let mut sealer = bench.sealer();
        bench.write("model.txt", b"tree\nversion=v4\n");
        for step in 0..3 {
            logs.iter().for_each(|log| bench.append(log, &format!("{step}\t0.5\n")));
            bench.seal(&mut sealer);
        }
        let mut look = |wait| {
            logs.iter().for_each(|log| bench.append(log, "4\t0.5\n"));
            bench.look(&logs, wait)
        };
        assert_eq!(look(QUIET.1), None);
        assert_eq!(look(QUIET.1), None, "only logs were written");
        bench.write("model.txt", b"tree\nversion=v4\nand more");
        let mut look = |wait| {
            logs.iter().for_each(|log| bench.append(log, "4\t0.5\n"));
            bench.look(&logs, wait)
        };
        assert_eq!(look(QUIET.1), None);
        assert_eq!(look(QUIET.1), Some("model.txt".into()));
    }

    /// Where a training has nothing but texts, one that it rewrites is its checkpoint.
    #[test]
    fn a_text_is_a_checkpoint_where_nothing_has_a_state() {
        let mut bench = Bench::new();
        let mut sealer = bench.sealer();
        bench.write("state.json", b"{\"epoch\": 1}");
        bench.append("log", "1\n");
        bench.seal(&mut sealer);
        assert_eq!(bench.look(&[], QUIET.1), None);
        bench.append("log", "2\n");
        assert_eq!(bench.look(&[], QUIET.1), None);
        assert_eq!(bench.look(&[], QUIET.1), None, "one that it appends to is none");
        bench.write("state.json", b"{\"epoch\": 2}");
        assert_eq!(bench.look(&[], QUIET.1), None);
        assert_eq!(bench.look(&[], QUIET.1), Some("state.json".into()));
    }
}
