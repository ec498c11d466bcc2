//! The functions of a file system that the seal needs.
//!
//! The runner has a mounted volume ([`MountedDisk`]). The simulation has volumes in memory, which lose what was not
//! written out when their instance is lost.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use spotsweep_beneath::{Entry, Folder, Kind, Status, is_odd};
use spotsweep_checkpoint_formats::{Completeness, Content, completeness_by, may_mix_versions};

/// Distinguishes two contents of a file without reading them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The file's length.
    pub bytes: u64,
    /// When it was modified, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Another inode means that another file was put in place by a rename.
    pub inode: u64,
}

/// A file system. Every function fails as the system call of the same name does.
#[expect(clippy::missing_errors_doc, reason = "stated once, above")]
pub trait Disk {
    /// Every regular file below `folder` by its path there. Leaves out names that are not UTF-8, because JSON cannot
    /// hold them, and files that are removed meanwhile. A folder that does not exist is empty.
    fn files(&self, folder: &Path) -> io::Result<BTreeMap<String, Stamp>>;

    /// Every empty folder below `folder`, by its path there.
    fn empty_folders(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// The stamp of one file.
    fn stamp(&self, file: &Path) -> io::Result<Stamp>;

    /// Opens a file to read it.
    fn open(&self, file: &Path) -> io::Result<Box<dyn Content>>;

    /// Creates a file and replaces an existing one.
    fn write(&self, file: &Path, content: &[u8]) -> io::Result<()>;

    /// Renames a file or folder, and creates the target's folder.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Copies a file with its owner and time, replaces an existing file, and creates the target's folder.
    fn copy(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Sets the time of a file's last modification, in nanoseconds since 1970.
    fn set_modified(&self, file: &Path, modified_ns: i64) -> io::Result<()>;

    /// Gives a file another name, and creates the folder of that name.
    fn hard_link(&self, file: &Path, name: &Path) -> io::Result<()>;

    /// Makes a file of so many bytes, reserves room for them, and replaces an existing file.
    fn allocate(&self, file: &Path, bytes: u64) -> io::Result<()>;

    /// Bytes that an unprivileged user may still write to the file system that contains `folder`.
    fn free_bytes(&self, folder: &Path) -> io::Result<u64>;

    /// The size of the file system that contains `folder`, in bytes.
    fn total_bytes(&self, folder: &Path) -> io::Result<u64>;

    /// The symbolic links in `folder`, with their targets.
    fn symbolic_links(&self, folder: &Path) -> io::Result<Vec<(PathBuf, PathBuf)>>;

    /// Makes a symbolic link, and replaces an existing file or link.
    fn symbolic_link(&self, link: &Path, target: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove_file(&self, file: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    fn remove_folder(&self, folder: &Path) -> io::Result<()>;

    /// The path without symbolic links.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;

    /// What the format of a file says about it.
    fn completeness(&self, file: &Path) -> io::Result<Completeness> {
        completeness_by(file, &|path| self.open(path))
    }

    /// Whether a file may mix bytes of two versions without its format showing it.
    fn may_mix(&self, file: &Path) -> io::Result<bool> {
        may_mix_versions(file, &|path| self.open(path))
    }

    /// Writes out a file and the folder that has its name.
    fn sync(&self, file: &Path) -> io::Result<()>;

    /// Writes out the whole file system that contains `folder`.
    fn sync_all(&self, folder: &Path) -> io::Result<()>;
}

/// Whether an operation has failed because the file system is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// A file whose format is to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// A folder whose own path only the runner can change.
    pub root: &'a Path,
    /// The file's path below it.
    pub file: &'a Path,
    /// The bytes that it takes up on the volume.
    pub allocated: u64,
    /// Set when reading is to end.
    pub stopped: &'a AtomicBool,
}

/// Judges the formats of files that a training wrote.
#[expect(clippy::missing_errors_doc, reason = "those of the disk's functions of the same names")]
pub trait Formats: Debug + Send + Sync {
    /// As [`Disk::completeness`].
    fn completeness(&self, judged: Judged<'_>) -> io::Result<Completeness>;

    /// As [`Disk::may_mix`].
    fn may_mix(&self, judged: Judged<'_>) -> io::Result<bool>;
}

/// Reading was ended through [`StopReading`].
#[derive(Debug, thiserror::Error)]
#[error("reading was stopped")]
struct Stopped;

/// The error of what was ended through [`StopReading`].
pub fn stopped() -> io::Error {
    io::Error::other(Stopped)
}

/// Whether the failure of an operation on one file applies to all files: the volume is full, or reading was stopped.
/// Every other failure is about the file, such as a lease of the training on it (fcntl(2), `F_SETLEASE`).
pub(crate) fn is_about_all(error: &io::Error) -> bool {
    is_full(error) || error.get_ref().is_some_and(|inner| inner.is::<Stopped>())
}

/// A folder of this machine and the files below it. A training can write most of them, so no link is followed there;
/// anything but a regular file counts as absent.
#[derive(Debug, Clone)]
pub struct MountedDisk {
    root: PathBuf,
    /// Whether reading was stopped.
    stopped: Arc<AtomicBool>,
    /// What judges formats; `None` for this process.
    formats: Option<Arc<dyn Formats>>,
}

/// This much of a file can always be read: whether a file is a pointer or a checkpoint must not depend on timing.
const ALWAYS_READ: u64 = 1 << 20;

/// Ends what is being read through a [`MountedDisk`].
#[derive(Debug, Clone)]
pub struct StopReading(Arc<AtomicBool>);

impl StopReading {
    /// Makes the reading of large files fail from now on, because it may take longer than the time that is left.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A file whose reading can be stopped.
struct Stoppable {
    file: File,
    stopped: Arc<AtomicBool>,
}

impl Content for Stoppable {
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset >= ALWAYS_READ && self.stopped.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        Content::read_at(&self.file, buffer, offset)
    }

    fn has_hole(&self) -> bool {
        self.file.has_hole()
    }
}

impl MountedDisk {
    /// A disk of the folder `root`, whose own path only the runner can change.
    pub fn below(root: &Path) -> Self {
        Self { root: root.to_owned(), stopped: Arc::default(), formats: None }
    }

    /// The same disk, but `formats` judges the formats of its files.
    pub fn judged_by(self, formats: Arc<dyn Formats>) -> Self {
        Self { formats: Some(formats), ..self }
    }

    /// Another disk of the same folder, and the handle that stops reading through it.
    pub fn stoppable(&self) -> (Self, StopReading) {
        let stopped = Arc::new(AtomicBool::new(false));
        (Self { stopped: Arc::clone(&stopped), ..self.clone() }, StopReading(stopped))
    }

    fn open_root(&self) -> io::Result<Folder> {
        Folder::trusted(&self.root)
    }

    /// The path below the root.
    fn rest<'a>(&self, path: &'a Path) -> io::Result<&'a Path> {
        let outside = || io::Error::other(format!("{} is not below {}", path.display(), self.root.display()));
        path.strip_prefix(&self.root).map_err(|_| outside())
    }

    fn judged<'a>(&'a self, file: &'a Path) -> io::Result<Judged<'a>> {
        let file = self.rest(file)?;
        let status = self.open_root()?.status(file)?;
        Ok(Judged { root: &self.root, file, allocated: status.allocated, stopped: &self.stopped })
    }

    /// Looks at `folder` and everything below it. Looks at nothing if it does not exist.
    fn walk(&self, folder: &Path, look: impl FnMut(&Path, &[Entry])) -> io::Result<()> {
        match self.open_root()?.folder(self.rest(folder)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_odd(&error) => Ok(()),
            opened => opened?.walk(look),
        }
    }
}

impl Disk for MountedDisk {
    fn files(&self, folder: &Path) -> io::Result<BTreeMap<String, Stamp>> {
        let mut found = BTreeMap::new();
        self.walk(folder, |below, entries| {
            for Entry { name, status } in entries.iter().filter(|entry| entry.status.kind == Kind::File) {
                if let Some(path) = below.join(name).to_str() {
                    found.insert(path.to_owned(), stamp(status));
                }
            }
        })?;
        Ok(found)
    }

    fn empty_folders(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut empty = Vec::new();
        self.walk(folder, |below, entries| {
            if entries.is_empty() {
                empty.extend(below.to_str().map(str::to_owned));
            }
        })?;
        Ok(empty)
    }

    fn stamp(&self, file: &Path) -> io::Result<Stamp> {
        let status = self.open_root()?.status(self.rest(file)?)?;
        if status.kind == Kind::File { Ok(stamp(&status)) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn open(&self, file: &Path) -> io::Result<Box<dyn Content>> {
        let file = self.open_root()?.open(self.rest(file)?)?;
        Ok(Box::new(Stoppable { file, stopped: Arc::clone(&self.stopped) }))
    }

    fn completeness(&self, file: &Path) -> io::Result<Completeness> {
        match &self.formats {
            Some(formats) => formats.completeness(self.judged(file)?),
            None => completeness_by(file, &|path| self.open(path)),
        }
    }

    fn may_mix(&self, file: &Path) -> io::Result<bool> {
        match &self.formats {
            Some(formats) => formats.may_mix(self.judged(file)?),
            None => may_mix_versions(file, &|path| self.open(path)),
        }
    }

    fn write(&self, file: &Path, content: &[u8]) -> io::Result<()> {
        self.open_root()?.write(self.rest(file)?, content)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.open_root()?.rename(self.rest(from)?, self.rest(to)?)
    }

    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.open_root()?.copy(self.rest(from)?, self.rest(to)?)
    }

    fn set_modified(&self, file: &Path, modified_ns: i64) -> io::Result<()> {
        let since = Duration::from_nanos(modified_ns.unsigned_abs());
        let modified = if modified_ns < 0 { UNIX_EPOCH - since } else { UNIX_EPOCH + since };
        self.open_root()?.open(self.rest(file)?)?.set_modified(modified)
    }

    fn hard_link(&self, file: &Path, name: &Path) -> io::Result<()> {
        self.open_root()?.hard_link(self.rest(file)?, self.rest(name)?)
    }

    fn allocate(&self, file: &Path, bytes: u64) -> io::Result<()> {
        self.open_root()?.allocate(self.rest(file)?, bytes)
    }

    fn free_bytes(&self, folder: &Path) -> io::Result<u64> {
        self.open_root()?.folder(self.rest(folder)?)?.free_bytes()
    }

    fn total_bytes(&self, folder: &Path) -> io::Result<u64> {
        self.open_root()?.folder(self.rest(folder)?)?.total_bytes()
    }

    fn symbolic_links(&self, folder: &Path) -> io::Result<Vec<(PathBuf, PathBuf)>> {
        let here = self.open_root()?.folder(self.rest(folder)?)?;
        let links = here.entries()?.into_iter().filter(|entry| entry.status.kind == Kind::Link);
        let target = |entry: Entry| Some((folder.join(&entry.name), here.read_link(Path::new(&entry.name)).ok()?));
        Ok(links.filter_map(target).collect())
    }

    fn symbolic_link(&self, link: &Path, target: &Path) -> io::Result<()> {
        self.open_root()?.symbolic_link(self.rest(link)?, target)
    }

    fn remove_file(&self, file: &Path) -> io::Result<()> {
        self.open_root()?.remove_file(self.rest(file)?)
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        self.open_root()?.remove_folder(self.rest(folder)?)
    }

    /// Links lead to the root only.
    #[expect(clippy::disallowed_methods, reason = "only the runner can change the path of the root")]
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(self.root.canonicalize()?.join(self.rest(path)?))
    }

    fn sync(&self, file: &Path) -> io::Result<()> {
        let (root, file) = (self.open_root()?, self.rest(file)?);
        root.open(file)?.sync_all()?;
        // The name is an entry of the folder, not of the file.
        file.parent().map_or(Ok(()), |folder| root.folder(folder)?.sync())
    }

    fn sync_all(&self, folder: &Path) -> io::Result<()> {
        self.open_root()?.folder(self.rest(folder)?)?.sync_all()
    }
}

fn stamp(status: &Status) -> Stamp {
    Stamp { bytes: status.bytes, modified_ns: status.modified_ns, inode: status.inode }
}

/// Writes a file completely or not at all, under another name first. It is on disk when this returns.
pub(crate) fn write_whole(disk: &dyn Disk, file: &Path, content: &[u8]) -> io::Result<()> {
    let unfinished = unfinished(file);
    disk.write(&unfinished, content)?;
    disk.sync(&unfinished)?;
    disk.rename(&unfinished, file)?;
    disk.sync(file)
}

/// The name under which the runner writes a file before it renames it to `path`.
pub(crate) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}
