//! Seals a workspace.
//!
//! While the command runs, files that have come to rest are written out and sealed every now
//! and then; when it has stopped, everything is. The next attempt holds what it finds against the
//! seal, and puts aside what is not whole, so that the training finds the checkpoint before it.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use spotsweep_protocol::claim::{Found, Seal};

use crate::aside::{TORN, put_aside};
use crate::at_end::AtEnd;
use crate::disk::{Disk, Stamp};
use crate::files::{
    checkpoint, has_content, has_lost_all, has_unfinished_part, hash, is_numbered, is_pointer_name, is_whole,
    looks_torn, unfinished_folders, walk, with_its_folder,
};
use crate::judge::Judge;
use crate::kept::{Kept, is_mixed, restore, restore_removed};
use crate::pointers::Pointers;
use crate::record::{Record, Sealed};
use crate::shape::shape;
use crate::{CHECKPOINTS, OWN, Say};

/// A file untouched for so long is taken to be whole while the command runs.
pub const QUIET: Duration = Duration::from_secs(5);

/// Seals one workspace.
#[derive(Debug, Clone)]
pub struct Sealer {
    pub(crate) checkpoints: PathBuf,
    /// The runner's own folder on the workspace.
    pub(crate) own: PathBuf,
    /// Whether files must be written out to be safe.
    is_disk: bool,
    pub(crate) say: Say,
    pub(crate) record: Record,
    /// What lay there when this attempt began.
    pub(crate) first: BTreeMap<String, Stamp>,
    /// Whether it began with a checkpoint of an attempt that was interrupted.
    pub(crate) resumed: bool,
}

impl Sealer {
    /// Holds the checkpoints on a mounted workspace against the seal of the attempt before, puts
    /// aside what is torn, and seals what is left for this `attempt`, which is about to write.
    ///
    /// `point` is where the workspace is mounted. `is_disk` says whether it is a volume, and not a plain folder.
    ///
    /// # Errors
    /// Where the workspace cannot be read or written.
    pub fn resume(disk: &dyn Disk, point: &Path, attempt: u32, is_disk: bool, say: Say) -> io::Result<(Self, Found)> {
        let (checkpoints, own) = (point.join(CHECKPOINTS), point.join(OWN));
        let seal = Record::read(disk, &own, say)?;
        let judge = Judge { disk, folder: &checkpoints, own: &own, seal: seal.as_ref(), same_inodes: is_disk };
        let mut files = disk.files(&checkpoints)?;
        let unfinished = unfinished_folders(&files);
        files.retain(|path, _| !has_unfinished_part(path));
        let judged = judge.judge(&files, &unfinished)?;
        remove_empty(disk, &checkpoints, &files)?;
        let kept = seal.as_ref().map(|seal| seal.kept.clone()).unwrap_or_default();
        let aside = own.join(TORN).join(attempt.to_string());
        let modified = |name: &String| {
            let members = files.iter().filter(|(path, _)| checkpoint(path) == name);
            members.map(|(_, stamp)| stamp.modified_ns).max()
        };
        let at = |name: String| (modified(&name), name);
        let (mut newest, mut of_text) = (judged.newest.map(at), judged.of_text.map(at));
        for name in &judged.torn {
            put_aside(disk, &checkpoints, &aside, with_its_folder(&files, name))?;
            let Some(sealed) = kept.get(name) else { continue };
            if restore(disk, &checkpoints, &own, name, Some(sealed))? {
                say(&format!("checkpoint {name} is rewritten in place: its last sealed version is back"));
                let has_content = has_content(disk, &checkpoints.join(name), name, sealed.stamp.bytes);
                let slot = if has_content { &mut newest } else { &mut of_text };
                *slot = slot.take().max(Some((Some(sealed.stamp.modified_ns), name.clone())));
            }
        }
        let last = newest.as_ref().map(|(modified, name)| (name.as_str(), modified.unwrap_or(i64::MIN)));
        let back = restore_removed(disk, &checkpoints, &own, &kept, last)?;
        let mut newest = newest.map(|(_, name)| name);
        if let Some(back) = back {
            say(&format!("checkpoint {} was removed before a newer one was complete: it is back", back.name));
            newest = newest.filter(|_| back.is_older).or(Some(back.name));
        }
        if let Some(newest) = newest.as_ref().filter(|_| seal.is_some()) {
            let (checkpoints, own, sealed) = (&*checkpoints, &*own, &judged.sealed);
            Pointers { disk, checkpoints, own, kept: &kept, sealed, aside: &aside }.repair(newest)?;
        }
        if is_disk {
            disk.sync_all(point)?;
        }
        let newest = newest.or(of_text.map(|(_, name)| name));
        let found = Found { formatted: false, newest, torn: judged.torn, missing: judged.missing };
        let first = walk(disk, &checkpoints)?;
        let resumed = attempt > 1 && found.newest.is_some() && seal.as_ref().is_some_and(|seal| seal.trained);
        let mut files = judged.sealed;
        // What was sealed as something else stays said until it is sealed again.
        let stale = seal.iter().flat_map(|seal| &seal.files).filter(|(path, _)| first.contains_key(*path));
        for (path, sealed) in stale {
            files.entry(path.clone()).or_insert_with(|| sealed.clone());
        }
        let record = Record { attempt, last: false, files, kept, ..seal.clone().unwrap_or_default() };
        let mut sealer = Self { checkpoints, own, is_disk, say, record, first, resumed };
        // No longer the last word: the command may change what is sealed.
        if seal.is_some() {
            sealer.keep_found(disk, found.newest.as_deref())?;
            sealer.record.write(disk, &sealer.own)?;
        }
        Ok((sealer, found))
    }

    /// Keeps what was found sealed, and what is newer where nothing is kept in its place: whether it is complete shows
    /// only when the command loads it.
    fn keep_found(&mut self, disk: &dyn Disk, newest: Option<&str>) -> io::Result<()> {
        let mut files = self.record.files.clone();
        let has_group = self.record.kept.keys().any(|path| is_numbered(path));
        for (path, stamp) in &self.first {
            let is_kept = if is_numbered(path) { has_group } else { self.record.kept.contains_key(path) };
            let is_known = files.get(path).is_some_and(|sealed| sealed.stamp == *stamp);
            if newest == Some(checkpoint(path)) && !is_kept && !is_known {
                let sealed = self.seal_one(disk, path, *stamp)?;
                files.extend(sealed.map(|sealed| (path.clone(), Sealed { doubtful: true, ..sealed })));
            }
        }
        self.keep(disk, &files, i64::MIN);
        self.forget_unknown(disk)?;
        self.record.files = files;
        Ok(())
    }

    /// The command is about to be started.
    ///
    /// # Errors
    /// Where the workspace cannot be written.
    pub fn begin(&mut self, disk: &dyn Disk) -> io::Result<()> {
        self.record.trained = true;
        self.record.write(disk, &self.own)
    }

    /// What is sealed now.
    pub fn summary(&self) -> Option<Seal> {
        self.record.summary()
    }

    /// Seals the files that are closed, complete by their format, and unchanged for `quiet` at `now_ns`, in nanoseconds
    /// since 1970; whether the seal has changed. `open` finds the files that are open for writing.
    ///
    /// # Errors
    /// Where the workspace cannot be read or written.
    pub fn seal_resting(
        &mut self,
        disk: &dyn Disk,
        quiet: Duration,
        now_ns: i64,
        open: &dyn Fn() -> BTreeSet<PathBuf>,
    ) -> io::Result<bool> {
        // Most rounds find nothing new, and need no look at the processes.
        let at_rest = LazyCell::new(|| AtEnd::new(open(), now_ns, false));
        let mut files = BTreeMap::new();
        for (path, stamp) in walk(disk, &self.checkpoints)? {
            let is_closed = || !at_rest.was_writing(disk, &self.checkpoints.join(&path), stamp);
            let before = self.record.files.get(&path);
            let known = before.filter(|sealed| sealed.stamp == stamp);
            let sealed = match known {
                // The command has run on from it.
                Some(known) => Some(Sealed { doubtful: false, ..known.clone() }),
                None if rests(stamp, quiet, now_ns)
                    && is_closed()
                    && !looks_torn(disk, &self.checkpoints.join(&path), stamp.bytes)? =>
                {
                    self.seal_one(disk, &path, stamp)?
                }
                None => None,
            };
            // What it was stays said until it is known what it has become.
            if let Some(sealed) = sealed.or_else(|| before.cloned()) {
                files.insert(path, sealed);
            }
        }
        if files == self.record.files {
            return Ok(false);
        }
        self.keep(disk, &files, now_ns);
        let mut record = Record { files, ..self.record.clone() };
        if !record.failed.is_empty() && self.has_new_checkpoint(disk)? {
            record.failed.clear();
        }
        record.write(disk, &self.own)?;
        self.record = record;
        Ok(true)
    }

    /// `None` for what has changed or gone in the meantime.
    fn seal_one(&self, disk: &dyn Disk, path: &str, stamp: Stamp) -> io::Result<Option<Sealed>> {
        let path = self.checkpoints.join(path);
        let read = || {
            if self.is_disk {
                disk.sync(&path)?;
            }
            let sha256 = hash(disk, &path, stamp.bytes)?;
            Ok((disk.stamp(&path)? == stamp).then_some(Sealed { stamp, sha256, doubtful: false }))
        };
        read().or_else(|error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Ok(None),
            _ => Err(error),
        })
    }

    /// The last seal, when the command has stopped and everything is written out: of all files, newest first. What is
    /// not read while there `is_time` is left out, and the seal is not final. A hash proves that bytes are unchanged, not
    /// that all were written: a file that the command was writing `at_end` is left out where it is cut off by its
    /// format, and sealed as doubtful where its format does not say.
    ///
    /// # Errors
    /// Where the workspace cannot be read or written.
    pub fn finish(&mut self, disk: &dyn Disk, at_end: &AtEnd, is_time: &dyn Fn() -> bool) -> io::Result<()> {
        let mut found: Vec<_> = walk(disk, &self.checkpoints)?.into_iter().collect();
        found.sort_by_key(|(_, stamp)| std::cmp::Reverse(stamp.modified_ns));
        let mut files = BTreeMap::new();
        let mut last = true;
        for (path, stamp) in found {
            let file = self.checkpoints.join(&path);
            let doubtful = at_end.was_writing(disk, &file, stamp) && !is_whole(disk, &file)?;
            if doubtful && self.is_cut_off(disk, &path, stamp)? {
                (self.say)(&format!(
                    "checkpoint file {path} was being written when the command ended, and is incomplete"
                ));
                continue;
            }
            let known = self.record.files.get(&path).filter(|sealed| sealed.stamp == stamp);
            let sealed = match known {
                Some(known) => Some(known.clone()),
                None if !is_time() => None,
                None => self.seal_one(disk, &path, stamp)?,
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

    fn is_cut_off(&self, disk: &dyn Disk, path: &str, stamp: Stamp) -> io::Result<bool> {
        let had_content = |files: &Kept| stamp.bytes == 0 && files.get(path).is_some_and(|file| file.stamp.bytes > 0);
        // A pointer's text does not show its end.
        let is_torn = is_pointer_name(path)
            || has_lost_all(path, stamp.bytes)
            || had_content(&self.record.files)
            || had_content(&self.record.kept)
            || looks_torn(disk, &self.checkpoints.join(path), stamp.bytes)?;
        Ok(is_torn || is_mixed(disk, &self.checkpoints, &self.own, path)?)
    }

    /// Takes a last seal back, where somebody may still write.
    ///
    /// # Errors
    /// Where the workspace cannot be written.
    pub fn reopen(&mut self, disk: &dyn Disk) -> io::Result<()> {
        self.record.last = false;
        self.record.write(disk, &self.own)
    }
}

fn rests(stamp: Stamp, quiet: Duration, now_ns: i64) -> bool {
    let age = i128::from(now_ns) - i128::from(stamp.modified_ns);
    u128::try_from(age).is_ok_and(|age| age >= quiet.as_nanos())
}

/// Removes checkpoint folders in which nothing is, where others of their kind have files: a script takes the newest one.
fn remove_empty(disk: &dyn Disk, checkpoints: &Path, files: &BTreeMap<String, Stamp>) -> io::Result<()> {
    let folders: BTreeSet<String> =
        files.keys().flat_map(|path| path.match_indices('/').map(|(end, _)| &path[..end])).map(shape).collect();
    for folder in disk.empty_folders(checkpoints)? {
        if is_numbered(&folder) && folders.contains(&shape(&folder)) {
            disk.remove_folder(&checkpoints.join(folder))?;
        }
    }
    Ok(())
}
