//! The last sealed version of files that the training rewrites in place.
//!
//! A file that is written under another name and renamed is whole at any moment. One that is rewritten in place is not, and its
//! version before is gone. So a copy of it is kept in `.spotsweep/kept/`, and put back where the file itself is torn.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Stamp};
use crate::files::{hash, is_log};
use crate::record::Sealed;
use crate::sealer::{Sealer, put_aside};

/// The folder of the copies.
const KEPT: &str = "kept";
/// The most that all copies may take up, where the file system cannot share blocks.
const MAX_BYTES: u64 = 1 << 30;

impl Sealer {
    /// Keeps a copy of a file that has just been sealed as `sealed`, where the seal before shows that it is rewritten in
    /// place. What cannot be copied is not kept: that costs progress only after a lost instance.
    pub(crate) fn keep(&mut self, disk: &dyn Disk, path: &str, before: Option<&Sealed>, sealed: &Sealed) {
        let is_rewritten = before.is_some_and(|before| {
            before.stamp.inode == sealed.stamp.inode && before.sha256 != sealed.sha256 && before.stamp.bytes > 0
        });
        // Logs are appended to, and no training starts from them.
        if !is_rewritten || is_log(path) {
            return;
        }
        let others = self.record.kept.iter().filter(|(other, _)| *other != path);
        if others.map(|(_, kept)| kept.stamp.bytes).sum::<u64>() + sealed.stamp.bytes > MAX_BYTES {
            return;
        }
        match self.copy(disk, path, sealed.stamp) {
            Ok(true) => {
                self.record.kept.insert(path.to_owned(), sealed.clone());
            }
            Ok(false) => {}
            Err(error) => (self.say)(&format!("no copy of {path} is kept, which is rewritten in place: {error}")),
        }
    }

    /// False where the file changes meanwhile.
    fn copy(&self, disk: &dyn Disk, path: &str, stamp: Stamp) -> io::Result<bool> {
        let (source, target) = (self.checkpoints.join(path), kept(&self.own, path));
        let unfinished = target.with_extension("part");
        disk.copy(&source, &unfinished)?;
        if disk.stamp(&source)? != stamp {
            disk.remove_file(&unfinished)?;
            return Ok(false);
        }
        disk.sync(&unfinished)?;
        disk.rename(&unfinished, &target)?;
        Ok(true)
    }

    /// Puts the kept version of `path` in the place of the newer one, which goes aside. False where there is none, or
    /// where both are the same.
    pub(crate) fn replace_with_kept(&self, disk: &dyn Disk, path: &str) -> io::Result<bool> {
        let Some(kept) = self.record.kept.get(path) else { return Ok(false) };
        let file = self.checkpoints.join(path);
        let bytes = disk.stamp(&file)?.bytes;
        if bytes == kept.stamp.bytes && hash(disk, &file, bytes)? == kept.sha256 {
            return Ok(false);
        }
        put_aside(disk, &self.checkpoints, &self.rolled_back(), path)?;
        restore(disk, &self.checkpoints, &self.own, path, Some(kept))
    }
}

/// Puts the kept version of `path` in its place, of which `sealed` is the proof. False where there is none.
pub(crate) fn restore(
    disk: &dyn Disk,
    checkpoints: &Path,
    own: &Path,
    path: &str,
    sealed: Option<&Sealed>,
) -> io::Result<bool> {
    let (source, target) = (kept(own, path), checkpoints.join(path));
    let Some(sealed) = sealed else { return Ok(false) };
    if disk.stamp(&source).is_err() || hash(disk, &source, sealed.stamp.bytes)? != sealed.sha256 {
        return Ok(false);
    }
    disk.copy(&source, &target).map(|()| true)
}

fn kept(own: &Path, path: &str) -> PathBuf {
    own.join(KEPT).join(path)
}
