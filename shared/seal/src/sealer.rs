//! Seals a workspace.
//!
//! While the command runs, the runner regularly writes out and seals files that no longer change. After the command has
//! stopped, it seals everything. The next attempt compares what it finds with the seal and quarantines incomplete
//! checkpoints, so that the training finds the checkpoint before.

use std::cell::{LazyCell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use spotsweep_protocol::claim::Seal;

use crate::Say;
use crate::at_end::AtEnd;
use crate::content::{has_content, hash, is_small_text, is_whole, looks_torn};
use crate::disk::{Disk, Stamp, is_about_all, is_full};
use crate::files::walk;
use crate::groups::Groups;
use crate::kept::{constant_parts, is_mixed};
use crate::logs::{Change, is_log, may_be_log};
use crate::names::{has_lost_all, is_log_name, is_numbered, is_pointer_name};
use crate::record::{Part, Record, Sealed};

/// While the command runs, a file that is unchanged for this time counts as complete.
pub const QUIET: Duration = Duration::from_secs(5);

/// A file that was modified within this time may change again and have the same stamp: times are no finer than the
/// kernel's tick (a hundredth of a second at most: <https://man7.org/linux/man-pages/man7/time.7.html>).
const TICK: Duration = Duration::from_millis(20);

/// A file that never rests is sealed after this time without a seal if its format shows that it is complete.
const LONG: Duration = Duration::from_secs(20);

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
    /// The inodes that this attempt's files had at the last look.
    pub(crate) inodes: BTreeMap<String, u64>,
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

    /// Seals the files that are closed, not incomplete by their format, and unchanged for `quiet` at `now_ns`, in
    /// nanoseconds since 1970. Returns whether the seal has changed. A file that is rewritten again and again may never
    /// rest for `quiet`. Its first version is sealed if its format shows that it is complete, and another one if the
    /// last seal of it is old. `open` finds the files that are open for writing. No file of a checkpoint is sealed while
    /// another one is open: the command may be writing it again after a save that it has abandoned.
    ///
    /// # Errors
    /// If the workspace cannot be read or written.
    pub fn seal_resting(
        &mut self,
        disk: &dyn Disk,
        quiet: Duration,
        now_ns: i64,
        open: &dyn Fn() -> BTreeSet<PathBuf>,
    ) -> io::Result<bool> {
        self.reserve(disk);
        // Most rounds find nothing new and need not look at the processes.
        let at_rest = LazyCell::new(|| AtEnd::new(open(), now_ns, false));
        let (mut changed, mut has_replaced) = (BTreeMap::new(), false);
        let found = walk(disk, &self.checkpoints)?;
        let saving = OnceCell::new();
        for (path, &stamp) in &found {
            has_replaced |= self.note_replaced(path, stamp);
            let is_closed = || {
                let saving = saving.get_or_init(|| self.saving(disk, &found, &at_rest));
                !at_rest.was_writing(disk, &self.checkpoints.join(path), stamp) && !saving.contains(path)
            };
            let before = self.record.files.get(path);
            let is_resting = rests(stamp, quiet.max(TICK), now_ns);
            let may_be_sealed = || {
                let is_early = || {
                    is_due(before, now_ns)
                        && rests(stamp, TICK, now_ns)
                        && self.is_complete(disk, path)
                        && !self.counts_another(disk, &found, path)
                };
                is_closed() && !self.is_emptied(path, stamp.bytes) && (is_resting || is_early())
            };
            match before.filter(|sealed| sealed.stamp == stamp) {
                // The command has gone on from it. If there are several with numbers, it may have gone on from another.
                Some(known) if known.doubtful && !is_numbered(path) => {
                    changed.insert(path.clone(), Sealed { doubtful: false, ..known.clone() });
                }
                None if may_be_sealed() => {
                    let sealed = self.seal_whole(disk, path, stamp, !is_resting);
                    changed.extend(self.or_leave_out(path, sealed)?.map(|sealed| (path.clone(), sealed)));
                }
                Some(_) | None => {}
            }
        }
        let is_gone = |path: &String| !found.contains_key(path);
        if changed.is_empty() && !has_replaced && !self.record.files.keys().any(is_gone) {
            return Ok(false);
        }
        // The earlier state of a file stays in the manifest until its new state is known.
        let mut files = self.record.files.clone();
        files.retain(|path, _| !is_gone(path));
        files.extend(changed);
        let groups = self.groups(&files);
        self.keep(disk, &files, &groups, now_ns);
        let mut record = Record { files, ..self.record.clone() };
        if !record.failures.is_empty() && self.has_new_checkpoint(disk)? {
            record.failures.clear();
        }
        if let Err(error) = record.write(disk, &self.own) {
            if !is_full(&error) {
                return Err(error);
            }
            self.make_room(disk);
            record.write(disk, &self.own)?;
        }
        self.record = record;
        Ok(true)
    }

    /// The files of the numbered checkpoints of which a file is open for writing. A log may be open all the time.
    fn saving(&self, disk: &dyn Disk, files: &BTreeMap<String, Stamp>, now: &AtEnd) -> BTreeSet<String> {
        let is_open = |(path, stamp): &(&String, &Stamp)| {
            now.was_writing(disk, &self.checkpoints.join(path), **stamp) && !may_be_log(path, self.record.change(path))
        };
        let groups = Groups::of(files.iter().map(|(path, stamp)| (path.as_str(), *stamp)));
        let of_open = files.iter().filter(is_open).filter_map(|(path, _)| groups.group(path));
        of_open.flat_map(|group| group.members.iter().cloned()).collect()
    }

    /// Notes that this attempt has put another file in the place of a sealed one. Returns whether that is new. The
    /// inodes of other attempts prove nothing: a copy has other inodes, and so has a version that is put back.
    fn note_replaced(&mut self, path: &str, stamp: Stamp) -> bool {
        let before = match self.inodes.get_mut(path) {
            Some(before) => Some(std::mem::replace(before, stamp.inode)),
            None => self.inodes.insert(path.to_owned(), stamp.inode),
        };
        if before.is_none_or(|before| before == stamp.inode) || is_log_name(path) {
            return false;
        }
        let Some(sealed) = self.record.files.get_mut(path) else { return false };
        sealed.change.replace(Change::Replaced) != Some(Change::Replaced)
    }

    /// Whether the format of a file that is rewritten under its name shows that it is complete. False if it cannot be
    /// read.
    fn is_complete(&self, disk: &dyn Disk, path: &str) -> bool {
        !is_numbered(path) && is_whole(disk, &self.checkpoints.join(path)).unwrap_or(false)
    }

    /// Whether a text may count what is saved next to it. It is then not sealed before that.
    fn counts_another(&self, disk: &dyn Disk, files: &BTreeMap<String, Stamp>, path: &str) -> bool {
        let folder = Path::new(path).parent();
        let mut beside = files.iter().filter(|(other, _)| *other != path && Path::new(other).parent() == folder);
        let is_text = |path: &str, stamp: &Stamp| is_small_text(disk, &self.checkpoints.join(path), stamp.bytes);
        files.get(path).is_some_and(|stamp| is_text(path, stamp))
            && beside.any(|(other, stamp)| has_content(disk, &self.checkpoints.join(other), other, stamp.bytes))
    }

    /// `None` also for a file that is incomplete by its format, unless it is known that it `is_whole`.
    fn seal_whole(&self, disk: &dyn Disk, path: &str, stamp: Stamp, is_whole: bool) -> io::Result<Option<Sealed>> {
        if !is_whole && looks_torn(disk, &self.checkpoints.join(path), stamp.bytes)? {
            return Ok(None);
        }
        let doubtful = self.is_left_over(disk, path, stamp)?;
        let Some(sealed) = self.seal_one(disk, path, stamp)? else { return Ok(None) };
        let kept = self.record.kept.get(path);
        // Only once, because it reads both versions.
        let is_unknown = sealed.change.is_none() && !is_log_name(path);
        if is_unknown && !is_small_text(disk, &self.checkpoints.join(path), stamp.bytes) {
            let constant = constant_parts(disk, &self.checkpoints, &self.own, path, (&sealed, kept)).unwrap_or(None);
            let change = constant.is_some().then_some(Change::Rewritten);
            return Ok(Some(Sealed { doubtful, change, constant: constant.unwrap_or_default(), ..sealed }));
        }
        Ok(Some(Sealed { doubtful, ..sealed }))
    }

    /// Leaves out a file that cannot be read now, but not all others: a training can make any of its files unreadable.
    /// It is logged once for each file.
    fn or_leave_out<T>(&mut self, path: &str, sealed: io::Result<Option<T>>) -> io::Result<Option<T>> {
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
            let constant = if change == Some(Change::Rewritten) { self.constant(path) } else { Vec::new() };
            Ok((disk.stamp(&file)? == stamp).then_some(Sealed { stamp, sha256, doubtful: false, change, constant }))
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

    /// The parts of a file that were found to be the same in two versions.
    fn constant(&self, path: &str) -> Vec<Part> {
        self.record.files.get(path).map(|before| before.constant.clone()).unwrap_or_default()
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
        let mut found: Vec<_> = walk(disk, &self.checkpoints)?.into_iter().collect();
        found.sort_by_key(|(_, stamp)| std::cmp::Reverse(stamp.modified_ns));
        let mut files = BTreeMap::new();
        let mut last = true;
        for (path, stamp) in found {
            self.note_replaced(&path, stamp);
            let judged = self.at_end(disk, &path, stamp, at_end).map(Some);
            let Some(state) = self.or_leave_out(&path, judged)? else {
                last = false;
                continue;
            };
            let AtItsEnd::Written { doubtful } = state else {
                (self.say)(&format!(
                    "checkpoint file {path} was being written when the command ended, and is incomplete"
                ));
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
        if !last {
            (self.say)("some checkpoints could not be sealed in time: the next attempt judges them by themselves");
        }
        self.record = Record { last, files, ..self.record.clone() };
        self.record.write(disk, &self.own)
    }

    /// The state in which the end of the command has left a file.
    fn at_end(&self, disk: &dyn Disk, path: &str, stamp: Stamp, at_end: &AtEnd) -> io::Result<AtItsEnd> {
        let file = self.checkpoints.join(path);
        let doubtful = at_end.was_writing(disk, &file, stamp) && !is_whole(disk, &file)?;
        let is_cut_off = || -> io::Result<bool> {
            Ok(self.is_emptied(path, stamp.bytes)
                || (doubtful && (self.is_cut_off(disk, path, stamp)? || self.may_be_two(disk, path, stamp, at_end)?)))
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
        let is_old = is_numbered(path) && self.first.get(path) == Some(&stamp);
        Ok(is_old && (!self.record.failures.is_empty() || !is_whole(disk, &self.checkpoints.join(path))?))
    }

    /// Whether a file that the command was killed in may have parts of two versions of which none was sealed: a handler
    /// that abandons a save begins another one in the same file, and no format shows that. A sealed version is safer.
    fn may_be_two(&self, disk: &dyn Disk, path: &str, stamp: Stamp, at_end: &AtEnd) -> io::Result<bool> {
        let file = self.checkpoints.join(path);
        let has_sealed = !is_numbered(path) && self.record.kept.get(path).is_some_and(|kept| !kept.doubtful);
        Ok(has_sealed && at_end.was_killed_writing(disk, &file, stamp) && disk.may_mix(&file)?)
    }

    fn is_cut_off(&self, disk: &dyn Disk, path: &str, stamp: Stamp) -> io::Result<bool> {
        // A pointer's text does not show its end.
        let is_torn = is_pointer_name(path)
            || has_lost_all(path, stamp.bytes)
            || looks_torn(disk, &self.checkpoints.join(path), stamp.bytes)?;
        Ok(is_torn || is_mixed(disk, &self.checkpoints, &self.own, path, Some(&self.record))?)
    }

    /// Makes a last seal an ordinary one, because a process may still write.
    ///
    /// # Errors
    /// If the workspace cannot be written.
    pub fn reopen(&mut self, disk: &dyn Disk) -> io::Result<()> {
        self.record.last = false;
        self.record.write(disk, &self.own)
    }
}

/// Whether a file may be sealed before it rests: it was never sealed, or its sealed version is old.
fn is_due(before: Option<&Sealed>, now_ns: i64) -> bool {
    before.is_none_or(|before| rests(before.stamp, LONG, now_ns))
}

fn rests(stamp: Stamp, quiet: Duration, now_ns: i64) -> bool {
    let age = i128::from(now_ns) - i128::from(stamp.modified_ns);
    u128::try_from(age).is_ok_and(|age| age >= quiet.as_nanos())
}
