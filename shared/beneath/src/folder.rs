//! A handle of a folder, from which the paths below it are opened.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, fchmod, fchown, fstatvfs, open, openat, readlinkat, statat, syncfs};
use rustix::io::Errno;

use crate::odd;
use crate::status::{Kind, Owner, Status, ids};

/// Linux's `PATH_MAX`, in bytes.
const LONGEST_PATH: usize = 4096;

/// The flags of a folder that is only opened to open names in it, and never through a link.
const ON_THE_WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The flags of an open call that must not wait.
pub(crate) const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// An open folder. Paths are relative to it, and those that lead out of it are refused.
#[derive(Debug)]
pub struct Folder {
    pub(crate) handle: OwnedFd,
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: OsString,
    /// The name's kind, size and owner.
    pub status: Status,
}

/// Every function fails like the system call of the same name.
#[expect(clippy::missing_errors_doc, reason = "stated once, above")]
impl Folder {
    /// Opens a folder by a path that only the runner can change, so links on the way are followed.
    pub fn trusted(path: &Path) -> io::Result<Self> {
        let handle = open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { handle })
    }

    /// Opens a folder like [`Self::trusted`], and makes it if it is missing.
    pub fn made(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        Self::trusted(path)
    }

    /// Opens the folder at `path`; this folder if the path is empty.
    pub fn folder(&self, path: &Path) -> io::Result<Self> {
        let mut folder = Self { handle: self.handle.try_clone()? };
        for name in names(path)? {
            folder = folder.child(name).map_err(|errno| at(errno, path))?;
        }
        Ok(folder)
    }

    fn child(&self, name: &OsStr) -> Result<Self, Errno> {
        openat(&self.handle, name, ON_THE_WAY, Mode::empty()).map(|handle| Self { handle })
    }

    /// Opens the folder that has the last name of `path`, and returns that name too.
    pub(crate) fn parent<'a>(&self, path: &'a Path) -> io::Result<(Self, &'a OsStr)> {
        let name = path.file_name().ok_or_else(|| odd(path))?;
        Ok((self.folder(path.parent().unwrap_or(Path::new("")))?, name))
    }

    /// Opens the regular file at `path` to read it.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        self.open_plain(path, OFlags::RDONLY)
    }

    pub(crate) fn open_plain(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let (parent, name) = self.parent(path)?;
        let opened = openat(&parent.handle, name, flags | PLAIN, Mode::from_raw_mode(0o644));
        let file = File::from(opened.map_err(|errno| at(errno, path))?);
        if Status::of(&file)?.kind == Kind::File { Ok(file) } else { Err(odd(path)) }
    }

    /// Returns the status of the name at `path`.
    pub fn status(&self, path: &Path) -> io::Result<Status> {
        let (parent, name) = self.parent(path)?;
        let stat = statat(&parent.handle, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| at(errno, path))?;
        Ok(Status::from(&stat))
    }

    /// Returns the status of this folder itself.
    pub fn own_status(&self) -> io::Result<Status> {
        Status::of_handle(&self.handle)
    }

    /// Returns the names in the folder. Names that are removed meanwhile are left out.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut found = Vec::new();
        for entry in Dir::new(self.itself()?)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if let Ok(stat) = statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                found.push(Entry { name: name.to_owned(), status: Status::from(&stat) });
            }
        }
        Ok(found)
    }

    /// Calls `look` for this folder and for every one below it, each with its path from here and its entries. Folders
    /// that are removed meanwhile are left out, and so are paths that are too long for the kernel.
    pub fn walk(&self, mut look: impl FnMut(&Path, &[Entry])) -> io::Result<()> {
        let mut folders = vec![PathBuf::new()];
        while let Some(next) = folders.pop() {
            let entries = match self.folder(&next).and_then(|folder| folder.entries()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            let below = entries.iter().filter(|entry| entry.status.kind == Kind::Folder);
            let below = below.map(|entry| next.join(&entry.name));
            folders.extend(below.filter(|path| path.as_os_str().len() < LONGEST_PATH));
            look(&next, &entries);
        }
        Ok(())
    }

    /// Returns the target of the link at `path`.
    pub fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let (parent, name) = self.parent(path)?;
        let target = readlinkat(&parent.handle, name, Vec::new()).map_err(|errno| at(errno, path))?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Gives the folder to `owner`, unless it belongs to that user already.
    pub fn give_to(&self, owner: Owner) -> io::Result<()> {
        let (uid, gid) = ids(owner);
        if self.own_status()?.owner == owner { Ok(()) } else { Ok(fchown(self.itself()?, uid, gid)?) }
    }

    /// Sets the bits of the folder's permissions.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        Ok(fchmod(self.itself()?, Mode::from_bits_truncate(mode))?)
    }

    /// Writes the folder's names to the disk.
    pub fn sync(&self) -> io::Result<()> {
        File::from(self.itself()?).sync_all()
    }

    /// Writes the whole file system of the folder to the disk.
    pub fn sync_all(&self) -> io::Result<()> {
        Ok(syncfs(self.itself()?)?)
    }

    /// Returns the bytes that a user without privileges may still write to the folder's file system.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let found = fstatvfs(self.itself()?)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Returns the size of the folder's file system, in bytes.
    pub fn total_bytes(&self) -> io::Result<u64> {
        let found = fstatvfs(self.itself()?)?;
        Ok(found.f_blocks.saturating_mul(found.f_frsize))
    }

    /// Opens a handle that allows more than opening names from it.
    fn itself(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(self.handle.as_fd(), ".", flags, Mode::empty())?)
    }
}

/// Returns the names of a path that only leads downwards.
pub(crate) fn names(path: &Path) -> io::Result<Vec<&OsStr>> {
    let name = |component| match component {
        Component::Normal(name) => Some(Ok(name)),
        Component::CurDir => None,
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => Some(Err(odd(path))),
    };
    path.components().filter_map(name).collect()
}

/// Returns the error of a call for `path`. A link or something else in the way gives the error of [`odd`].
pub(crate) fn at(errno: Errno, path: &Path) -> io::Error {
    match errno {
        // ENXIO means a socket, or a pipe without a reader. EISDIR means a folder that was to be written.
        Errno::LOOP | Errno::NOTDIR | Errno::NXIO | Errno::ISDIR => odd(path),
        errno => errno.into(),
    }
}
