//! The command's own view of device folders, from which some files are missing.
//!
//! The command gets its own mount namespace. The folders themselves do not change, neither for the runner nor for the
//! host, whose `/dev` one of them may be. The code runs in the child between fork and exec, while it still has its
//! privileges.
#![expect(clippy::disallowed_methods, reason = "/dev is the host's: a training has no capability to change it")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, DirEntry, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change};
use rustix::thread::UnshareFlags;

use crate::log::say;

/// Hides these files from the command.
pub(crate) fn hide(files: &[PathBuf]) -> io::Result<()> {
    let mut folders: BTreeMap<&Path, BTreeSet<&OsStr>> = BTreeMap::new();
    for file in files {
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { continue };
        folders.entry(folder).or_default().insert(name);
    }
    if folders.is_empty() {
        return Ok(());
    }
    // It is deprecated because of the danger of another flag, UnshareFlags::FILES.
    #[expect(deprecated, reason = "its replacement is an unsafe function, which no crate of this workspace may call")]
    let unshared = rustix::thread::unshare(UnshareFlags::NEWNS);
    match unshared {
        Ok(()) => {}
        Err(Errno::PERM) => {
            say("without privileges other trials' GPUs cannot be hidden: only CUDA_VISIBLE_DEVICES keeps them apart");
            return Ok(());
        }
        Err(errno) => return Err(errno.into()),
    }
    // A mount made here does not appear outside; an unmount outside also happens here.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    folders.into_iter().try_for_each(|(folder, hidden)| cover(folder, &hidden))
}

/// Mounts a new folder over `folder`, with all its entries except `hidden`.
fn cover(folder: &Path, hidden: &BTreeSet<&OsStr>) -> io::Result<()> {
    let covered = open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mode = fs::metadata(folder)?.permissions();
    mount("tmpfs", folder, "tmpfs", MountFlags::NOSUID | MountFlags::NOEXEC, Some(c"size=1m"))?;
    // The path to the entries below the mount.
    for entry in fs::read_dir(format!("/proc/self/fd/{}", covered.as_raw_fd()))? {
        let entry = entry?;
        if !hidden.contains(entry.file_name().as_os_str()) {
            repeat(&entry, &folder.join(entry.file_name()))?;
        }
    }
    fs::set_permissions(folder, mode)
}

/// Puts the same file at another path.
fn repeat(entry: &DirEntry, to: &Path) -> io::Result<()> {
    let from = entry.path();
    let found = entry.metadata()?;
    let kind = FileType::from_raw_mode(found.mode());
    match kind {
        FileType::Symlink => symlink(fs::read_link(from)?, to),
        FileType::CharacterDevice | FileType::BlockDevice => {
            mknodat(CWD, to, kind, Mode::empty(), found.rdev())?;
            chown(to, Some(found.uid()), Some(found.gid()))?;
            fs::set_permissions(to, Permissions::from_mode(found.mode()))
        }
        FileType::Directory => {
            fs::create_dir(to)?;
            Ok(mount_bind_recursive(from, to)?)
        }
        FileType::RegularFile | FileType::Socket | FileType::Fifo | FileType::Unknown => {
            fs::write(to, "")?;
            Ok(mount_bind(from, to)?)
        }
    }
}
