//! A training that resumed and failed before it made progress may have been given a bad checkpoint, whatever the format
//! says. Its newest checkpoint is put aside then, and the next attempt starts from the one before.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use spotsweep_protocol::claim::Rollback;

use crate::aside::{TORN, put_aside, put_group_aside};
use crate::content::{has_content, is_small_text};
use crate::disk::{Disk, Stamp};
use crate::files::walk;
use crate::groups::{Group, Groups};
use crate::kept::restore_removed;
use crate::logs::{Change, is_log, may_be_log};
use crate::names::is_numbered;
use crate::pointers::Pointers;
use crate::sealer::Sealer;
use crate::shape::shape;

/// A trial whose training fails on so many checkpoints in a row fails with the training's own reason.
const MOST: usize = 3;

impl Sealer {
    /// Whether the command has written a checkpoint since this attempt began.
    pub fn has_new_checkpoint(&self, disk: &dyn Disk) -> io::Result<bool> {
        let files = walk(disk, &self.checkpoints)?;
        let mut changed = files.iter().filter(|(path, stamp)| self.first.get(*path) != Some(*stamp));
        let is_state = |path: &str| self.record.change(path) == Some(Change::Rewritten);
        Ok(changed
            .any(|(path, stamp)| is_state(path) || has_content(disk, &self.checkpoints.join(path), path, stamp.bytes)))
    }

    /// Puts the newest checkpoint aside, as the command has ended with `exit_code` without any progress. `None` where
    /// the checkpoint is not to blame: the trial was not interrupted before, there is no checkpoint, the training has
    /// failed on this one before, or on three others since it last made progress.
    pub fn roll_back(&mut self, disk: &dyn Disk, exit_code: i32) -> io::Result<Option<Rollback>> {
        if !self.resumed {
            return Ok(None);
        }
        let files = walk(disk, &self.checkpoints)?;
        let stamps = files.iter().map(|(path, stamp)| (path.as_str(), *stamp));
        let groups = Groups::of(stamps.chain(self.record.kept_files()));
        let checkpoints = self.checkpoints_of(disk, &files, &groups);
        let Some(place) = self.blamed(&files, &checkpoints) else { return Ok(None) };
        let (newest, members) = &checkpoints[place];
        let modified = |members: &BTreeSet<&str>| members.iter().map(|path| files[*path].modified_ns).max();
        let mut failed = (newest.name.clone(), modified(members).unwrap_or(i64::MIN));
        // It was written since: the training has got past the ones before.
        if self.record.failed.iter().all(|(_, at)| failed.1 > *at) {
            self.record.failed.clear();
        }
        if self.record.failed.len() >= MOST || self.record.failed.contains(&failed) {
            return Ok(None);
        }
        let to = if let Some(modified) = self.replace_with_kept(disk, newest)? {
            // It counts as the same checkpoint, unless there is still another one to go back to.
            let mut kept = newest.members.iter().filter_map(|path| self.record.kept.get(path));
            if checkpoints.len() == 1 && !kept.any(|kept| kept.doubtful) {
                failed.1 = modified;
            }
            Some("its last sealed version".to_owned())
        } else {
            let others = checkpoints.iter().filter(|(group, _)| group.name != newest.name);
            let before = others.clone().find(|(_, others)| place > 0 || modified(others) < modified(members));
            let before = before.map(|(group, members)| (&*group.name, modified(members).unwrap_or(i64::MIN)));
            self.go_back(disk, &files, &groups, newest, before)?
        };
        let rollback = Rollback { checkpoint: newest.name.clone(), exit_code, to };
        self.record.failed.push(failed);
        self.write_record(disk)?;
        Ok(Some(rollback))
    }

    /// The place in `checkpoints` of the one that the training loaded: the newest, or one with a larger number where the
    /// newest is as it was sealed and the other is not. Of a file whose time was not written out, the number is right.
    fn blamed(&self, files: &BTreeMap<String, Stamp>, checkpoints: &[(&Group, BTreeSet<&str>)]) -> Option<usize> {
        let is_sealed = |members: &BTreeSet<&str>| {
            let is_known = |path: &&str| {
                self.record.files.get(*path).is_some_and(|sealed| sealed.stamp == files[*path] && !sealed.doubtful)
            };
            members.iter().all(is_known)
        };
        let (newest, members) = checkpoints.first()?;
        let is_later = |group: &Group| shape(&group.name) == shape(&newest.name) && group.numbers > newest.numbers;
        let other = || checkpoints.iter().position(|(group, members)| is_later(group) && !is_sealed(members));
        Some(if is_sealed(members) { other().unwrap_or(0) } else { 0 })
    }

    /// Puts `newest` aside, in favour of the one `before` it or of a kept one that is newer than that. Its name.
    fn go_back(
        &mut self,
        disk: &dyn Disk,
        files: &BTreeMap<String, Stamp>,
        groups: &Groups,
        newest: &Group,
        before: Option<(&str, i64)>,
    ) -> io::Result<Option<String>> {
        newest.members.iter().for_each(|path| self.drop_kept(disk, path));
        put_group_aside(disk, &self.checkpoints, &self.rolled_back(), newest, &self.record)?;
        let kept = &self.record.kept;
        let back = restore_removed(disk, &self.checkpoints, &self.own, kept, groups, before)?;
        let back = back.filter(|back| !back.is_older).map(|back| (back.name, back.modified_ns));
        let to = back.or_else(|| before.map(|(name, modified)| (name.to_owned(), modified)));
        self.put_newer_aside(disk, files, newest, to.as_ref().map(|(name, modified)| (name.as_str(), *modified)))?;
        let to = to.map(|(name, _)| name);
        if let Some(to) = &to {
            let aside = self.rolled_back();
            let (checkpoints, own) = (&*self.checkpoints, &*self.own);
            Pointers { disk, checkpoints, own, kept, groups, sealed: &self.record.files, aside: &aside }.repair(to)?;
        }
        Ok(to)
    }

    /// Where the checkpoints go that the training failed on.
    pub(crate) fn rolled_back(&self) -> PathBuf {
        self.own.join(TORN).join(format!("{}-rollback", self.record.attempt))
    }

    /// Checkpoints with content, newest first; those of text only where there are no others. A file of which little was
    /// written out may look like a text: its siblings show that it is none.
    fn checkpoints_of<'a>(
        &self,
        disk: &dyn Disk,
        files: &'a BTreeMap<String, Stamp>,
        groups: &'a Groups,
    ) -> Vec<(&'a Group, BTreeSet<&'a str>)> {
        let is_log = |path: &&str| is_log(path, self.record.change(path));
        let mut all = groups.newest_first(files.iter().map(|(path, stamp)| (path.as_str(), *stamp)));
        all.retain(|(_, members)| !members.iter().all(is_log));
        let is_content = |path: &str| has_content(disk, &self.checkpoints.join(path), path, files[path].bytes);
        let content: BTreeSet<&str> = files.keys().map(String::as_str).filter(|path| is_content(path)).collect();
        let shapes: BTreeSet<String> =
            content.iter().filter(|path| is_numbered(path)).map(|path| shape(path)).collect();
        let has_content = |path: &&str| content.contains(path) || (is_numbered(path) && shapes.contains(&shape(path)));
        let with_content: Vec<_> = all.iter().filter(|(_, members)| members.iter().any(has_content)).cloned().collect();
        if with_content.is_empty() { all } else { with_content }
    }

    /// Puts aside what was written after the checkpoint `before` the `newest` one: everything where there is none.
    fn put_newer_aside(
        &self,
        disk: &dyn Disk,
        files: &BTreeMap<String, Stamp>,
        newest: &Group,
        before: Option<(&str, i64)>,
    ) -> io::Result<()> {
        let aside = self.rolled_back();
        for (path, stamp) in files.iter().filter(|(path, _)| !newest.members.contains(*path)) {
            let is_later = before.is_none_or(|(_, modified)| {
                let is_text = is_small_text(disk, &self.checkpoints.join(path), stamp.bytes);
                stamp.modified_ns > modified && !is_text
            });
            let is_log = || {
                may_be_log(path, self.record.change(path))
                    && !has_content(disk, &self.checkpoints.join(path), path, stamp.bytes)
            };
            if is_later && !is_log() {
                put_aside(disk, &self.checkpoints, &aside, path)?;
            }
        }
        // The other names of the checkpoint's one file.
        let is_file = |path: &str| files.contains_key(path) || self.record.kept.contains_key(path);
        let Some((before, _)) = before.filter(|(before, _)| is_file(before)) else { return Ok(()) };
        let alias = |(path, stamp): &(&String, &Stamp)| {
            files.get(&newest.name).is_some_and(|file| file.inode == stamp.inode) && **path != newest.name
        };
        for (path, _) in files.iter().filter(alias) {
            disk.hard_link(&self.checkpoints.join(before), &self.checkpoints.join(path))?;
        }
        Ok(())
    }
}
