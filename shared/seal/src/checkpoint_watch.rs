//! Waits for the end of a training's next checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::OWN;
use crate::content::{has_content, has_format};
use crate::database::{is_beside_database, is_database};
use crate::disk::{Disk, Stamp};
use crate::files::walk_all;
use crate::groups::Groups;
use crate::logs::{is_log, may_be_log};
use crate::names::{has_unfinished_part, is_log_name, is_numbered, is_unfinished};
use crate::record::Record;
use crate::shape::shape;

/// A checkpoint is complete when none of its files is open for writing and nothing has changed for some time: an eighth
/// of the time that is left, within these bounds. Libraries write a checkpoint file by file, with some computation
/// between them.
const QUIET: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// Compares the checkpoint folder with its earlier contents. Logs do not count, because a training may write to them
/// all the time.
#[derive(Debug, Clone)]
pub struct CheckpointWatch {
    folder: PathBuf,
    /// The seal at the beginning, which says how files have changed before.
    seal: Record,
    first: BTreeMap<String, Stamp>,
    last: BTreeMap<String, Stamp>,
    /// The last time at which `last` was different.
    changed: Duration,
    /// Whether something was written since the beginning.
    wrote: bool,
}

impl CheckpointWatch {
    /// A watch on the checkpoints in `folder` of a workspace. All times count from one moment that the caller chooses.
    pub fn new(disk: &dyn Disk, folder: PathBuf, now: Duration) -> Self {
        let first = walk_all(disk, &folder).unwrap_or_default();
        // A seal that cannot be read does not say how files have changed.
        let seal = Record::read(disk, &folder.with_file_name(OWN), |_| ()).ok().flatten().unwrap_or_default();
        Self { folder, seal, last: first.clone(), first, changed: now, wrote: false }
    }

    /// The checkpoint that was completed since the beginning. `open` are the files that are open for writing; `until`
    /// is the end of the time that is left.
    pub fn look(
        &mut self,
        disk: &dyn Disk,
        open: &BTreeSet<PathBuf>,
        now: Duration,
        until: Duration,
    ) -> Option<String> {
        let files = walk_all(disk, &self.folder).unwrap_or_default();
        let folder = disk.canonical(&self.folder).unwrap_or_else(|_| self.folder.clone());
        let mut written = open.iter().filter_map(|path| path.strip_prefix(&folder).ok());
        let is_written = written.any(|path| !path.to_str().is_some_and(|path| self.is_log(disk, path)));
        let differs = |path: &String| files.get(path) != self.last.get(path) && !self.is_log(disk, path);
        let has_changed = files.keys().chain(self.last.keys()).any(differs);
        self.last = files;
        if has_changed || is_written {
            self.changed = now;
            self.wrote = true;
            return None;
        }
        let quiet = (until.saturating_sub(now) / 8).clamp(QUIET.0, QUIET.1);
        let is_quiet = self.wrote && now.saturating_sub(self.changed) >= quiet;
        (is_quiet && !self.has_removed(disk)).then(|| self.completed(disk)).flatten()
    }

    /// Whether a checkpoint is gone since the beginning and nothing of its kind is left. A folder with another number
    /// counts as of its kind. The training is then about to end, and may have nothing else to start from.
    fn has_removed(&self, disk: &dyn Disk) -> bool {
        let left: BTreeSet<String> = self.last.keys().flat_map(|path| with_folder(path)).map(shape).collect();
        let is_left = |path: &str| with_folder(path).any(|part| left.contains(&shape(part)));
        let is_state =
            |path: &str, stamp: &Stamp| stamp.bytes > 0 && !has_unfinished_part(path) && !self.is_log(disk, path);
        self.first.iter().any(|(path, stamp)| !is_left(path) && is_state(path, stamp))
    }

    /// The newest checkpoint of those that have changed. A text that is named like a log is one only if there is
    /// nothing else.
    fn completed(&self, disk: &dyn Disk) -> Option<String> {
        let is_new = |path: &str, stamp| self.first.get(path) != Some(stamp) && !is_unfinished(path);
        let changed = self.last.iter().filter(|(path, stamp)| is_new(path, *stamp) && !self.is_log(disk, path));
        let changed: Vec<_> = changed.map(|(path, stamp)| (path.as_str(), *stamp)).collect();
        let has_content = |path: &str, stamp: &Stamp| has_content(disk, &self.folder.join(path), path, stamp.bytes);
        let is_text = |(path, stamp): &(&str, Stamp)| is_log_name(path) && !has_content(path, stamp);
        if changed.iter().all(is_text) && self.last.iter().any(|(path, stamp)| has_content(path, stamp)) {
            return None;
        }
        let groups = Groups::of(self.last.iter().map(|(path, stamp)| (path.as_str(), *stamp)));
        groups.newest(changed.into_iter()).map(str::to_owned)
    }

    /// Whether a file is probably a log: it is named like one, neither its format nor its changes show a state, and it
    /// is not the next one of several. A database also counts as a log, because it is always open and recovers by
    /// itself.
    fn is_log(&self, disk: &dyn Disk, path: &str) -> bool {
        let change = self.seal.change(path);
        let is_next = || {
            let is_new = is_numbered(path) && !self.first.contains_key(path);
            is_new && self.first.keys().any(|other| shape(other) == shape(path))
        };
        let is_state = || is_next() || has_format(disk, &self.folder.join(path), path);
        let is_of_database =
            || is_database(disk, &self.folder.join(path)) || is_beside_database(disk, &self.folder, path);
        is_log(path, change) || (may_be_log(path, change) && !is_state()) || is_of_database()
    }
}

/// A path, and its folder if the folder's name has a number.
fn with_folder(path: &str) -> impl Iterator<Item = &str> {
    path.rsplit_once('/').map(|(folder, _)| folder).filter(|folder| shape(folder) != *folder).into_iter().chain([path])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    #![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
    use std::fs;

    use super::*;
    use crate::disk::MountedDisk;
    use crate::{CHECKPOINTS, Sealer};

    #[test]
    fn a_checkpoint_is_complete_when_it_is_closed_and_quiet() {
        let folder = spotsweep_needs::scratch();
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

    /// Keras's BackupAndRestore removes its files after `fit`. A training may remove an older one of several in favour
    /// of a newer one.
    #[test]
    fn a_training_that_has_removed_its_checkpoint_is_about_to_end() {
        for (before, gone, written, is_complete) in [
            ("backup/latest.h5", true, "model.keras", false),
            ("backup/latest.h5", false, "model.keras", true),
            ("run/backup/latest.h5", true, "run/model.keras", false),
            ("run/latest.h5", true, "run/model.keras", false),
            ("tmp-final/model.bin", true, "final/model.bin", true),
            ("epoch_3.pt", true, "epoch_4.pt", true),
            ("3/d/fdde9c", true, "4/d/a79b2e", true),
            ("train.log", true, "model.keras", true),
        ] {
            let folder = spotsweep_needs::scratch();
            let at = |name: &str| folder.path().join(name);
            for name in [before, written] {
                fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            }
            fs::write(at(before), "1").unwrap();
            let disk = MountedDisk::below(folder.path());
            let mut watch = CheckpointWatch::new(&disk, folder.path().to_owned(), Duration::ZERO);
            fs::write(at(written), "2").unwrap();
            if gone {
                fs::remove_file(at(before)).unwrap();
            }
            let mut look = |step: u32| watch.look(&disk, &BTreeSet::new(), QUIET.1 * step, QUIET.1 * 99);
            assert_eq!((look(1), look(2)), (None, is_complete.then(|| written.to_owned())), "{before}, {written}");
        }
    }

    /// A training writes to its logs all the time.
    #[test]
    fn a_checkpoint_is_complete_though_logs_are_being_written() {
        const MODEL: &str = "tree\nversion=v4\n";
        // Whether an earlier file exists before the watch, so that both are sealed, and the checkpoint.
        let cases = [
            (false, "model.txt", MODEL, true),
            (true, "weights.csv", "0.1 0.2", true),
            (false, "weights.csv", "0.1 0.2", false),
            (true, "gen_2.txt", "0.1", true),
            (false, "gen_2.txt", "0.1", false),
            (true, "output.log", "1\n2\n3\n", false),
        ];
        // Texts are no checkpoints if another file is one.
        let cases = cases.into_iter().flat_map(|case| [(None, case), (Some("other.pt"), case)]);
        for (other, (is_known, name, content, is_checkpoint)) in cases {
            let is_checkpoint = is_checkpoint && (other.is_none() || content == MODEL);
            let workspace = spotsweep_needs::scratch();
            let folder = workspace.path().join(CHECKPOINTS);
            fs::create_dir_all(&folder).unwrap();
            fs::create_dir_all(workspace.path().join(OWN)).unwrap();
            if let Some(other) = other {
                fs::write(folder.join(other), [0xff, 0]).unwrap();
            }
            let disk = MountedDisk::below(workspace.path());
            let (mut sealer, _) = Sealer::resume(&disk, workspace.path(), 1, true, |_| ()).unwrap();
            let logs = [
                "train.txt",
                "time_left.tsv",
                "catboost_training.json",
                "events.out.tfevents.1.host.1.0",
                "a.tfevents",
            ];
            let write_logs = |step: usize| {
                logs.iter().for_each(|log| fs::write(folder.join(log), "1\n".repeat(step)).unwrap());
            };
            for version in 1..3 {
                write_logs(version);
                let before =
                    if name == "output.log" { "1\n".repeat(version) } else { version.to_string().repeat(version) };
                if is_known {
                    fs::write(folder.join(name.replace("_2", "_1")), before).unwrap();
                }
                sealer.seal_resting(&disk, Duration::ZERO, i64::MAX, &BTreeSet::new).unwrap();
            }
            let open: BTreeSet<_> = logs.iter().map(|log| folder.join(log).canonicalize().unwrap()).collect();
            let mut watch = CheckpointWatch::new(&disk, folder.clone(), Duration::ZERO);
            let mut look = |step: u32| {
                write_logs(5 + step as usize);
                watch.look(&disk, &open, QUIET.1 * step, QUIET.1 * 99)
            };
            assert_eq!((look(1), look(2)), (None, None), "{name}: only logs were written");
            fs::write(folder.join(name), content).unwrap();
            let found = (look(3), look(4));
            assert_eq!(
                found,
                (None, is_checkpoint.then(|| name.to_owned())),
                "{name}, known: {is_known}, beside {other:?}"
            );
        }
    }
}
