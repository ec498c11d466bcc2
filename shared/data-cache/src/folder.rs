//! The folder of one data set, with its lock.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW, flock, futimens};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::next::{Content, Hold};

const LOCK: &str = "lock";
const PART: &str = "part";
const TREE: &str = "tree";
const COMPLETE: &str = "complete";
const PROGRESS: &str = "progress";
const USED: &str = "used";
/// Trainings of all users read the sets.
const OF_FOLDERS: u32 = 0o755;
/// A user who can open the lock can hold it.
const OF_LOCKS: u32 = 0o600;
/// The unit of `st_blocks`: <https://man7.org/linux/man-pages/man3/stat.3type.html>.
const BLOCK_BYTES: u64 = 512;

/// What `complete` has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Complete {
    /// The bytes that the set takes up.
    pub(crate) bytes: u64,
    /// The number of its objects.
    pub(crate) objects: u64,
    /// The kernel's number of the boot. What was written before a reboot may not have reached the disk.
    pub(crate) boot: String,
}

/// What `progress` has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Noted {
    /// The bytes that have arrived.
    pub(crate) bytes: u64,
    /// The bytes of all objects.
    pub(crate) of_bytes: u64,
    /// The bytes that the fetch will still write.
    pub(crate) to_come: u64,
}

/// The folder of a data set. The lock is given up with it.
#[derive(Debug)]
pub(crate) struct SetFolder {
    path: PathBuf,
    lock: File,
}

impl SetFolder {
    /// Opens the folder of a set, and makes it if it is missing.
    pub(crate) fn make(root: &Path, id: &str) -> io::Result<Self> {
        let path = root.join(id);
        make_folder(&path)?;
        Ok(Self { lock: open_lock(&path)?, path })
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.path.join(TREE)
    }

    pub(crate) fn part(&self) -> PathBuf {
        self.path.join(PART)
    }

    /// Returns the path for one of the set's archives.
    pub(crate) fn archive(&self, number: u64) -> PathBuf {
        self.path.join(format!("archive-{number}"))
    }

    /// Tries to take a lock instead of the one that is held. Returns what is held then.
    pub(crate) fn take(&self, wanted: Hold) -> io::Result<Hold> {
        let operation = match wanted {
            Hold::Shared => FlockOperation::NonBlockingLockShared,
            Hold::Exclusive => FlockOperation::NonBlockingLockExclusive,
            Hold::Nothing => FlockOperation::Unlock,
        };
        if try_lock(&self.lock, operation)? {
            return Ok(wanted);
        }
        // The earlier lock may be lost or not: <https://man7.org/linux/man-pages/man2/flock.2.html>.
        flock(&self.lock, FlockOperation::Unlock)?;
        Ok(Hold::Nothing)
    }

    /// Returns what the folder has. `boot` is the number of the present boot.
    pub(crate) fn content(&self, boot: &str) -> Content {
        let has = |name: &str| self.path.join(name).exists();
        match self.complete() {
            Some(complete) if complete.boot == boot && has(TREE) => Content::Complete,
            None if ![COMPLETE, TREE, PART, PROGRESS].into_iter().any(has) => Content::Nothing,
            Some(_) | None => Content::Leftovers,
        }
    }

    /// Returns what `complete` says, whether or not it can be trusted.
    pub(crate) fn complete(&self) -> Option<Complete> {
        read(&self.path.join(COMPLETE))
    }

    /// Returns how far the fetch of another runner is, if that can be read.
    pub(crate) fn progress(&self) -> Option<Noted> {
        read(&self.path.join(PROGRESS))
    }

    pub(crate) fn note(&self, noted: Noted) -> io::Result<()> {
        replace(&self.path, PROGRESS, &noted, |_| Ok(()))
    }

    /// Makes the fetched part the set. All that was written must be on the disk before.
    pub(crate) fn conclude(&self, complete: &Complete) -> io::Result<()> {
        fs::rename(self.part(), self.tree())?;
        replace(&self.path, COMPLETE, complete, File::sync_all)
    }

    /// Removes what the folder has. Other runners may wait for the lock, so that stays: they would lock a file that
    /// is no longer there. Before anything else goes the mark, so that no one uses a set of which a part is gone.
    pub(crate) fn clear(&self) -> io::Result<()> {
        if_there(fs::remove_file(self.path.join(COMPLETE)))?;
        for folder in [self.tree(), self.part()] {
            if_there(fs::remove_dir_all(folder))?;
        }
        if_there(fs::remove_file(self.path.join(PROGRESS)))
    }

    /// Notes that the set is used now.
    pub(crate) fn mark_used(&self) -> io::Result<()> {
        let used = OpenOptions::new().create(true).append(true).open(self.path.join(USED))?;
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        Ok(futimens(used, &Timestamps { last_access: now, last_modification: now })?)
    }

    /// Returns when the set was last used, in nanoseconds since 1970, or 0 if it never was.
    pub(crate) fn last_use(&self) -> i64 {
        let modified = fs::metadata(self.path.join(USED)).and_then(|found| found.modified()).ok();
        let since = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        since.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or_default()
    }

    /// Returns the bytes that the folder takes up, file by file.
    pub(crate) fn count_bytes(&self) -> io::Result<u64> {
        let mut bytes = 0;
        let mut folders = vec![self.path.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                let found = entry.metadata()?;
                bytes += found.blocks() * BLOCK_BYTES;
                if found.is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        Ok(bytes)
    }
}

/// Opens the file `lock` of a folder.
pub(crate) fn open_lock(folder: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(OF_LOCKS).open(folder.join(LOCK))
}

/// Takes a lock. Returns whether it was free.
pub(crate) fn try_lock(lock: &File, operation: FlockOperation) -> io::Result<bool> {
    match flock(lock, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Makes a folder that all can read, whatever the process's umask is.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(OF_FOLDERS).create(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(OF_FOLDERS)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes a file, and puts it in the place of the earlier one as a whole.
fn replace(
    folder: &Path,
    name: &str,
    content: &impl Serialize,
    before: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let new = folder.join(format!("{name}.new"));
    let mut file = File::create(&new)?;
    file.write_all(&serde_json::to_vec(content)?)?;
    before(&file)?;
    fs::rename(new, folder.join(name))
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn if_there(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
