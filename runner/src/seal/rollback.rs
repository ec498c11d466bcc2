//! A training that resumed and failed before it made progress may have been given a bad checkpoint, whatever the format
//! says. Its newest checkpoint is put aside then, and the next attempt starts from the one before.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use spotsweep_protocol::claim::Rollback;

use super::files::{Stamp, file_name, has_content, is_log, is_small_text, with_its_folder};
use super::judge::newest_first;
use super::{Sealer, TORN, put_aside, walk};

/// A trial whose training fails on so many checkpoints fails with the training's own reason.
const MOST: usize = 3;

impl Sealer {
    /// Whether the command has written a checkpoint since this attempt began.
    pub(crate) fn has_new_checkpoint(&self) -> io::Result<bool> {
        let files = walk(&self.checkpoints)?;
        let mut changed = files.iter().filter(|(path, stamp)| self.first.get(*path) != Some(*stamp));
        Ok(changed.any(|(path, stamp)| has_content(&self.checkpoints.join(path), path, stamp.bytes)))
    }

    /// Puts the newest checkpoint aside, as the command has ended with `exit_code` without any progress. `None` where
    /// the checkpoint is not to blame: the trial was not interrupted before, there is no checkpoint, the training has
    /// failed on this one before, or on three others.
    pub(crate) fn roll_back(&mut self, exit_code: i32) -> io::Result<Option<Rollback>> {
        if !self.resumed {
            return Ok(None);
        }
        let files = walk(&self.checkpoints)?;
        let checkpoints = self.checkpoints_of(&files);
        let Some((newest, members)) = checkpoints.first() else { return Ok(None) };
        let earlier = &self.record.rollbacks;
        if earlier.len() >= MOST || earlier.iter().any(|earlier| earlier.checkpoint == *newest) {
            return Ok(None);
        }
        let to = if self.replace_with_kept(newest)? {
            Some("its last sealed version")
        } else {
            let modified = |members: &BTreeSet<&str>| members.iter().map(|path| files[*path].modified_ns).max();
            let before = checkpoints.iter().find(|(_, others)| modified(others) < modified(members));
            let before = before.map(|(name, members)| (*name, modified(members).unwrap_or(i64::MIN)));
            self.put_newer_aside(&files, newest, before)?;
            before.map(|(name, _)| name)
        };
        let rollback = Rollback { checkpoint: (*newest).to_owned(), exit_code, to: to.map(str::to_owned) };
        self.record.rollbacks.push(rollback.clone());
        self.record.write(&self.own)?;
        Ok(Some(rollback))
    }

    /// Where the checkpoints go that the training failed on.
    pub(super) fn rolled_back(&self) -> PathBuf {
        self.own.join(TORN).join(format!("{}-rollback", self.record.attempt))
    }

    /// Checkpoints with content, newest first; those of small text only where there are no others.
    fn checkpoints_of<'a>(&self, files: &'a BTreeMap<String, Stamp>) -> Vec<(&'a str, BTreeSet<&'a str>)> {
        let all = newest_first(files);
        let is_content = |path: &&str| has_content(&self.checkpoints.join(path), path, files[*path].bytes);
        let with_content: Vec<_> = all.iter().filter(|(_, members)| members.iter().any(is_content)).cloned().collect();
        if with_content.is_empty() { all } else { with_content }
    }

    /// Puts the checkpoint `newest` aside, and what was written after the one `before` it. Links and pointer files that
    /// name it then name the one before.
    fn put_newer_aside(
        &self,
        files: &BTreeMap<String, Stamp>,
        newest: &str,
        before: Option<(&str, i64)>,
    ) -> io::Result<()> {
        let aside = self.rolled_back();
        let whole = with_its_folder(files, newest);
        put_aside(&self.checkpoints, &aside, whole)?;
        for (path, stamp) in files {
            let file = self.checkpoints.join(path);
            if Path::new(path).starts_with(whole) {
                continue;
            }
            let is_text = is_small_text(&file, stamp.bytes);
            let is_later = before.is_none_or(|(_, modified)| stamp.modified_ns > modified);
            if is_later && !is_log(path) && !is_text {
                put_aside(&self.checkpoints, &aside, path)?;
                continue;
            }
            let text = if is_text { fs::read_to_string(&file).unwrap_or_default() } else { String::new() };
            if let Some((before, _)) = before.filter(|_| text.contains(file_name(newest))) {
                fs::write(&file, text.replace(file_name(newest), file_name(before)))?;
            }
        }
        let Some((before, _)) = before else { return Ok(()) };
        // The other names of the checkpoint's one file.
        let alias = |(path, stamp): &(&String, &Stamp)| {
            files.get(newest).is_some_and(|file| file.inode == stamp.inode) && path.as_str() != newest
        };
        for (path, _) in files.iter().filter(alias).filter(|_| files.contains_key(before)) {
            fs::hard_link(self.checkpoints.join(before), self.checkpoints.join(path))?;
        }
        relink(&self.checkpoints, file_name(newest), file_name(before))
    }
}

/// Makes symbolic links in `folder` that lead to `newest` lead to `before`.
fn relink(folder: &Path, newest: &str, before: &str) -> io::Result<()> {
    for path in fs::read_dir(folder)?.flatten().map(|entry| entry.path()) {
        let Ok(target) = fs::read_link(&path) else { continue };
        if target.file_name().is_some_and(|name| name == newest) {
            fs::remove_file(&path)?;
            std::os::unix::fs::symlink(target.with_file_name(before), &path)?;
        }
    }
    Ok(())
}
