//! Undoes a rollback that does not help: puts back what it has quarantined and replaced.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use crate::aside::{REPLACED, ROLLBACK, TORN, places, put_aside, unused};
use crate::database::with_beside;
use crate::disk::{Disk, Stamp};
use crate::failed::{BadEnd, Failed, Replaced};
use crate::groups::Group;
use crate::pointers::replace;
use crate::record::Sealed;
use crate::sealer::Sealer;

impl Sealer {
    /// A rollback that has moved nothing yet. It gets a new folder, because a retry counts its attempts from 1.
    pub(crate) fn nothing_moved(&self, disk: &dyn Disk) -> io::Result<Failed> {
        let folder = unused(disk, &self.own, &format!("{}{ROLLBACK}", self.record.attempt))?;
        Ok(Failed { folder, ..Failed::default() })
    }

    /// The quarantine folder of a rollback.
    pub(crate) fn aside(&self, failed: &Failed) -> PathBuf {
        self.own.join(TORN).join(&failed.folder)
    }

    /// Quarantines a file or a folder, if it exists.
    pub(crate) fn move_aside(&self, disk: &dyn Disk, failed: &mut Failed, place: &str) -> io::Result<()> {
        for place in with_beside(disk, &self.checkpoints, place) {
            if put_aside(disk, &self.checkpoints, &self.aside(failed), &place)? {
                failed.moved.push(place);
            }
        }
        Ok(())
    }

    /// Quarantines all files of a checkpoint except its logs.
    pub(crate) fn move_group_aside(&self, disk: &dyn Disk, failed: &mut Failed, group: &Group) -> io::Result<()> {
        places(group, &self.record).try_for_each(|place| self.move_aside(disk, failed, place))
    }

    /// Whether the training has ended as it did before the last rollback, although it began at its beginning or both
    /// checkpoints are complete. If two checkpoints lack files, each may be the cause.
    pub(crate) fn has_not_helped(&self, end: &BadEnd, is_beginning: bool, is_complete: bool) -> bool {
        let is_alike = |failed: &Failed| failed.end == *end && (is_beginning || (is_complete && failed.is_proven));
        end.error.is_some() && self.record.failures.last().is_some_and(is_alike)
    }

    /// Undoes the rollbacks for such an end. The trial then ends and may be continued from its newest checkpoint.
    pub(crate) fn take_back(&mut self, disk: &dyn Disk, end: &BadEnd, is_beginning: bool) -> io::Result<()> {
        let mut may_lack_files = is_beginning;
        while let Some(failed) = self.record.failures.last().cloned() {
            if failed.end != *end || !(failed.is_proven || may_lack_files) {
                break;
            }
            self.took_back = true;
            self.put_back(disk, &failed)?;
            self.record.failures.pop();
            may_lack_files = false;
            (self.say)(&format!("the command ended in the same way without {}: the checkpoint is back", failed.name));
        }
        self.write_record(disk)
    }

    /// Puts back what was moved and replaced. What lies there now is quarantined.
    pub(crate) fn put_back(&mut self, disk: &dyn Disk, failed: &Failed) -> io::Result<()> {
        let aside = self.aside(failed);
        let replaced = aside.with_file_name(format!("{}{REPLACED}", failed.folder));
        let there = disk.files(&aside)?;
        // A file that is already back stays, because an instance may be lost between two moves.
        let is_there = |place: &&String| there.keys().any(|path| is_below(path, place));
        let pointers = failed.replaced.iter().filter_map(|pointer| match pointer {
            Replaced::Moved(path) => Some(path),
            Replaced::Link(..) | Replaced::Text(..) => None,
        });
        for place in failed.moved.iter().chain(pointers).filter(is_there) {
            for place in with_beside(disk, &self.checkpoints, place) {
                put_aside(disk, &self.checkpoints, &replaced, &place)?;
            }
            disk.rename(&aside.join(place), &self.checkpoints.join(place))?;
        }
        for pointer in &failed.replaced {
            let put = match pointer {
                Replaced::Link(path, target) => disk.symbolic_link(&self.checkpoints.join(path), target),
                Replaced::Text(path, text) => replace(disk, &self.checkpoints.join(path), text),
                Replaced::Moved(_) => Ok(()),
            };
            // Without the pointer, the files are still back.
            put.unwrap_or_else(|error| (self.say)(&format!("{pointer:?} is not back: {error}")));
        }
        if failed.is_proven { Ok(()) } else { self.doubt(disk, &failed.moved) }
    }

    /// Removes rollbacks that a lost instance has not written out: the manifest says that a file was moved, but it is
    /// still in its place.
    pub(crate) fn forget_undone(&mut self, disk: &dyn Disk, files: &BTreeMap<String, Stamp>) {
        let is_there = |path: &str, place: &str, at: i64| {
            is_below(path, place) && files.get(path).is_some_and(|stamp| stamp.modified_ns == at)
        };
        let is_undone = |failed: &Failed| {
            let aside = self.aside(failed);
            failed.modified.iter().any(|(path, at)| {
                let mut moved = failed.moved.iter();
                moved.any(|place| is_there(path, place, *at)) && disk.stamp(&aside.join(path)).is_err()
            })
        };
        let done = self.record.failures.iter().filter(|failed| !is_undone(failed)).cloned().collect();
        self.record.failures = done;
    }

    /// Seals the files at these places as doubtful.
    fn doubt(&mut self, disk: &dyn Disk, places: &[String]) -> io::Result<()> {
        let files = disk.files(&self.checkpoints)?;
        for (path, stamp) in files.iter().filter(|(path, _)| places.iter().any(|place| is_below(path, place))) {
            let sealed = self.seal_one(disk, path, *stamp)?;
            self.record.files.extend(sealed.map(|sealed| (path.clone(), Sealed { doubtful: true, ..sealed })));
        }
        Ok(())
    }
}

/// Whether a path is `place` or lies below it.
fn is_below(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
