//! Undoes a rollback that does not help: puts back what it has quarantined and replaced.

use std::io;
use std::path::{Path, PathBuf};

use crate::Say;
use crate::aside::{REPLACED, ROLLBACK, TORN, places, put_aside, unused};
use crate::database::with_beside;
use crate::disk::Disk;
use crate::failed::{BadEnd, Failed, Replaced};
use crate::groups::Group;
use crate::pointers::replace;
use crate::record::{Record, Sealed};
use crate::sealer::Sealer;

impl Sealer {
    /// A rollback that has moved nothing yet. It gets a new folder, because a retry counts its attempts from 1.
    pub(crate) fn nothing_moved(&self, disk: &dyn Disk) -> io::Result<Failed> {
        let folder = unused(disk, &self.own, &format!("{}{ROLLBACK}", self.record.attempt))?;
        Ok(Failed { folder, ..Failed::default() })
    }

    /// The quarantine folder of a rollback.
    pub(crate) fn aside(&self, failed: &Failed) -> PathBuf {
        aside(&self.own, failed)
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

    /// Puts back what was moved and replaced. What lies there now is quarantined. All of it is on the volume when this
    /// returns, because the manifest is to say so.
    pub(crate) fn put_back(&mut self, disk: &dyn Disk, failed: &Failed) -> io::Result<()> {
        let there = disk.files(&self.aside(failed))?;
        // A file that is already back stays, because an instance may be lost between two moves.
        let is_there = |place: &&String| there.keys().any(|path| is_below(path, place));
        let pointers = failed.replaced.iter().filter_map(|pointer| match pointer {
            Replaced::Moved(path) => Some(path),
            Replaced::Link(..) | Replaced::Text(..) => None,
        });
        let places = failed.moved.iter().chain(pointers).filter(is_there);
        put_back(disk, [&self.checkpoints, &self.own], failed, places, self.say)?;
        if self.is_disk {
            disk.sync_all(&self.checkpoints)?;
        }
        if failed.is_proven { Ok(()) } else { self.doubt(disk, &failed.moved) }
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

/// Undoes the rollbacks that a lost instance has written out only in part, or of which it has undone only a part. Some of
/// their files are in their places again, and the others are in quarantine.
pub(crate) fn undo_halves(disk: &dyn Disk, at: [&Path; 2], record: &mut Record, say: Say) -> io::Result<()> {
    let [checkpoints, own] = at;
    let is_half = |failed: &Failed| {
        let is_in_place = |path: &str, at: i64| {
            let stamp = disk.stamp(&checkpoints.join(path));
            stamp.is_ok_and(|stamp| stamp.modified_ns == at) && disk.stamp(&aside(own, failed).join(path)).is_err()
        };
        let has_moved = |path: &str| failed.moved.iter().any(|place| is_below(path, place));
        failed.modified.iter().any(|(path, at)| has_moved(path) && is_in_place(path, *at))
    };
    let (halves, done) = record.failures.drain(..).partition::<Vec<_>, _>(is_half);
    record.failures = done;
    for failed in halves.iter().rev() {
        // The rest of a folder of which some files are back, too.
        let there = disk.files(&aside(own, failed))?;
        put_back(disk, at, failed, there.keys(), say)?;
    }
    Ok(())
}

/// The quarantine folder of a rollback.
fn aside(own: &Path, failed: &Failed) -> PathBuf {
    own.join(TORN).join(&failed.folder)
}

/// Moves these `places` back, and restores the pointers.
fn put_back<'a>(
    disk: &dyn Disk,
    [checkpoints, own]: [&Path; 2],
    failed: &Failed,
    places: impl Iterator<Item = &'a String>,
    say: Say,
) -> io::Result<()> {
    let aside = aside(own, failed);
    let replaced = aside.with_file_name(format!("{}{REPLACED}", failed.folder));
    for place in places {
        for place in with_beside(disk, checkpoints, place) {
            put_aside(disk, checkpoints, &replaced, &place)?;
        }
        disk.rename(&aside.join(place), &checkpoints.join(place))?;
    }
    for pointer in &failed.replaced {
        let put = match pointer {
            Replaced::Link(path, target) => disk.symbolic_link(&checkpoints.join(path), target),
            Replaced::Text(path, text) => replace(disk, &checkpoints.join(path), text),
            Replaced::Moved(_) => Ok(()),
        };
        // Without the pointer, the files are still back.
        put.unwrap_or_else(|error| say(&format!("{pointer:?} is not back: {error}")));
    }
    Ok(())
}

/// Whether a path is `place` or lies below it.
fn is_below(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
