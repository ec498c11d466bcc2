//! Seals a workspace.
//!
//! While the command runs, files that have come to rest are written out and sealed every now
//! and then; when it has stopped, everything is. The next attempt holds what it finds against the
//! seal, and puts aside, never away, what is not whole, so that training finds the checkpoint before.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use spotsweep_protocol::claim::{Found, Seal};

use crate::at_end::AtEnd;
use crate::disk::{Disk, Stamp};
use crate::files::{hash, looks_torn, walk, with_its_folder};
use crate::judge::Judge;
use crate::kept::restore;
use crate::record::{Record, Sealed};
use crate::{CHECKPOINTS, METRICS_RECORD, OWN, Say};

pub(crate) const TORN: &str = "torn";
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
        let judge = Judge { disk, folder: &checkpoints, seal: seal.as_ref(), same_inodes: is_disk };
        let files = walk(disk, &checkpoints)?;
        let judged = judge.judge(&files)?;
        let kept = seal.as_ref().map(|seal| seal.kept.clone()).unwrap_or_default();
        let mut newest = judged.newest;
        for name in &judged.torn {
            put_aside(disk, &checkpoints, &own.join(TORN).join(attempt.to_string()), with_its_folder(&files, name))?;
            if restore(disk, &checkpoints, &own, name, kept.get(name))? {
                say(&format!("checkpoint {name} is rewritten in place: its last sealed version is back"));
                newest = Some(name.clone());
            }
        }
        if is_disk && !judged.torn.is_empty() {
            disk.sync_all(point)?;
        }
        // No longer the last word: the command may change what is sealed.
        let rollbacks = seal.as_ref().map(|seal| seal.rollbacks.clone()).unwrap_or_default();
        let record = Record { attempt, last: false, files: judged.sealed, kept, rollbacks };
        if seal.is_some() {
            record.write(disk, &own)?;
        }
        let first = walk(disk, &checkpoints)?;
        // An earlier attempt has trained here: its record of metrics exists.
        let resumed = attempt > 1 && disk.stamp(&own.join(METRICS_RECORD)).is_ok() && newest.is_some();
        let found = Found { formatted: false, newest, torn: judged.torn, missing: judged.missing };
        Ok((Self { checkpoints, own, is_disk, say, record, first, resumed }, found))
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
        let (mut files, mut rewritten) = (BTreeMap::new(), Vec::new());
        for (path, stamp) in walk(disk, &self.checkpoints)? {
            let is_closed = || !at_rest.was_writing(disk, &self.checkpoints.join(&path), stamp);
            let before = self.record.files.get(&path);
            let known = before.filter(|sealed| sealed.stamp == stamp);
            let sealed = match known {
                Some(known) => Some(known.clone()),
                None if rests(stamp, quiet, now_ns)
                    && is_closed()
                    && !looks_torn(disk, &self.checkpoints.join(&path), stamp.bytes)? =>
                {
                    self.seal_one(disk, &path, stamp)?
                }
                None => None,
            };
            if let Some(sealed) = sealed.as_ref().filter(|_| known.is_none()) {
                rewritten.push((path.clone(), before.cloned(), sealed.clone()));
            }
            // What it was stays said until it is known what it has become.
            if let Some(sealed) = sealed.or_else(|| before.cloned()) {
                files.insert(path, sealed);
            }
        }
        if files == self.record.files {
            return Ok(false);
        }
        for (path, before, sealed) in rewritten {
            self.keep(disk, &path, before.as_ref(), &sealed);
        }
        self.record.kept.retain(|path, _| files.contains_key(path));
        let record = Record { files, ..self.record.clone() };
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
            let doubtful = at_end.was_writing(disk, &self.checkpoints.join(&path), stamp);
            if doubtful && looks_torn(disk, &self.checkpoints.join(&path), stamp.bytes)? {
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

pub(crate) fn put_aside(disk: &dyn Disk, checkpoints: &Path, aside: &Path, name: &str) -> io::Result<()> {
    let source = checkpoints.join(name);
    match disk.rename(&source, &aside.join(name)) {
        // It has gone with its folder.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        renamed => renamed?,
    }
    // An empty folder may look like a checkpoint. One that is not empty stays.
    let folders = source.ancestors().skip(1).take_while(|folder| *folder != checkpoints);
    let _first_that_stays = folders.map(|folder| disk.remove_folder(folder)).find(Result::is_err);
    Ok(())
}
