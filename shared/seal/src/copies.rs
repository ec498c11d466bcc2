//! Keeps a version of a file as a copy, or under a second name. See [`kept`](crate::kept).

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Stamp, unfinished};
use crate::kept::kept_path;
use crate::record::Sealed;
use crate::reserve;
use crate::room::{Room, Sizes};
use crate::sealer::Sealer;

/// The most bytes of all copies if the file system cannot share blocks.
const MAX_BYTES: u64 = 1 << 30;

impl Sealer {
    /// Whether a version of `path` is kept; logs the reason if not.
    pub(crate) fn is_kept(&self, path: &str, kept: io::Result<bool>) -> bool {
        kept.unwrap_or_else(|error| {
            (self.say)(&format!("the sealed version of {path} is not kept: {error}"));
            false
        })
    }

    /// Removes files that a lost instance has left without an entry in the manifest.
    pub(crate) fn forget_unknown(&self, disk: &dyn Disk) -> io::Result<()> {
        let folder = kept_path(&self.own, "");
        for path in disk.files(&folder)?.into_keys().filter(|path| !self.record.kept.contains_key(path)) {
            self.forget(disk, &folder.join(path));
        }
        Ok(())
    }

    pub(crate) fn drop_kept(&mut self, disk: &dyn Disk, path: &str) {
        self.record.kept.remove(path);
        self.forget(disk, &kept_path(&self.own, path));
    }

    /// Whether the file is kept now.
    pub(crate) fn keep_one(&mut self, disk: &dyn Disk, path: &str, sealed: &Sealed, room: &mut Room<'_>) -> bool {
        let before = self.record.files.get(path).filter(|before| before.sha256 != sealed.sha256);
        // A file that the runner itself has put in place has an inode that the manifest does not have.
        let is_other = |stamp: &Stamp| stamp.inode != sealed.stamp.inode;
        let is_renamed =
            before.is_some_and(|before| is_other(&before.stamp)) && self.first.get(path).is_none_or(is_other);
        let is_linked = is_renamed || (room.groups.is_numbered(path) && !self.has_room(disk, path, sealed, room));
        let target = kept_path(&self.own, path);
        let kept = if is_linked {
            self.link(disk, path, sealed, &target)
        } else {
            self.copy(disk, path, sealed, &target, room)
        };
        let is_kept = self.is_kept(path, kept);
        if is_kept {
            self.record.kept.insert(path.to_owned(), sealed.clone());
            room.put(path, sealed.stamp.bytes, !is_linked);
        }
        is_kept
    }

    /// False if the file has changed.
    fn link(&self, disk: &dyn Disk, path: &str, sealed: &Sealed, target: &Path) -> io::Result<bool> {
        if disk.stamp(&self.checkpoints.join(path))? != sealed.stamp {
            return Ok(false);
        }
        let unfinished = unfinished(target);
        self.forget(disk, &unfinished);
        disk.hard_link(&self.checkpoints.join(path), &unfinished)?;
        self.put(disk, &unfinished, target)
    }

    /// False if there is no room for it, or if the file changes meanwhile.
    pub(crate) fn copy(
        &mut self,
        disk: &dyn Disk,
        path: &str,
        sealed: &Sealed,
        target: &Path,
        room: &mut Room<'_>,
    ) -> io::Result<bool> {
        if !room.has_dropped_removed && !self.has_room(disk, path, sealed, room) {
            let is_gone = |path: &&String| disk.stamp(&self.checkpoints.join(path)).is_err();
            let gone: Vec<String> = self
                .record
                .kept
                .keys()
                .filter(|path| !room.groups.is_numbered(path))
                .filter(is_gone)
                .cloned()
                .collect();
            gone.iter().for_each(|path| self.drop_kept(disk, path));
            *room = Room { has_dropped_removed: true, ..Room::of(room.groups) };
        }
        if !self.has_room(disk, path, sealed, room) {
            return Ok(false);
        }
        let (source, unfinished) = (self.checkpoints.join(path), unfinished(target));
        self.forget(disk, &unfinished);
        disk.copy(&source, &unfinished)?;
        if disk.stamp(&source)? != sealed.stamp {
            disk.remove_file(&unfinished)?;
            return Ok(false);
        }
        self.put(disk, &unfinished, target)
    }

    /// Whether there is room for a copy of `path` in addition to all others, except those of the checkpoint that it
    /// replaces.
    fn has_room(&self, disk: &dyn Disk, path: &str, sealed: &Sealed, room: &mut Room<'_>) -> bool {
        // Kept copies must leave the room that the training needs for its next checkpoint.
        let wanted = sealed.stamp.bytes.saturating_mul(2).saturating_add(reserve::BYTES);
        if disk.free_bytes(&self.checkpoints).is_ok_and(|free| free < wanted) {
            return false;
        }
        let groups = room.groups;
        let replaces = groups.is_numbered(path) && !sealed.doubtful;
        let fits = |kept: &Sizes| {
            let others = if replaces { kept.staying(groups, path) } else { kept.others(path) };
            others + sealed.stamp.bytes <= MAX_BYTES
        };
        let kept = || self.record.kept.iter().map(|(path, kept)| (path.as_str(), kept.stamp.bytes));
        // Only copies count. Looking at each file is slow if there are hundreds.
        let inode = |path: PathBuf| disk.stamp(&path).ok().map(|stamp| stamp.inode);
        let is_copy = |path: &str| inode(kept_path(&self.own, path)) != inode(self.checkpoints.join(path));
        fits(room.every.get_or_insert_with(|| Sizes::of(groups, kept())))
            || fits(room.copies.get_or_insert_with(|| Sizes::of(groups, kept().filter(|(path, _)| is_copy(path)))))
    }

    pub(crate) fn put(&self, disk: &dyn Disk, unfinished: &Path, target: &Path) -> io::Result<bool> {
        disk.sync(unfinished)?;
        // A rename onto another name of the same file leaves both (rename(2)).
        self.forget(disk, target);
        disk.rename(unfinished, target)?;
        disk.sync(target)?;
        Ok(true)
    }

    fn forget(&self, disk: &dyn Disk, path: &Path) {
        match disk.remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                (self.say)(&format!("{} cannot be removed: {error}", path.display()));
            }
            Ok(()) | Err(_) => {}
        }
    }
}
