//! The last sealed version of files that the training rewrites in place.
//!
//! A file that is written under another name and renamed is whole at any moment. One that is rewritten in place is not, and its
//! version before is gone. So a copy of it is kept in `.spotsweep/kept/`, and put back where the file itself is torn.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::ioctl_ficlone;

use super::files::{Stamp, hash, is_log};
use super::record::Sealed;
use super::{Sealer, put_aside};
use crate::log::say;

/// The folder of the copies.
const KEPT: &str = "kept";
/// The most that all copies may take up, where the file system cannot share blocks.
const MAX_BYTES: u64 = 1 << 30;

impl Sealer {
    /// Keeps a copy of a file that has just been sealed as `sealed`, where the seal before shows that it is rewritten in
    /// place. What cannot be copied is not kept: that costs progress only after a lost instance.
    pub(super) fn keep(&mut self, path: &str, before: Option<&Sealed>, sealed: &Sealed) {
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
        match self.copy(path, sealed.stamp) {
            Ok(true) => {
                self.record.kept.insert(path.to_owned(), sealed.clone());
            }
            Ok(false) => {}
            Err(error) => say(&format!("no copy of {path} is kept, which is rewritten in place: {error}")),
        }
    }

    /// False where the file changes meanwhile.
    fn copy(&self, path: &str, stamp: Stamp) -> io::Result<bool> {
        let (source, target) = (self.checkpoints.join(path), kept(&self.own, path));
        let unfinished = target.with_extension("part");
        fs::create_dir_all(target.parent().unwrap_or(&self.own))?;
        clone(&source, &unfinished)?;
        if Stamp::of(&fs::metadata(&source)?) != stamp {
            fs::remove_file(&unfinished)?;
            return Ok(false);
        }
        File::open(&unfinished)?.sync_all()?;
        fs::rename(&unfinished, &target)?;
        Ok(true)
    }

    /// Puts the kept version of `path` in the place of the newer one, which goes aside. False where there is none, or
    /// where both are the same.
    pub(super) fn replace_with_kept(&self, path: &str) -> io::Result<bool> {
        let Some(kept) = self.record.kept.get(path) else { return Ok(false) };
        let file = self.checkpoints.join(path);
        let bytes = fs::metadata(&file)?.len();
        if bytes == kept.stamp.bytes && hash(&file, bytes)? == kept.sha256 {
            return Ok(false);
        }
        put_aside(&self.checkpoints, &self.rolled_back(), path)?;
        restore(&self.checkpoints, &self.own, path, Some(kept))
    }
}

/// Puts the kept version of `path` in its place, of which `sealed` is the proof. False where there is none.
pub(super) fn restore(checkpoints: &Path, own: &Path, path: &str, sealed: Option<&Sealed>) -> io::Result<bool> {
    let (source, target) = (kept(own, path), checkpoints.join(path));
    let Some(sealed) = sealed else { return Ok(false) };
    if !source.exists() || hash(&source, sealed.stamp.bytes)? != sealed.sha256 {
        return Ok(false);
    }
    fs::create_dir_all(target.parent().unwrap_or(checkpoints))?;
    clone(&source, &target).map(|()| true)
}

fn kept(own: &Path, path: &str) -> PathBuf {
    own.join(KEPT).join(path)
}

/// Copies a file with its owner. The copy shares the file's blocks where the file system can do that, as XFS does.
fn clone(source: &Path, target: &Path) -> io::Result<()> {
    let from = File::open(source)?;
    let to = File::create(target)?;
    if ioctl_ficlone(&to, &from).is_err() {
        fs::copy(source, target)?;
    }
    let found = from.metadata()?;
    to.set_permissions(found.permissions())?;
    fchown(&to, Some(found.uid()), Some(found.gid()))
}
