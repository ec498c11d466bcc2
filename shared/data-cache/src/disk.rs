//! What is on the disk besides one data set, and room for it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, statvfs};

use crate::error::DataError;
use crate::folder::{SetFolder, open_lock};
use crate::next::{Content, Disk, Hold, Other, Room, room};

/// The length of a set's name: the hexadecimal digits of a SHA-256.
const ID_LENGTH: usize = 64;
const ROOM: &str = "make room on the disk for the data set";

/// The cache's folder, as one data set sees it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The cache's folder.
    pub(crate) root: PathBuf,
    /// The set's name.
    pub(crate) id: String,
    /// The kernel's number of the present boot.
    pub(crate) boot: String,
}

/// The sets that are not in use, with their exclusive locks.
pub(crate) type Idle = BTreeMap<String, SetFolder>;

impl Place {
    /// Looks at the disk. The lock of its room must be held. As long as the caller keeps the locks that it gets,
    /// other runners wait for these sets.
    pub(crate) fn look(&self) -> io::Result<(Disk, Idle)> {
        let (mut others, mut idle) = (Vec::new(), Idle::new());
        for id in other_sets(&self.root, &self.id)? {
            let folder = SetFolder::make(&self.root, &id)?;
            let is_in_use = folder.take(Hold::Exclusive)? != Hold::Exclusive;
            let content = folder.content(&self.boot);
            let noted = folder.progress().unwrap_or_default();
            let (bytes, to_come) = match content {
                Content::Nothing => continue,
                Content::Complete => (folder.complete().map_or(0, |complete| complete.bytes), 0),
                Content::Leftovers if is_in_use => (noted.bytes, noted.to_come),
                Content::Leftovers => (folder.count_bytes()?, 0),
            };
            let is_complete = content == Content::Complete;
            others.push(Other { id: id.clone(), bytes, to_come, last_use: folder.last_use(), is_complete, is_in_use });
            if !is_in_use {
                idle.insert(id, folder);
            }
        }
        let found = statvfs(&self.root)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok((Disk { size: bytes(found.f_blocks), free: bytes(found.f_bavail), others }, idle))
    }

    /// Makes room for more bytes than were reserved. Waits for the lock of the room.
    pub(crate) fn make_room(&self, bytes: u64) -> Result<(), DataError> {
        let failed = DataError::disk(ROOM);
        let lock = open_lock(&self.root).map_err(&failed)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
        loop {
            let (disk, idle) = self.look().map_err(&failed)?;
            match room(&disk, bytes) {
                Room::Enough => return Ok(()),
                Room::Evict(id) => evict(idle, &id).map_err(&failed)?,
                Room::Lacking(shortage) => return Err(DataError::DoesNotFit(shortage)),
            }
        }
    }
}

/// Removes an idle set. The others can be used meanwhile.
pub(crate) fn evict(mut idle: Idle, id: &str) -> io::Result<()> {
    let set = idle.remove(id);
    drop(idle);
    set.map_or(Ok(()), |set| set.clear())
}

/// Returns the names of the sets that have a folder, without one of them.
fn other_sets(root: &Path, own: &str) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let is_id =
            |name: &String| name != own && name.len() == ID_LENGTH && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if entry.file_type()?.is_dir() {
            found.extend(entry.file_name().into_string().ok().filter(is_id));
        }
    }
    Ok(found)
}
