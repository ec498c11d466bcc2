//! The folder into which objects are put. A training has chosen their names, and anything may exist there already. So
//! nothing below the folder is reached by a link, and nothing but a plain file is replaced.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fd::OwnedFd;
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{Object, Trouble};
use spotsweep_protocol::failure::{Context, Failure};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// How many names to try. Killed pulls may have left files with such names.
const MOST_NAMES: u32 = 1_000;
const PART: &str = ".spotsweep-";
const PART_END: &str = ".part";

/// Whether the name is that of an incomplete file.
pub(super) fn is_part_name(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(PART) && name.ends_with(PART_END))
}

/// What to do with something that exists at an object's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Present {
    /// Keep it. A plain file of the same size that is not older than the object is taken for the object. A link is an
    /// error.
    Keep,
    /// Replace it, even if it is a link.
    Replace,
}

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    root: OwnedFd,
    present: Present,
    /// Device and inode of each file that is an object, with the object's path. A file system may treat two names as
    /// one, such as `Model` and `model`.
    taken: Mutex<HashMap<(u64, u64), PathBuf>>,
}

/// An incomplete file. If it still exists when this is dropped, it is removed.
#[derive(Debug)]
pub(super) struct Part {
    folder: OwnedFd,
    name: OsString,
    file: File,
    is_kept: bool,
}

impl Folder {
    /// Opens a folder, and makes it if it does not exist.
    pub(super) fn open(path: &Path, present: Present) -> Result<Self, Failure> {
        let cannot_write = || format!("cannot write into the folder {}", path.display());
        // An empty path is the current folder, as for `create_dir_all` and `Path::parent`.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        fs::create_dir_all(path).context(cannot_write)?;
        let root = rustix::fs::open(path, FOLDER, Mode::empty()).context(cannot_write)?;
        rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK).context(cannot_write)?;
        Ok(Self { root, present, taken: Mutex::default() })
    }

    /// Whether the object's file exists.
    pub(super) fn has(&self, object: &Object) -> Result<bool, Trouble> {
        if self.present == Present::Replace {
            return Ok(false);
        }
        let Some(found) = self.look(object)? else { return Ok(false) };
        let is_object = is_plain(&found) && is_as_new(&found, object);
        if is_object {
            self.take(&found, object)?;
        }
        Ok(is_object)
    }

    /// What exists at the object's path.
    fn look(&self, object: &Object) -> Result<Option<Stat>, Trouble> {
        let (mut folder, name) = (None, name(object));
        for part in object.path.parent().into_iter().flat_map(Path::iter) {
            match rustix::fs::openat(
                folder.as_ref().unwrap_or(&self.root),
                part,
                FOLDER | OFlags::NOFOLLOW,
                Mode::empty(),
            ) {
                Ok(opened) => folder = Some(opened),
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => return Err(in_the_way(folder.as_ref().unwrap_or(&self.root), part, object, error)),
            }
        }
        look_at(folder.as_ref().unwrap_or(&self.root), name, object)
    }

    /// Makes a new file next to the object's path, and the folders above it.
    pub(super) fn part(&self, object: &Object) -> Result<Part, Trouble> {
        let cannot_write = |error: Errno| Trouble::writing(object, error);
        let mut folder = rustix::fs::openat(&self.root, ".", FOLDER, Mode::empty()).map_err(cannot_write)?;
        for part in object.path.parent().into_iter().flat_map(Path::iter) {
            match rustix::fs::mkdirat(&folder, part, Mode::from(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(cannot_write(error)),
            }
            let opened = rustix::fs::openat(&folder, part, FOLDER | OFlags::NOFOLLOW, Mode::empty());
            folder = opened.map_err(|error| in_the_way(&folder, part, object, error))?;
        }
        self.free(&folder, object)?;
        Part::create(folder).map_err(cannot_write)
    }

    /// Gives a complete file its own name.
    pub(super) fn keep(&self, mut part: Part, object: &Object) -> Result<(), Trouble> {
        let times = FileTimes::new().set_modified(object.put_at);
        part.file.set_times(times).map_err(|error| Trouble::writing(object, error))?;
        // This happens for one file after the other, so that the next one of the same name sees this one.
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = self.free(&part.folder, object)? {
            is_other(&taken, &found, object)?;
        }
        let cannot_write = |error: Errno| Trouble::writing(object, error);
        rustix::fs::renameat(&part.folder, &part.name, &part.folder, name(object)).map_err(cannot_write)?;
        part.is_kept = true;
        let kept = rustix::fs::fstat(&part.file).map_err(cannot_write)?;
        taken.insert(identity(&kept), object.path.clone());
        Ok(())
    }

    /// What exists at the object's path, if that may be replaced.
    fn free(&self, folder: &OwnedFd, object: &Object) -> Result<Option<Stat>, Trouble> {
        let found = look_at(folder, name(object), object)?;
        let Some(kind) = found.as_ref().map(kind) else { return Ok(None) };
        let path = object.path.display();
        let what = match kind {
            FileType::RegularFile => return Ok(found),
            FileType::Symlink if self.present == Present::Replace => return Ok(found),
            FileType::Symlink => "a link",
            FileType::Directory => "a folder",
            _other => "no plain file",
        };
        Err(Trouble::of(&object.key, format!("what lies at {path} is {what}: move it away, or pull to another folder")))
    }

    fn take(&self, found: &Stat, object: &Object) -> Result<(), Trouble> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        is_other(&taken, found, object)?;
        taken.insert(identity(found), object.path.clone());
        Ok(())
    }
}

/// Fails if the file at the object's path is another object. A file with several links may have two names.
fn is_other(taken: &HashMap<(u64, u64), PathBuf>, found: &Stat, object: &Object) -> Result<(), Trouble> {
    match taken.get(&identity(found)).filter(|other| **other != object.path) {
        Some(other) if found.st_nlink < 2 => Err(Trouble::of(
            &object.key,
            format!("this file system takes its name for that of {}: pull to another one", other.display()),
        )),
        Some(_) | None => Ok(()),
    }
}

fn name(object: &Object) -> &OsStr {
    // The path of a listed object has a name.
    object.path.file_name().unwrap_or_default()
}

#[allow(clippy::unnecessary_cast, reason = "the types differ from system to system")]
fn identity(found: &Stat) -> (u64, u64) {
    (found.st_dev as u64, found.st_ino as u64)
}

fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

fn is_plain(found: &Stat) -> bool {
    kind(found) == FileType::RegularFile
}

fn is_as_new(found: &Stat, object: &Object) -> bool {
    let modified = u64::try_from(found.st_mtime).unwrap_or(0);
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(modified);
    u64::try_from(found.st_size) == Ok(object.bytes) && modified >= object.put_at
}

fn look_at(folder: &OwnedFd, name: &OsStr, object: &Object) -> Result<Option<Stat>, Trouble> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(Trouble::writing(object, error)),
    }
}

/// Why a part of the object's path cannot be opened.
fn in_the_way(folder: &OwnedFd, part: &OsStr, object: &Object, error: Errno) -> Trouble {
    let found = rustix::fs::statat(folder, part, AtFlags::SYMLINK_NOFOLLOW);
    let what = match found.map(|found| kind(&found)) {
        Ok(FileType::Symlink) => "a link, which is not followed",
        Ok(FileType::Directory) | Err(_) => return Trouble::writing(object, error),
        Ok(_other) => "no folder",
    };
    let (path, part) = (object.path.display(), part.display());
    Trouble::of(&object.key, format!("in {path}, {part} is {what}: move it away, or pull to another folder"))
}

impl Part {
    fn create(folder: OwnedFd) -> Result<Self, Errno> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..MOST_NAMES {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = OsString::from(format!("{PART}{}-{number}{PART_END}", std::process::id()));
            match rustix::fs::openat(&folder, &name, flags, Mode::from(0o666)) {
                Err(Errno::EXIST) => {}
                opened => return Ok(Self { file: File::from(opened?), folder, name, is_kept: false }),
            }
        }
        Err(Errno::EXIST)
    }

    /// Opens the file for writing.
    pub(super) fn file(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_kept {
            // An error is ignored, because nothing more can be done.
            let _ = rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests;
