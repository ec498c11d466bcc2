//! The folder into which a data set is fetched.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, Mode, OFlags, fchmod, fstat, mkdirat, open, openat, syncfs};
use rustix::io::Errno;
use tokio::sync::Semaphore;

use crate::disk::Place;
use crate::folder::{Complete, SetFolder};
use crate::meter::Meter;
use crate::pace::Pace;

const OF_FOLDERS: Mode = Mode::from_raw_mode(0o755);
const OF_FILES: Mode = Mode::from_raw_mode(0o644);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW_FILE: OFlags = OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::CLOEXEC);

/// The folder of a fetch. Each operation in a blocking thread holds it, and with it the set's exclusive lock, so the
/// lock is not given up before the last of them has ended.
#[derive(Debug)]
pub(crate) struct Site {
    folder: Arc<SetFolder>,
    part: Arc<OwnedFd>,
    /// Whether the process's umask takes away permissions that trainings need.
    is_masked: bool,
    pub(crate) place: Place,
    pub(crate) pace: Pace,
    pub(crate) meter: Meter,
    /// The number of archives that had a file.
    archives: AtomicU64,
    /// A permit for each archive that is unpacked at once.
    pub(crate) unpacking: Semaphore,
}

impl Site {
    /// Makes the folder. `unpacked_at_once` is the number of archives.
    pub(crate) fn make(folder: Arc<SetFolder>, place: Place, pace: Pace, unpacked_at_once: usize) -> io::Result<Self> {
        let path = folder.part();
        mkdirat(CWD, &path, OF_FOLDERS)?;
        let part = open(&path, FOLDER, Mode::empty())?;
        let is_masked = Mode::from_raw_mode(fstat(&part)?.st_mode) != OF_FOLDERS;
        if is_masked {
            fchmod(&part, OF_FOLDERS)?;
        }
        let unpacking = Semaphore::new(unpacked_at_once);
        let (meter, archives) = (Meter::default(), AtomicU64::new(0));
        Ok(Self { folder, part: Arc::new(part), is_masked, place, pace, meter, archives, unpacking })
    }

    pub(crate) fn part(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.part)
    }

    pub(crate) fn folder(&self) -> &SetFolder {
        &self.folder
    }

    /// Makes a file, which must not be there.
    pub(crate) fn make_file(&self, folder: &OwnedFd, name: &OsStr) -> io::Result<File> {
        let file = openat(folder, name, NEW_FILE, OF_FILES)?;
        if self.is_masked {
            fchmod(&file, OF_FILES)?;
        }
        Ok(file.into())
    }

    /// Makes a file for an archive. It has no name, so that a file of an archive can have it, and goes with its last
    /// handle.
    pub(crate) fn make_unnamed(&self) -> io::Result<File> {
        let path = self.folder.archive(self.archives.fetch_add(1, Ordering::Relaxed));
        let file = File::options().create(true).truncate(true).read(true).write(true).open(&path)?;
        fs::remove_file(path)?;
        Ok(file)
    }

    fn make_folder(&self, folder: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
        let made = mkdirat(folder, name, OF_FOLDERS);
        let handle = openat(folder, name, FOLDER, Mode::empty())?;
        match made {
            Ok(()) if self.is_masked => fchmod(&handle, OF_FOLDERS)?,
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(handle)
    }

    /// Makes the fetched files the set, once they are on the disk.
    pub(crate) fn conclude(&self, objects: u64) -> io::Result<()> {
        self.meter.flush();
        // Since Linux 5.8 it fails if anything could not be written since the folder was opened, which was before the
        // first file: <https://man7.org/linux/man-pages/man2/syncfs.2.html>.
        syncfs(&*self.part)?;
        let (bytes, boot) = (self.meter.on_disk(), self.place.boot.clone());
        self.folder.conclude(&Complete { bytes, objects, boot })
    }
}

/// Opens folders below another one, and makes those that are missing. It keeps the way to the last one, because files
/// of the same folder mostly come one after another.
#[derive(Debug)]
pub(crate) struct Folders {
    top: Arc<OwnedFd>,
    way: Vec<(OsString, Arc<OwnedFd>)>,
}

impl Folders {
    pub(crate) fn below(top: Arc<OwnedFd>) -> Self {
        Self { top, way: Vec::new() }
    }

    /// Opens a folder by the names that lead to it. None of them may lead upwards.
    pub(crate) fn open<'a>(&mut self, site: &Site, names: impl Iterator<Item = &'a OsStr>) -> io::Result<Arc<OwnedFd>> {
        let mut depth = 0;
        for name in names {
            if self.way.get(depth).is_none_or(|(known, _)| known != name) {
                self.way.truncate(depth);
                let folder = site.make_folder(self.last(), name)?;
                self.way.push((name.to_owned(), Arc::new(folder)));
            }
            depth += 1;
        }
        self.way.truncate(depth);
        Ok(Arc::clone(self.last()))
    }

    fn last(&self) -> &Arc<OwnedFd> {
        self.way.last().map_or(&self.top, |(_, folder)| folder)
    }
}
