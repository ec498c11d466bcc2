//! A training that resumed and failed before it made progress may have been given a bad checkpoint, whatever the format
//! says. Its newest checkpoint is put aside then, and the next attempt starts from the one before. If that one ends in the
//! same way, the checkpoint was not to blame: it is put back.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use spotsweep_protocol::claim::Rollback;

use crate::aside::{TORN, put_aside, put_group_aside};
use crate::content::{has_content, is_small_text, is_whole};
use crate::disk::{Disk, Stamp};
use crate::files::{has_all, walk};
use crate::groups::{Group, Groups};
use crate::kept::restore_removed;
use crate::logs::{Change, is_log, may_be_log};
use crate::names::{file_name, is_numbered};
use crate::pointers::{Pointers, names_of_latest};
use crate::record::{BadEnd, Failed};
use crate::sealer::Sealer;
use crate::shape::shape;

/// A trial whose training fails on so many checkpoints in a row fails with the training's own reason.
const MOST: usize = 4;
/// From this rollback on, a sealed checkpoint is taken before a newer one that may be incomplete.
const TO_SEALED: usize = 3;

impl Sealer {
    /// Whether the command has written a checkpoint since this attempt began.
    pub fn has_new_checkpoint(&self, disk: &dyn Disk) -> io::Result<bool> {
        let files = walk(disk, &self.checkpoints)?;
        let mut changed = files.iter().filter(|(path, stamp)| self.first.get(*path) != Some(*stamp));
        let is_state = |path: &str| self.record.change(path) == Some(Change::Rewritten);
        Ok(changed
            .any(|(path, stamp)| is_state(path) || has_content(disk, &self.checkpoints.join(path), path, stamp.bytes)))
    }

    /// Puts the newest checkpoint aside, as the command has ended without any progress. `None` where the checkpoint is not
    /// to blame: the trial was not interrupted before, there is no checkpoint, the training has ended in the same way on a
    /// complete one, has failed on this one before, or on four others since it last made progress.
    ///
    /// # Errors
    /// Where the workspace cannot be read or written.
    pub fn roll_back(&mut self, disk: &dyn Disk, end: &BadEnd) -> io::Result<Option<Rollback>> {
        let files = walk(disk, &self.checkpoints)?;
        let stamps = files.iter().map(|(path, stamp)| (path.as_str(), *stamp));
        let groups = Groups::of(stamps.chain(self.record.kept_files()));
        let checkpoints = self.checkpoints_of(disk, &files, &groups);
        let place = self.blamed(disk, &files, &checkpoints)?;
        let modified = |members: &BTreeSet<&str>| members.iter().map(|path| files[*path].modified_ns).max();
        let modified_ns = place.and_then(|place| modified(&checkpoints[place].1)).unwrap_or(i64::MIN);
        // It was written since: the training has got past the ones before.
        if self.record.failed.iter().all(|failed| modified_ns > failed.modified_ns) {
            self.record.failed.clear();
        }
        let is_proven = |checkpoint: &(&Group, BTreeSet<&str>)| self.is_proven(disk, &files, checkpoint, &checkpoints);
        let proven = place.is_some_and(|place| is_proven(&checkpoints[place]));
        if self.has_not_helped(end, place.is_none(), proven) {
            self.take_back(disk, end)?;
            return Ok(None);
        }
        let Some(place) = place.filter(|_| self.resumed) else { return Ok(None) };
        let (newest, members) = &checkpoints[place];
        let is_known = |failed: &Failed| failed.name == newest.name && failed.modified_ns == modified_ns;
        if self.record.failed.len() >= MOST || self.record.failed.iter().any(is_known) {
            return Ok(None);
        }
        let count = self.record.failed.len() + 1;
        let is_last = count == MOST;
        let others: Vec<_> = checkpoints.iter().filter(|(group, _)| group.name != newest.name).collect();
        let is_sealed = |other: &&&(&Group, BTreeSet<&str>)| count >= TO_SEALED && is_proven(other);
        let is_older = |other: &&&(&Group, _)| !is_last && (place > 0 || modified(&other.1) < modified(members));
        let before = others.iter().find(is_sealed).or_else(|| others.iter().find(is_older));
        let before = before.map(|(group, members)| (&*group.name, modified(members).unwrap_or(i64::MIN)));
        if is_last {
            self.drop_doubtful(disk);
        }
        let attempt = self.record.attempt;
        let mut failed =
            Failed { name: newest.name.clone(), modified_ns, attempt, end: end.clone(), is_proven: proven };
        let to = if let Some(modified) = self.replace_with_kept(disk, newest, is_last)? {
            // It counts as the same checkpoint, unless there is still another one to go back to.
            let mut kept = newest.members.iter().filter_map(|path| self.record.kept.get(path));
            if others.is_empty() && !kept.any(|kept| kept.doubtful) {
                failed.modified_ns = modified;
            }
            Some("its last sealed version".to_owned())
        } else {
            self.go_back(disk, &files, &groups, newest, before)?
        };
        let rollback = Rollback { checkpoint: newest.name.clone(), exit_code: end.exit_code, to };
        self.record.failed.push(failed);
        self.write_record(disk)?;
        Ok(Some(rollback))
    }

    /// Whether the training has ended as it did before the last rollback, though it began at its beginning, or both
    /// checkpoints are proven: of two that lack files each may be to blame.
    fn has_not_helped(&self, end: &BadEnd, is_beginning: bool, is_proven: bool) -> bool {
        let is_alike = |failed: &&Failed| failed.end == *end && (is_beginning || (is_proven && failed.is_proven));
        end.error.is_some() && self.record.failed.last().is_some_and(|failed| is_alike(&failed))
    }

    /// Takes the rollbacks back that were for such an end. The trial ends with that, and may be continued from its newest
    /// checkpoint.
    fn take_back(&mut self, disk: &dyn Disk, end: &BadEnd) -> io::Result<()> {
        while let Some(failed) = self.record.failed.pop_if(|failed| failed.end == *end) {
            let aside = self.rolled_back(failed.attempt);
            for path in disk.files(&aside)?.into_keys() {
                disk.rename(&aside.join(&path), &self.checkpoints.join(&path))?;
            }
            for (link, target) in disk.symbolic_links(&aside)? {
                let name = link.strip_prefix(&aside).map_err(io::Error::other)?;
                disk.symbolic_link(&self.checkpoints.join(name), &target)?;
            }
            (self.say)(&format!("the command ended in the same way without {}: the checkpoint is back", failed.name));
        }
        self.write_record(disk)
    }

    /// Drops the kept versions of which it is not known that they are complete. Nothing may go back to them.
    fn drop_doubtful(&mut self, disk: &dyn Disk) {
        let doubtful: Vec<String> =
            self.record.kept.iter().filter(|(_, kept)| kept.doubtful).map(|(path, _)| path.clone()).collect();
        doubtful.iter().for_each(|path| self.drop_kept(disk, path));
    }

    /// Whether each of these files is as it was sealed, and known to be complete.
    fn is_sealed(&self, files: &BTreeMap<String, Stamp>, members: &BTreeSet<&str>) -> bool {
        members.iter().all(|path| {
            self.record.files.get(*path).is_some_and(|sealed| sealed.stamp == files[*path] && !sealed.doubtful)
        })
    }

    /// Whether a checkpoint is sealed as a whole, with all kinds of files that the others like it have, or is one file that
    /// is rewritten, whose format shows that it is complete.
    fn is_proven(
        &self,
        disk: &dyn Disk,
        files: &BTreeMap<String, Stamp>,
        (group, members): &(&Group, BTreeSet<&str>),
        checkpoints: &[(&Group, BTreeSet<&str>)],
    ) -> bool {
        let shapes: BTreeSet<String> = members.iter().map(|path| shape(path)).collect();
        let is_like = |other: &&Group| other.members.iter().any(|path| shapes.contains(&shape(path)));
        let is_whole =
            |path: &&str| !is_numbered(path) && is_whole(disk, &self.checkpoints.join(path)).unwrap_or(false);
        (self.is_sealed(files, members) || (group.is_file() && members.iter().all(is_whole)))
            && group.members.iter().all(|path| members.contains(path.as_str()))
            && checkpoints
                .iter()
                .map(|(other, _)| *other)
                .filter(is_like)
                .all(|other| has_all(group.members.iter(), other.members.iter()))
    }

    /// The place in `checkpoints` of the one that the training loaded: the one that a pointer to the latest names, or else
    /// the newest, or one with a larger number where the newest is as it was sealed and the other is not. Of a file whose
    /// time was not written out, the number is right.
    fn blamed(
        &self,
        disk: &dyn Disk,
        files: &BTreeMap<String, Stamp>,
        checkpoints: &[(&Group, BTreeSet<&str>)],
    ) -> io::Result<Option<usize>> {
        let latest = names_of_latest(disk, &self.checkpoints, files)?;
        let is_latest = |(group, _): &(&Group, _)| group.places().iter().any(|place| latest.contains(file_name(place)));
        if let Some(place) = checkpoints.iter().position(is_latest) {
            return Ok(Some(place));
        }
        let Some((newest, members)) = checkpoints.first() else { return Ok(None) };
        let is_later = |group: &Group| shape(&group.name) == shape(&newest.name) && group.numbers > newest.numbers;
        let is_other = |(group, members): &(&Group, BTreeSet<&str>)| is_later(group) && !self.is_sealed(files, members);
        let other = || checkpoints.iter().position(is_other);
        Ok(Some(if self.is_sealed(files, members) { other().unwrap_or(0) } else { 0 }))
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
        let aside = self.rolled_back(self.record.attempt);
        put_group_aside(disk, &self.checkpoints, &aside, newest, &self.record)?;
        let kept = &self.record.kept;
        let back = restore_removed(disk, &self.checkpoints, &self.own, kept, groups, before)?;
        let back = back.filter(|back| !back.is_older).map(|back| (back.name, back.modified_ns));
        let to = back.or_else(|| before.map(|(name, modified)| (name.to_owned(), modified)));
        self.put_newer_aside(disk, files, newest, to.as_ref().map(|(name, modified)| (name.as_str(), *modified)))?;
        let to = to.map(|(name, _)| name);
        if let Some(to) = &to {
            let (checkpoints, own, sealed) = (&*self.checkpoints, &*self.own, &self.record.files);
            let replaced = Some(&*aside);
            Pointers { disk, checkpoints, own, kept, groups, sealed, aside: &aside, replaced }.repair(to)?;
        }
        Ok(to)
    }

    /// Where the checkpoint goes that the training failed on in an attempt, with all that is replaced for that.
    pub(crate) fn rolled_back(&self, attempt: u32) -> PathBuf {
        self.own.join(TORN).join(format!("{attempt}-rollback"))
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
        let aside = self.rolled_back(self.record.attempt);
        let shapes: BTreeSet<String> = newest.members.iter().map(|path| shape(path)).collect();
        for (path, stamp) in files.iter().filter(|(path, _)| !newest.members.contains(*path)) {
            let is_later = before.is_none_or(|(_, modified)| {
                let is_text = is_small_text(disk, &self.checkpoints.join(path), stamp.bytes);
                stamp.modified_ns > modified && !is_text
            });
            let is_log = || {
                may_be_log(path, self.record.change(path))
                    && !(is_numbered(path) && shapes.contains(&shape(path)))
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
            put_aside(disk, &self.checkpoints, &aside, path)?;
            disk.hard_link(&self.checkpoints.join(before), &self.checkpoints.join(path))?;
        }
        Ok(())
    }
}
