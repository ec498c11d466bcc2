//! Functions that change a folder.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{
    AtFlags, FallocateFlags, Mode, OFlags, fallocate, fchown, ioctl_ficlone, linkat, mkdirat, renameat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;

use crate::folder::{Folder, at, names};
use crate::status::{Status, ids};

/// Every function fails like the system call of the same name.
#[expect(clippy::missing_errors_doc, reason = "stated once, above")]
impl Folder {
    /// Opens the folder at `path`, and makes it if it is missing. A new folder belongs to the owner of the folder
    /// around it, so that a training can write in it.
    pub fn make_folder(&self, path: &Path) -> io::Result<Self> {
        let mut folder = self.folder(Path::new(""))?;
        for name in names(path)? {
            let name = Path::new(name);
            let made = mkdirat(&folder.handle, name, Mode::from_raw_mode(0o755));
            let child = folder.folder(name)?;
            match made {
                Ok(()) => child.give_to(folder.own_status()?.owner)?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(at(errno, path)),
            }
            folder = child;
        }
        Ok(folder)
    }

    fn make_folder_of(&self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |parent| self.make_folder(parent).map(drop))
    }

    /// Makes a new file, in place of an existing file or link.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        self.clear(path)?;
        self.open_plain(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    /// Makes a new file with this content. A file that could not be written as a whole is removed.
    pub fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let written = self.create(path)?.write_all(content);
        if written.is_err() {
            // The first error has the reason, so an error of the removal is dropped.
            let _ = self.remove_file(path);
        }
        written
    }

    /// Opens the regular file at `path` to read it and to append to it. Makes it if it is missing.
    pub fn append(&self, path: &Path) -> io::Result<File> {
        self.open_plain(path, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)
    }

    /// Renames a file, link or folder, and makes the folder of the new name.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.make_folder_of(to)?;
        let ((old, old_name), (new, new_name)) = (self.parent(from)?, self.parent(to)?);
        renameat(&old.handle, old_name, &new.handle, new_name).map_err(|errno| at(errno, from))
    }

    /// Copies a regular file with its owner, permissions and time, in place of an existing file, and makes the folder
    /// of the copy. The copy shares the file's blocks if the file system can do that, as XFS can. A copy that is not
    /// whole is removed.
    pub fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.make_folder_of(to)?;
        let mut source = self.open(from)?;
        let mut target = self.create(to)?;
        let copied = fill(&mut source, &mut target);
        if copied.is_err() {
            // The first error has the reason, so an error of the removal is dropped.
            let _ = self.remove_file(to);
        }
        copied
    }

    /// Gives a file another name, and makes the folder of that name.
    pub fn hard_link(&self, file: &Path, name: &Path) -> io::Result<()> {
        self.make_folder_of(name)?;
        let ((old, old_name), (new, new_name)) = (self.parent(file)?, self.parent(name)?);
        linkat(&old.handle, old_name, &new.handle, new_name, AtFlags::empty()).map_err(|errno| at(errno, file))
    }

    /// Makes a symbolic link, in place of an existing file or link.
    pub fn symbolic_link(&self, link: &Path, target: &Path) -> io::Result<()> {
        self.clear(link)?;
        let (parent, name) = self.parent(link)?;
        symlinkat(target, &parent.handle, name).map_err(|errno| at(errno, link))
    }

    /// Removes a file or link.
    pub fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.unlink(path, AtFlags::empty())
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.unlink(path, AtFlags::REMOVEDIR)
    }

    /// Removes the file or link at `path`, if it exists.
    fn clear(&self, path: &Path) -> io::Result<()> {
        match self.remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn unlink(&self, path: &Path, flags: AtFlags) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(unlinkat(&parent.handle, name, flags)?)
    }

    /// Makes a file of `bytes` bytes, for which the file system has reserved the space.
    pub fn allocate(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let file = self.create(path)?;
        let allocated = fallocate(&file, FallocateFlags::empty(), 0, bytes);
        if allocated.is_err() {
            // The first error has the reason, so an error of the removal is dropped.
            let _ = self.remove_file(path);
        }
        Ok(allocated?)
    }
}

fn fill(source: &mut File, target: &mut File) -> io::Result<()> {
    if ioctl_ficlone(&*target, &*source).is_err() {
        io::copy(source, target)?;
    }
    let found = source.metadata()?;
    // The owner comes first, because changing it removes some permissions.
    let (uid, gid) = ids(Status::of(source)?.owner);
    fchown(&*target, uid, gid)?;
    target.set_permissions(found.permissions())?;
    target.set_modified(found.modified()?)
}
