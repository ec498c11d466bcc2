//! A training that resumed and failed before it made progress may have been given a bad checkpoint, whatever the format
//! says. Its newest checkpoint is put aside then, and the next attempt starts from the one before.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use spotsweep_protocol::claim::Rollback;

use crate::disk::{Disk, Stamp};
use crate::files::{file_name, has_content, is_log, is_small_text, read, walk, with_its_folder};
use crate::judge::newest_first;
use crate::sealer::{Sealer, TORN, put_aside};

/// A trial whose training fails on so many checkpoints fails with the training's own reason.
const MOST: usize = 3;

impl Sealer {
    /// Whether the command has written a checkpoint since this attempt began.
    pub fn has_new_checkpoint(&self, disk: &dyn Disk) -> io::Result<bool> {
        let files = walk(disk, &self.checkpoints)?;
        let mut changed = files.iter().filter(|(path, stamp)| self.first.get(*path) != Some(*stamp));
        Ok(changed.any(|(path, stamp)| has_content(disk, &self.checkpoints.join(path), path, stamp.bytes)))
    }

    /// Puts the newest checkpoint aside, as the command has ended with `exit_code` without any progress. `None` where
    /// the checkpoint is not to blame: the trial was not interrupted before, there is no checkpoint, the training has
    /// failed on this one before, or on three others.
    pub fn roll_back(&mut self, disk: &dyn Disk, exit_code: i32) -> io::Result<Option<Rollback>> {
        if !self.resumed {
            return Ok(None);
        }
        let files = walk(disk, &self.checkpoints)?;
        let checkpoints = self.checkpoints_of(disk, &files);
        let Some((newest, members)) = checkpoints.first() else { return Ok(None) };
        let earlier = &self.record.rollbacks;
        if earlier.len() >= MOST || earlier.iter().any(|earlier| earlier.checkpoint == *newest) {
            return Ok(None);
        }
        let to = if self.replace_with_kept(disk, newest)? {
            Some("its last sealed version")
        } else {
            let modified = |members: &BTreeSet<&str>| members.iter().map(|path| files[*path].modified_ns).max();
            let before = checkpoints.iter().find(|(_, others)| modified(others) < modified(members));
            let before = before.map(|(name, members)| (*name, modified(members).unwrap_or(i64::MIN)));
            self.put_newer_aside(disk, &files, newest, before)?;
            before.map(|(name, _)| name)
        };
        let rollback = Rollback { checkpoint: (*newest).to_owned(), exit_code, to: to.map(str::to_owned) };
        self.record.rollbacks.push(rollback.clone());
        self.record.write(disk, &self.own)?;
        Ok(Some(rollback))
    }

    /// Where the checkpoints go that the training failed on.
    pub(crate) fn rolled_back(&self) -> PathBuf {
        self.own.join(TORN).join(format!("{}-rollback", self.record.attempt))
    }

    /// Checkpoints with content, newest first; those of small text only where there are no others.
    fn checkpoints_of<'a>(
        &self,
        disk: &dyn Disk,
        files: &'a BTreeMap<String, Stamp>,
    ) -> Vec<(&'a str, BTreeSet<&'a str>)> {
        let all = newest_first(files);
        let is_content = |path: &&str| has_content(disk, &self.checkpoints.join(path), path, files[*path].bytes);
        let with_content: Vec<_> = all.iter().filter(|(_, members)| members.iter().any(is_content)).cloned().collect();
        if with_content.is_empty() { all } else { with_content }
    }

    /// Puts the checkpoint `newest` aside, and what was written after the one `before` it. Links and pointer files that
    /// name it then name the one before.
    fn put_newer_aside(
        &self,
        disk: &dyn Disk,
        files: &BTreeMap<String, Stamp>,
        newest: &str,
        before: Option<(&str, i64)>,
    ) -> io::Result<()> {
        let aside = self.rolled_back();
        let whole = with_its_folder(files, newest);
        put_aside(disk, &self.checkpoints, &aside, whole)?;
        for (path, stamp) in files {
            let file = self.checkpoints.join(path);
            if Path::new(path).starts_with(whole) {
                continue;
            }
            let is_text = is_small_text(disk, &file, stamp.bytes);
            let is_later = before.is_none_or(|(_, modified)| stamp.modified_ns > modified);
            if is_later && !is_log(path) && !is_text {
                put_aside(disk, &self.checkpoints, &aside, path)?;
                continue;
            }
            let text = if is_text { read(disk, &file).unwrap_or_default() } else { Vec::new() };
            let text = String::from_utf8(text).unwrap_or_default();
            if let Some((before, _)) = before.filter(|_| text.contains(file_name(newest))) {
                disk.write(&file, text.replace(file_name(newest), file_name(before)).as_bytes())?;
            }
        }
        let Some((before, _)) = before else { return Ok(()) };
        // The other names of the checkpoint's one file.
        let alias = |(path, stamp): &(&String, &Stamp)| {
            files.get(newest).is_some_and(|file| file.inode == stamp.inode) && path.as_str() != newest
        };
        for (path, _) in files.iter().filter(alias).filter(|_| files.contains_key(before)) {
            disk.hard_link(&self.checkpoints.join(before), &self.checkpoints.join(path))?;
        }
        for (link, target) in disk.symbolic_links(&self.checkpoints)? {
            if target.file_name().is_some_and(|name| name == file_name(newest)) {
                disk.symbolic_link(&link, &target.with_file_name(file_name(before)))?;
            }
        }
        Ok(())
    }
}
