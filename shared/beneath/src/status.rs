//! The status of a file, as the kernel reports it.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{FileType, Gid, Mode, Stat, Uid, fchown, fstat};

const NANOSECONDS: i64 = 1_000_000_000;
/// The unit of `st_blocks` (stat(3type)).
const BLOCK_BYTES: u64 = 512;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, a socket, or a device.
    Other,
}

/// The owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

/// The status of one file, as stat(2) returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The file's kind.
    pub kind: Kind,
    /// The file's length in bytes.
    pub bytes: u64,
    /// The bytes that the file takes up. A file may have holes.
    pub allocated: u64,
    /// The modification time, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// The file's number in the file system.
    pub inode: u64,
    /// The file's owner.
    pub owner: Owner,
    /// The bits of the file's permissions.
    pub mode: u32,
}

impl Status {
    /// Returns the status of an open file.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn of(file: &File) -> io::Result<Self> {
        Self::of_handle(file)
    }

    pub(crate) fn of_handle(handle: impl AsFd) -> io::Result<Self> {
        Ok(Self::from(&fstat(handle)?))
    }

    /// Whether a user with these groups may read the file by its mode. Its owner counts, because it may give itself
    /// that permission.
    pub fn is_readable_by(&self, uid: u32, groups: &[u32]) -> bool {
        let by_group = groups.contains(&self.owner.gid) && self.mode & Mode::RGRP.bits() != 0;
        uid == 0 || self.owner.uid == uid || by_group || self.mode & Mode::ROTH.bits() != 0
    }

    /// Whether only the user with this uid may write the file.
    pub fn is_writable_only_by(&self, uid: u32) -> bool {
        self.owner.uid == uid && self.mode & (Mode::WGRP | Mode::WOTH).bits() == 0
    }
}

impl From<&Stat> for Status {
    fn from(stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Link,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Kind::Other,
        };
        let (seconds, nanoseconds) = (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or_default());
        Self {
            kind,
            bytes: u64::try_from(stat.st_size).unwrap_or_default(),
            allocated: u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(BLOCK_BYTES),
            modified_ns: seconds.saturating_mul(NANOSECONDS).saturating_add(nanoseconds),
            inode: stat.st_ino,
            owner: Owner { uid: stat.st_uid, gid: stat.st_gid },
            mode: Mode::from_raw_mode(stat.st_mode).bits(),
        }
    }
}

/// Gives an open file to `owner`, unless it belongs to that user already.
///
/// # Errors
/// As fchown(2).
pub fn give_file(file: &File, owner: Owner) -> io::Result<()> {
    let (uid, gid) = ids(owner);
    if Status::of(file)?.owner == owner { Ok(()) } else { Ok(fchown(file, uid, gid)?) }
}

pub(crate) fn ids(owner: Owner) -> (Option<Uid>, Option<Gid>) {
    (Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid)))
}
