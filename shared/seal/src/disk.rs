//! What the seal needs of a file system.
//!
//! The runner has a mounted volume ([`MountedDisk`]); the simulation has volumes in memory, which lose what was not
//! written out when their instance is lost.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::fchown;
use std::path::{Path, PathBuf};

use rustix::fs::{ioctl_ficlone, syncfs};
use serde::{Deserialize, Serialize};
use spotsweep_checkpoint_formats::Content;

/// Tells one content of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The file's length.
    pub bytes: u64,
    /// When it was modified, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// A file put in place by rename is another one.
    pub inode: u64,
}

/// A file system. Every function fails as the system call of the same name does.
#[expect(clippy::missing_errors_doc, reason = "stated once, above")]
pub trait Disk {
    /// Every regular file below `folder` by its path there. Names that are not UTF-8 are left out, as JSON cannot hold
    /// them, and so is what is removed meanwhile. A folder that does not exist is empty.
    fn files(&self, folder: &Path) -> io::Result<BTreeMap<String, Stamp>>;

    /// Every folder below `folder` in which nothing is, by its path there.
    fn empty_folders(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// The stamp of one file.
    fn stamp(&self, file: &Path) -> io::Result<Stamp>;

    /// Opens a file to read it.
    fn open(&self, file: &Path) -> io::Result<Box<dyn Content>>;

    /// Creates or overwrites a file, in place.
    fn write(&self, file: &Path, content: &[u8]) -> io::Result<()>;

    /// Renames a file or folder, and creates the folder that it goes to.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Copies a file with its owner and time, in place of what is there, and creates the folder that it goes to.
    fn copy(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a further name, and creates the folder of it.
    fn hard_link(&self, file: &Path, name: &Path) -> io::Result<()>;

    /// The symbolic links in `folder`, with their targets.
    fn symbolic_links(&self, folder: &Path) -> io::Result<Vec<(PathBuf, PathBuf)>>;

    /// Makes a symbolic link, in place of the file or link that is there.
    fn symbolic_link(&self, link: &Path, target: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove_file(&self, file: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    fn remove_folder(&self, folder: &Path) -> io::Result<()>;

    /// The path without symbolic links.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;

    /// Writes a file out, and the folder that has its name.
    fn sync(&self, file: &Path) -> io::Result<()>;

    /// Writes out the whole file system of which `folder` is a part.
    fn sync_all(&self, folder: &Path) -> io::Result<()>;
}

/// The file systems of this machine.
#[derive(Debug, Clone, Copy)]
pub struct MountedDisk;

impl Disk for MountedDisk {
    fn files(&self, folder: &Path) -> io::Result<BTreeMap<String, Stamp>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            let entries = match fs::read_dir(&next) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            for path in entries.flatten().map(|entry| entry.path()) {
                let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
                let name = path.strip_prefix(folder).ok().and_then(Path::to_str);
                match name {
                    Some(_) if metadata.is_dir() => folders.push(path),
                    Some(name) if metadata.is_file() => {
                        found.insert(name.to_owned(), stamp(&metadata));
                    }
                    Some(_) | None => {}
                }
            }
        }
        Ok(found)
    }

    fn empty_folders(&self, folder: &Path) -> io::Result<Vec<String>> {
        let (mut empty, mut folders) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(next) = folders.pop() {
            let Ok(entries) = fs::read_dir(&next) else { continue };
            let entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            if entries.is_empty() {
                empty.extend(next.strip_prefix(folder).ok().and_then(Path::to_str).map(str::to_owned));
            }
            folders.extend(entries.into_iter().filter(|path| path.is_dir() && !path.is_symlink()));
        }
        Ok(empty)
    }

    fn stamp(&self, file: &Path) -> io::Result<Stamp> {
        Ok(stamp(&fs::metadata(file)?))
    }

    fn open(&self, file: &Path) -> io::Result<Box<dyn Content>> {
        Ok(Box::new(File::open(file)?))
    }

    fn write(&self, file: &Path, content: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut File::create(file)?, content)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        create_folder_of(to)?;
        fs::rename(from, to)
    }

    /// The copy shares the file's blocks where the file system can do that, as XFS does.
    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        create_folder_of(to)?;
        let source = File::open(from)?;
        let target = File::create(to)?;
        if ioctl_ficlone(&target, &source).is_err() {
            fs::copy(from, to)?;
        }
        let found = source.metadata()?;
        target.set_permissions(found.permissions())?;
        target.set_modified(found.modified()?)?;
        let (user, group) = (std::os::unix::fs::MetadataExt::uid(&found), std::os::unix::fs::MetadataExt::gid(&found));
        fchown(&target, Some(user), Some(group))
    }

    fn hard_link(&self, file: &Path, name: &Path) -> io::Result<()> {
        create_folder_of(name)?;
        fs::hard_link(file, name)
    }

    fn symbolic_links(&self, folder: &Path) -> io::Result<Vec<(PathBuf, PathBuf)>> {
        let entries = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
        Ok(entries.filter_map(|path| fs::read_link(&path).ok().map(|target| (path, target))).collect())
    }

    fn symbolic_link(&self, link: &Path, target: &Path) -> io::Result<()> {
        match fs::remove_file(link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        std::os::unix::fs::symlink(target, link)
    }

    fn remove_file(&self, file: &Path) -> io::Result<()> {
        fs::remove_file(file)
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        fs::remove_dir(folder)
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn sync(&self, file: &Path) -> io::Result<()> {
        File::open(file)?.sync_all()?;
        // The name is an entry of the folder, not of the file.
        file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }

    fn sync_all(&self, folder: &Path) -> io::Result<()> {
        Ok(syncfs(File::open(folder)?)?)
    }
}

fn stamp(metadata: &fs::Metadata) -> Stamp {
    const NANOSECONDS: i64 = 1_000_000_000;
    use std::os::unix::fs::MetadataExt;
    Stamp {
        bytes: metadata.len(),
        modified_ns: metadata.mtime().saturating_mul(NANOSECONDS).saturating_add(metadata.mtime_nsec()),
        inode: metadata.ino(),
    }
}

fn create_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}
