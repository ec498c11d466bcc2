//! The seal: the runner's proof that checkpoints are whole on disk.
//!
//! While the command runs, files that have come to rest are written out and sealed every now
//! and then; when it has stopped, everything is. The next attempt holds what it finds against the
//! seal, and puts aside, never away, what is not whole, so that training finds the checkpoint before.

mod at_end;
mod files;
mod judge;
mod kept;
mod record;
mod rollback;
#[cfg(test)]
mod tests;

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::syncfs;
use rustix::process::getpid;
use spotsweep_protocol::claim::{Found, Seal};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::sleep;

pub(crate) use self::at_end::AtEnd;
pub(crate) use self::files::{Stamp, is_log, is_unfinished, newest, walk_all};
use self::files::{hash, looks_torn, walk, with_its_folder};
use self::judge::Judge;
use self::kept::restore;
use self::record::{Record, Sealed};
use crate::log::say;
use crate::processes;
use crate::workplace::METRICS_RECORD;
use crate::workspace::OWN;
use spotsweep_protocol::cause::chain;

const CHECKPOINTS: &str = "checkpoints";
const TORN: &str = "torn";
/// A file untouched for so long is taken to be whole while the command runs.
const QUIET: Duration = Duration::from_secs(5);

/// Seals one workspace.
#[derive(Debug)]
pub(crate) struct Sealer {
    checkpoints: PathBuf,
    /// The runner's own folder on the workspace.
    own: PathBuf,
    /// Whether files must be written out to be safe.
    is_disk: bool,
    record: Record,
    /// What lay there when this attempt began.
    first: BTreeMap<String, Stamp>,
    /// Whether it began with a checkpoint of an attempt that was interrupted.
    resumed: bool,
}

impl Sealer {
    /// Holds the checkpoints on a mounted workspace against the seal of the attempt before, puts
    /// aside what is torn, and seals what is left for this `attempt`, which is about to write.
    pub(crate) fn resume(point: &Path, attempt: u32, is_disk: bool) -> io::Result<(Self, Found)> {
        let (checkpoints, own) = (point.join(CHECKPOINTS), point.join(OWN));
        let seal = Record::read(&own)?;
        let judge = Judge { folder: &checkpoints, seal: seal.as_ref(), same_inodes: is_disk };
        let files = walk(&checkpoints)?;
        let judged = judge.judge(&files)?;
        let kept = seal.as_ref().map(|seal| seal.kept.clone()).unwrap_or_default();
        let mut newest = judged.newest;
        for name in &judged.torn {
            put_aside(&checkpoints, &own.join(TORN).join(attempt.to_string()), with_its_folder(&files, name))?;
            if restore(&checkpoints, &own, name, kept.get(name))? {
                say(&format!("checkpoint {name} is rewritten in place: its last sealed version is back"));
                newest = Some(name.clone());
            }
        }
        if is_disk && !judged.torn.is_empty() {
            syncfs(File::open(point)?)?;
        }
        // No longer the last word: the command may change what is sealed.
        let rollbacks = seal.as_ref().map(|seal| seal.rollbacks.clone()).unwrap_or_default();
        let record = Record { attempt, last: false, files: judged.sealed, kept, rollbacks };
        if seal.is_some() {
            record.write(&own)?;
        }
        let first = walk(&checkpoints)?;
        // An earlier attempt has trained here: its record of metrics exists.
        let resumed = attempt > 1 && own.join(METRICS_RECORD).exists() && newest.is_some();
        let found = Found { formatted: false, newest, torn: judged.torn, missing: judged.missing };
        Ok((Self { checkpoints, own, is_disk, record, first, resumed }, found))
    }

    /// What is sealed now.
    pub(crate) fn summary(&self) -> Option<Seal> {
        self.record.summary()
    }

    /// Seals in the background, every `every`, until told to stop; then comes back. The newest
    /// seal can be followed.
    pub(crate) fn run(mut self, every: Duration) -> Sealing {
        let (stop, mut stopped) = oneshot::channel();
        let (publisher, newest) = watch::channel(self.summary());
        let running = tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = &mut stopped => return Ok(self),
                    () = sleep(every) => {}
                }
                let round = tokio::task::spawn_blocking(move || {
                    let outcome = self.seal_resting(QUIET.min(every));
                    (self, outcome)
                });
                let outcome;
                (self, outcome) = round.await?;
                match outcome {
                    Ok(true) => {
                        publisher.send_replace(self.summary());
                    }
                    Ok(false) => {}
                    Err(error) => say(&format!("not yet sealed, trying again: {}", chain(&error))),
                }
            }
        });
        Sealing { running, stop, newest }
    }

    /// Seals the files that are closed, complete by their format, and unchanged for `quiet`; whether the seal has changed.
    fn seal_resting(&mut self, quiet: Duration) -> io::Result<bool> {
        let own = getpid().as_raw_nonzero().get();
        // Most rounds find nothing new, and need no look at the processes.
        let at_rest = LazyCell::new(|| AtEnd::now(processes::written_below(own, &processes::all()), false));
        let (mut files, mut rewritten) = (BTreeMap::new(), Vec::new());
        for (path, stamp) in walk(&self.checkpoints)? {
            let is_closed = || !at_rest.was_writing(&self.checkpoints.join(&path), stamp);
            let before = self.record.files.get(&path);
            let known = before.filter(|sealed| sealed.stamp == stamp);
            let sealed = match known {
                Some(known) => Some(known.clone()),
                None if rests(stamp, quiet)
                    && is_closed()
                    && !looks_torn(&self.checkpoints.join(&path), stamp.bytes)? =>
                {
                    self.seal_one(&path, stamp)?
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
            self.keep(&path, before.as_ref(), &sealed);
        }
        self.record.kept.retain(|path, _| files.contains_key(path));
        let record = Record { files, ..self.record.clone() };
        record.write(&self.own)?;
        self.record = record;
        Ok(true)
    }

    /// `None` for what has changed or gone in the meantime.
    fn seal_one(&self, path: &str, stamp: Stamp) -> io::Result<Option<Sealed>> {
        let path = self.checkpoints.join(path);
        let read = || {
            if self.is_disk {
                File::open(&path)?.sync_all()?;
                // Its name is an entry of the folder.
                path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())?;
            }
            let sha256 = hash(&path, stamp.bytes)?;
            Ok((Stamp::of(&fs::metadata(&path)?) == stamp).then_some(Sealed { stamp, sha256, doubtful: false }))
        };
        read().or_else(|error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Ok(None),
            _ => Err(error),
        })
    }

    /// The last seal, when the command has stopped and everything is written out: of all files, newest first. What is
    /// not read by the `deadline` is left out, and the seal is not final. A hash proves that bytes are unchanged, not
    /// that all were written: a file that the command was writing `at_end` is left out where it is cut off by its
    /// format, and sealed as doubtful where its format does not say.
    pub(crate) fn finish(&mut self, at_end: &AtEnd, deadline: Instant) -> io::Result<()> {
        let mut found: Vec<_> = walk(&self.checkpoints)?.into_iter().collect();
        found.sort_by_key(|(_, stamp)| std::cmp::Reverse(stamp.modified_ns));
        let mut files = BTreeMap::new();
        let mut last = true;
        for (path, stamp) in found {
            let doubtful = at_end.was_writing(&self.checkpoints.join(&path), stamp);
            if doubtful && looks_torn(&self.checkpoints.join(&path), stamp.bytes)? {
                say(&format!("checkpoint file {path} was being written when the command ended, and is incomplete"));
                continue;
            }
            let known = self.record.files.get(&path).filter(|sealed| sealed.stamp == stamp);
            let sealed = match known {
                Some(known) => Some(known.clone()),
                None if Instant::now() > deadline => None,
                None => self.seal_one(&path, stamp)?,
            };
            last &= sealed.is_some();
            files.extend(sealed.map(|sealed| (path, Sealed { doubtful, ..sealed })));
        }
        if !last {
            say("some checkpoints could not be sealed in time: the next attempt judges them by themselves");
        }
        self.record = Record { last, files, ..self.record.clone() };
        self.record.write(&self.own)
    }

    /// Takes a last seal back, where somebody may still write.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        self.record.last = false;
        self.record.write(&self.own)
    }
}

/// A sealer at work.
pub(crate) struct Sealing {
    running: JoinHandle<Result<Sealer, JoinError>>,
    stop: oneshot::Sender<()>,
    /// The newest seal.
    pub(crate) newest: watch::Receiver<Option<Seal>>,
}

impl Sealing {
    /// Ends after the round that is underway.
    pub(crate) async fn stop(self) -> io::Result<Sealer> {
        // Fails only where the sealer is gone, which the line after tells.
        let _ = self.stop.send(());
        Ok(self.running.await??)
    }
}

fn rests(stamp: Stamp, quiet: Duration) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let age = i128::try_from(now.as_nanos()).unwrap_or(i128::MAX) - i128::from(stamp.modified_ns);
    u128::try_from(age).is_ok_and(|age| age >= quiet.as_nanos())
}

fn put_aside(checkpoints: &Path, aside: &Path, name: &str) -> io::Result<()> {
    let (source, target) = (checkpoints.join(name), aside.join(name));
    fs::create_dir_all(target.parent().unwrap_or(aside))?;
    match fs::rename(&source, target) {
        // It has gone with its folder.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        renamed => renamed?,
    }
    // An empty folder may look like a checkpoint. One that is not empty stays.
    let folders = source.ancestors().skip(1).take_while(|folder| *folder != checkpoints);
    let _first_that_stays = folders.map(fs::remove_dir).find(Result::is_err);
    Ok(())
}
