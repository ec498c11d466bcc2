//! Seals a workspace.
//!
//! While the command runs, the runner regularly writes out and seals files that no longer change. After the command has
//! stopped, it seals everything. The next attempt compares what it finds with the seal and quarantines incomplete
//! checkpoints, so that the training finds the checkpoint before.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use spotsweep_protocol::claim::Seal;

use crate::Say;
use crate::at_end::AtEnd;
use crate::content::{has_content, hash, is_whole, looks_torn};
use crate::disk::{Disk, Stamp, is_about_all, is_full};
use crate::files::walk;
use crate::kept::may_be_mixed;
use crate::logs::{Change, is_log};
use crate::names::{has_lost_all, is_log_name, is_numbered, is_pointer_name};
use crate::record::{Record, Sealed};

/// While the command runs, a file that is unchanged for this time counts as complete.
pub const QUIET: Duration = Duration::from_secs(5);

/// A file when the command has ended.
enum AtItsEnd {
    /// It is incomplete.
    CutOff,
    /// It may be complete. If it is `doubtful`, its format does not show that.
    Written { doubtful: bool },
}

/// Seals one workspace.
#[derive(Debug, Clone)]
pub struct Sealer {
    pub(crate) checkpoints: PathBuf,
    /// The runner's own folder on the workspace.
    pub(crate) own: PathBuf,
    /// Whether files must be written out to be safe.
    pub(crate) is_disk: bool,
    pub(crate) say: Say,
    pub(crate) record: Record,
    /// The files that lay there when this attempt began.
    pub(crate) first: BTreeMap<String, Stamp>,
    /// Whether this attempt began with a checkpoint of an interrupted attempt.
    pub(crate) resumed: bool,
    /// Whether room is set aside for the runner.
    pub(crate) has_reserve: bool,
    /// Whether a rollback was undone.
    pub(crate) took_back: bool,
    /// Files for which the log already has a line that they cannot be read.
    pub(crate) unread: BTreeSet<String>,
    /// The files of this attempt at the last look.
    pub(crate) seen: BTreeMap<String, Stamp>,
}

impl Sealer {
    /// Notes that the command is about to be started.
    ///
    /// # Errors
    /// If the workspace cannot be written.
    pub fn begin(&mut self, disk: &dyn Disk) -> io::Result<()> {
        self.record.trained = true;
        self.write_record(disk)?;
        self.reserve(disk);
        Ok(())
    }

    /// Writes the manifest. If the volume is full, the manifest before stays. One that says that nothing was written
    /// after it is removed, because it would be wrong.
    pub(crate) fn write_record(&self, disk: &dyn Disk) -> io::Result<()> {
        match self.record.write(disk, &self.own) {
            Err(error) if is_full(&error) => {
                (self.say)(&format!("the seal is not written: {error}; the one before stays"));
                Record::give_up_last(disk, &self.own)
            }
            written => written,
        }
    }

    /// A summary of what is sealed now.
    pub fn summary(&self) -> Option<Seal> {
        self.record.summary()
    }

    /// `None` also for a file that is incomplete by its format, unless it is known that it `is_whole`.
    pub(crate) fn seal_whole(
        &self,
        disk: &dyn Disk,
        path: &str,
        stamp: Stamp,
        is_whole: bool,
    ) -> io::Result<Option<Sealed>> {
        if !is_whole && looks_torn(disk, &self.checkpoints.join(path), stamp.bytes)? {
            return Ok(None);
        }
        let doubtful = self.is_left_over(disk, path, stamp)?;
        Ok(self.seal_one(disk, path, stamp)?.map(|sealed| Sealed { doubtful, ..sealed }))
    }

    /// Leaves out a file that cannot be read now, but not all others: a training can make any of its files unreadable.
    /// It is logged once for each file.
    pub(crate) fn or_leave_out<T>(&mut self, path: &str, sealed: io::Result<Option<T>>) -> io::Result<Option<T>> {
        sealed.or_else(|error| {
            if is_about_all(&error) {
                return Err(error);
            }
            if self.unread.insert(path.to_owned()) {
                (self.say)(&format!("checkpoint file {path} cannot be read, and is not sealed: {error}"));
            }
            Ok(None)
        })
    }

    /// `None` for a file that has changed or gone in the meantime, and for one that is longer than its volume. Such a
    /// file has hardly any content and would take hours to read.
    pub(crate) fn seal_one(&self, disk: &dyn Disk, path: &str, stamp: Stamp) -> io::Result<Option<Sealed>> {
        if stamp.bytes > disk.total_bytes(&self.checkpoints)? {
            return Ok(None);
        }
        let file = self.checkpoints.join(path);
        let read = || {
            if self.is_disk {
                disk.sync(&file)?;
            }
            let sha256 = hash(disk, &file, stamp.bytes)?;
            let change = if is_log_name(path) { self.change(disk, path, stamp)? } else { self.mixing(path, stamp) };
            let is_part = self.record.is_part(path);
            let sealed = Sealed { stamp, sha256, doubtful: false, change, is_part };
            Ok((disk.stamp(&file)? == stamp).then_some(sealed))
        };
        read().or_else(|error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Ok(None),
            _ => Err(error),
        })
    }

    /// What is known of the versions of a file that is no log. A file that was replaced and is now written in place may
    /// have parts of two versions again.
    fn mixing(&self, path: &str, stamp: Stamp) -> Option<Change> {
        let before = self.record.files.get(path)?;
        before.change.filter(|change| *change != Change::Replaced || before.stamp.inode != stamp.inode)
    }

    /// How a file has changed since its last seal. Each attempt may begin a log again, and that does not make it a
    /// state: only what this attempt has written counts.
    fn change(&self, disk: &dyn Disk, path: &str, stamp: Stamp) -> io::Result<Option<Change>> {
        let Some(before) = self.record.files.get(path) else { return Ok(None) };
        let is_older = |first: &Stamp| before.stamp.modified_ns <= first.modified_ns;
        let is_of_another = before.stamp.bytes == 0 || self.first.get(path).is_some_and(is_older);
        if is_of_another || before.change == Some(Change::Rewritten) {
            return Ok(before.change);
        }
        let bytes = before.stamp.bytes;
        let has_grown = stamp.bytes >= bytes && hash(disk, &self.checkpoints.join(path), bytes)? == before.sha256;
        match has_grown && stamp.bytes == bytes {
            true => Ok(before.change),
            false => Ok(Some(if has_grown { Change::Appended } else { Change::Rewritten })),
        }
    }

    /// Seals all files, newest first, when the command has stopped and everything is written out. Files that are not
    /// read while there `is_time` are left out, and the seal is not final. A hash proves that bytes are unchanged, not
    /// that all were written. So a file that the command was writing `at_end` is left out if its format shows that it
    /// is cut off. If its format does not say, it is sealed as doubtful.
    ///
    /// # Errors
    /// If the workspace cannot be read or written.
    pub fn finish(&mut self, disk: &dyn Disk, at_end: &AtEnd, is_time: &dyn Fn() -> bool) -> io::Result<()> {
        let found = walk(disk, &self.checkpoints)?;
        let before = std::mem::replace(&mut self.seen, found.clone());
        let mut newest_first: Vec<_> = found.clone().into_iter().collect();
        newest_first.sort_by_key(|(_, stamp)| std::cmp::Reverse(stamp.modified_ns));
        let (mut files, mut cut) = (BTreeMap::new(), BTreeMap::new());
        let mut last = true;
        for (path, stamp) in newest_first {
            self.note_replaced(&path, stamp, before.get(&path));
            let judged = self.at_end(disk, &path, stamp, at_end).map(Some);
            let Some(state) = self.or_leave_out(&path, judged)? else {
                last = false;
                continue;
            };
            let AtItsEnd::Written { doubtful } = state else {
                (self.say)(&format!(
                    "checkpoint file {path} was being written when the command ended, and is incomplete"
                ));
                cut.insert(path, stamp);
                continue;
            };
            let known = self.record.files.get(&path).filter(|sealed| sealed.stamp == stamp);
            let sealed = match known {
                Some(known) => Some(known.clone()),
                None if !is_time() => None,
                None => {
                    let sealed = self.seal_one(disk, &path, stamp);
                    self.or_leave_out(&path, sealed)?
                }
            };
            last &= sealed.is_some();
            files.extend(sealed.map(|sealed| (path, Sealed { doubtful, ..sealed })));
        }
        let of_cut_save = self.complete_last(at_end, &found, &mut files);
        cut.extend(of_cut_save.into_iter().map(|path| (path.clone(), found[&path])));
        if !last {
            (self.say)("some checkpoints could not be sealed in time: the next attempt judges them by themselves");
        }
        self.record = Record { last, written_out: true, files, cut, ..self.record.clone() };
        self.record.write(disk, &self.own)
    }

    /// The state in which the end of the command has left a file.
    fn at_end(&self, disk: &dyn Disk, path: &str, stamp: Stamp, at_end: &AtEnd) -> io::Result<AtItsEnd> {
        let file = self.checkpoints.join(path);
        let was_writing = at_end.was_writing(disk, &file, stamp);
        let doubtful = was_writing && !is_whole(disk, &file)?;
        let is_cut_off = || -> io::Result<bool> {
            Ok(self.is_emptied(path, stamp.bytes)
                || (was_writing && self.may_be_mixed(disk, path, stamp)?)
                || (doubtful && is_cut_off(disk, &file, path, stamp)?))
        };
        if !is_log(path, self.record.change(path)) && is_cut_off()? {
            return Ok(AtItsEnd::CutOff);
        }
        let known = self.record.files.get(path).filter(|sealed| sealed.stamp == stamp);
        let doubtful = doubtful
            || match known {
                Some(known) => known.doubtful && (is_numbered(path) || self.took_back),
                None => self.is_left_over(disk, path, stamp)?,
            };
        Ok(AtItsEnd::Written { doubtful })
    }

    /// Whether an unsealed numbered file is unchanged since this attempt began, and its format does not show that it is
    /// complete. Its writer was lost, and the command may have started from an older one. If the command has failed on
    /// a checkpoint, this one may lack files, whatever their formats show.
    fn is_left_over(&self, disk: &dyn Disk, path: &str, stamp: Stamp) -> io::Result<bool> {
        let is_part = self.record.files.get(path).is_some_and(|sealed| sealed.is_part);
        let is_old = is_numbered(path) && !is_part && self.first.get(path) == Some(&stamp);
        Ok(is_old && (!self.record.failures.is_empty() || !is_whole(disk, &self.checkpoints.join(path))?))
    }

    /// Whether a save may have written over an earlier version of a file. If the save was cut off, parts of both may be
    /// there.
    fn may_be_mixed(&self, disk: &dyn Disk, path: &str, stamp: Stamp) -> io::Result<bool> {
        let has_content = has_content(disk, &self.checkpoints.join(path), path, stamp.bytes);
        Ok(has_content && may_be_mixed(disk, &self.checkpoints, path, (&self.record, is_numbered(path)))?)
    }

    /// Notes that everything is written out after the end of the command, although not all of it is sealed. Notes nothing
    /// if the command may have been cut off in the middle of a write `at_end`.
    ///
    /// # Errors
    /// If the workspace cannot be written.
    pub fn close(&mut self, disk: &dyn Disk, at_end: &AtEnd) -> io::Result<()> {
        self.record.written_out = !at_end.is_cut_off;
        self.record.write(disk, &self.own)
    }

    /// Makes a last seal an ordinary one, because a process may still write.
    ///
    /// # Errors
    /// If the workspace cannot be written.
    pub fn reopen(&mut self, disk: &dyn Disk) -> io::Result<()> {
        (self.record.last, self.record.written_out) = (false, false);
        self.record.write(disk, &self.own)
    }
}

/// Whether a file that was being written does not have its end. A pointer's text does not show its end.
fn is_cut_off(disk: &dyn Disk, file: &Path, path: &str, stamp: Stamp) -> io::Result<bool> {
    Ok(is_pointer_name(path) || has_lost_all(path, stamp.bytes) || looks_torn(disk, file, stamp.bytes)?)
}
