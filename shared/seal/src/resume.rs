//! Judges and repairs the workspace that the next attempt finds.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use spotsweep_protocol::claim::Found;
use spotsweep_protocol::runner_log::is_back;

use crate::aside::{TORN, put_aside, put_group_aside, unused};
use crate::content::has_content;
use crate::disk::{Disk, Stamp};
use crate::files::{expected, unfinished, walk, walk_all};
use crate::groups::Groups;
use crate::judge::{Judge, Judgement};
use crate::kept::{Kept, kept_path, kept_version, put_in_place, restore, restore_removed};
use crate::names::{has_unfinished_part, is_numbered};
use crate::pointers::Pointers;
use crate::record::Record;
use crate::reserve::give_up;
use crate::rollback::undo::undo_halves;
use crate::sealer::Sealer;
use crate::shape::shape;
use crate::times::correct_times;
use crate::together::{Partner, counters_beside, note, partners};
use crate::{CHECKPOINTS, OWN, Say};

impl Sealer {
    /// Compares the checkpoints on a mounted workspace with the seal of the attempt before and quarantines incomplete
    /// ones. Seals what is left for this `attempt`, which is about to write.
    ///
    /// `point` is where the workspace is mounted. `is_disk` is true for a volume and false for a plain folder.
    ///
    /// # Errors
    /// If the workspace cannot be read or written.
    pub fn resume(disk: &dyn Disk, point: &Path, attempt: u32, is_disk: bool, say: Say) -> io::Result<(Self, Found)> {
        let (checkpoints, own) = (point.join(CHECKPOINTS), point.join(OWN));
        give_up(disk, &own);
        let mut seal = Record::read(disk, &own, say)?;
        if let Some(seal) = &mut seal {
            undo_halves(disk, [&checkpoints, &own], seal, say)?;
        }
        let mut files = walk_all(disk, &checkpoints)?;
        if let Some(seal) = &mut seal {
            correct_times(disk, &checkpoints, seal, &mut files)?;
            seal.note_rewritten(&files);
        }
        let kept = seal.iter().flat_map(Record::kept_files);
        let parts = seal.as_ref().map(Record::parts).unwrap_or_default();
        let groups = Groups::with_parts(expected(&files).chain(kept), parts);
        let unfinished = unfinished(&files, &groups);
        files.retain(|path, _| !has_unfinished_part(path));
        let judge = Judge { disk, folder: &checkpoints, seal: seal.as_ref(), groups: &groups, same_inodes: is_disk };
        let judged = judge.judge(&files, &unfinished)?;
        remove_empty(disk, &checkpoints, &files)?;
        let is_sealed = seal.is_some();
        if seal.as_ref().is_some_and(|seal| seal.trained && !seal.last) {
            say("an earlier attempt ended without a last seal: what it had not yet written to the volume is lost");
        }
        let seal = seal.unwrap_or_default();
        let aside = own.join(TORN).join(unused(disk, &own, &attempt.to_string())?);
        let workspace = Workspace {
            disk,
            checkpoints: &checkpoints,
            own: &own,
            seal: &seal,
            files: &files,
            groups: &groups,
            aside,
            say,
        };
        let (newest, counters) = workspace.put_right(&judged, is_sealed)?;
        if is_disk {
            disk.sync_all(point)?;
        }
        let found = Found { formatted: false, newest, torn: judged.torn, missing: judged.missing };
        let first = walk(disk, &checkpoints)?;
        let resumed = found.newest.is_some() && seal.trained;
        let mut record = seal.begun_by(attempt, judged.sealed, (&first, &groups));
        record.kept.retain(|path, _| !counters.contains(path));
        let unread = BTreeSet::new();
        let mut sealer = Self {
            checkpoints,
            own,
            is_disk,
            say,
            record,
            first,
            resumed,
            has_reserve: false,
            unread,
            took_back: false,
            seen: BTreeMap::new(),
        };
        if is_sealed || !sealer.first.is_empty() {
            sealer.keep_found(disk, &groups, found.newest.as_deref())?;
            sealer.write_record(disk)?;
        }
        Ok((sealer, found))
    }
}

/// A workspace that was judged.
struct Workspace<'a> {
    disk: &'a dyn Disk,
    checkpoints: &'a Path,
    own: &'a Path,
    seal: &'a Record,
    /// The files that lay there when it was judged.
    files: &'a BTreeMap<String, Stamp>,
    /// The groups of those files and of what is kept.
    groups: &'a Groups,
    /// The quarantine folder for incomplete checkpoints.
    aside: PathBuf,
    say: Say,
}

/// A checkpoint and when it was written.
type Written = (Option<i64>, String);

impl Workspace<'_> {
    /// Quarantines incomplete checkpoints, and puts kept ones in the places of those that are incomplete or gone.
    /// Returns the newest checkpoint after that, and the files that were quarantined because no version of them belongs
    /// to what is left: their kept versions are of no use.
    fn put_right(&self, judged: &Judgement, is_sealed: bool) -> io::Result<(Option<String>, Vec<String>)> {
        let (newest, of_text, counters) = self.put_torn_aside(judged)?;
        let last = newest.as_ref().map(|(modified, name)| (name.as_str(), modified.unwrap_or(i64::MIN)));
        let Self { disk, checkpoints, own, seal, groups, ref aside, .. } = *self;
        let mut kept = seal.kept.clone();
        kept.retain(|path, _| !counters.contains(path));
        let back = restore_removed(disk, [checkpoints, own, aside], &kept, groups, last)?;
        let mut newest = newest.map(|(_, name)| name);
        if let Some(back) = back {
            (self.say)(&format!("checkpoint {} was removed before a newer one was complete: it is back", back.name));
            newest = newest.filter(|_| back.is_older).or(Some(back.name));
        }
        if let Some(newest) = newest.as_ref().filter(|_| is_sealed) {
            Pointers { disk, checkpoints, own, kept: &kept, groups, sealed: &judged.sealed, torn: &judged.torn, aside }
                .repair(newest)?;
        }
        Ok((newest.or(of_text.map(|(_, name)| name)), counters))
    }

    /// Returns the newest checkpoint after that, the newest of text, and the files that were quarantined because they
    /// count what is lost or belong to it.
    fn put_torn_aside(&self, judged: &Judgement) -> io::Result<(Option<Written>, Option<Written>, Vec<String>)> {
        let modified = |name: &String| {
            let members = self.files.iter().filter(|(path, _)| self.groups.name(path) == name);
            members.map(|(_, stamp)| stamp.modified_ns).max()
        };
        let at = |name: &String| (modified(name), name.clone());
        let (mut newest, mut of_text) = (judged.newest.as_ref().map(at), judged.of_text.as_ref().map(at));
        let (mut all_back, mut groups_back, mut lost) = (Kept::new(), Vec::new(), BTreeSet::new());
        for group in judged.torn.iter().filter_map(|name| self.groups.named(name)) {
            let is_state = |path: &&String| {
                let bytes = self.files.get(*path).map_or(0, |stamp| stamp.bytes);
                !self.groups.is_numbered(path) && has_content(self.disk, &self.checkpoints.join(path), path, bytes)
            };
            lost.extend(group.members.iter().filter(is_state).cloned());
            put_group_aside(self.disk, self.checkpoints, &self.aside, group, self.seal)?;
            let mut back = Vec::new();
            let version = kept_version(self.disk, (self.seal, self.own), self.groups, group).unwrap_or_default();
            for (path, (kept, sealed)) in version {
                let file = self.checkpoints.join(path);
                if restore(self.disk, &kept, &file, sealed)? {
                    all_back.insert(path.to_owned(), sealed.clone());
                    back.push((sealed.stamp, has_content(self.disk, &file, path, sealed.stamp.bytes)));
                }
            }
            if let Some(modified) = back.iter().map(|(stamp, _)| stamp.modified_ns).max() {
                let name = &group.name;
                (self.say)(&is_back(name));
                let has_content = back.iter().any(|(_, has_content)| *has_content);
                groups_back.push((has_content, (Some(modified), name.clone())));
            }
        }
        let ahead = self.put_partners_back(&all_back)?;
        newest = newest.filter(|(_, name)| !ahead.contains(name));
        for (has_content, back) in groups_back {
            let slot = if has_content { &mut newest } else { &mut of_text };
            *slot = slot.take().max(Some(back));
        }
        lost.retain(|path| !all_back.contains_key(path));
        let mut counters = counters_beside(self.disk, self.checkpoints, self.seal, self.groups, (self.files, &lost));
        for path in &counters {
            (self.say)(&note(path, Partner::Ahead));
            put_aside(self.disk, self.checkpoints, &self.aside, path)?;
        }
        counters.extend(ahead);
        Ok((newest, of_text, counters))
    }

    /// Puts back the files that belong to those that went `back`. Returns those that were quarantined instead.
    fn put_partners_back(&self, back: &Kept) -> io::Result<Vec<String>> {
        let mut ahead = Vec::new();
        let Self { disk, checkpoints, own, seal, groups, files, .. } = *self;
        for (path, partner) in partners(disk, [checkpoints, own], seal, groups, (files, back))? {
            (self.say)(&note(&path, partner));
            let is_aside = partner != Partner::Unsure && put_aside(disk, checkpoints, &self.aside, &path)?;
            if is_aside && partner == Partner::Back {
                put_in_place(disk, &kept_path(own, &path), &checkpoints.join(&path))?;
            }
            ahead.extend(Some(path).filter(|_| partner == Partner::Ahead));
        }
        Ok(ahead)
    }
}

/// Removes empty checkpoint folders if others of their kind have files, because a script takes the newest folder.
fn remove_empty(disk: &dyn Disk, checkpoints: &Path, files: &BTreeMap<String, Stamp>) -> io::Result<()> {
    let folders: BTreeSet<String> =
        files.keys().flat_map(|path| path.match_indices('/').map(|(end, _)| &path[..end])).map(shape).collect();
    for folder in disk.empty_folders(checkpoints)? {
        if is_numbered(&folder) && folders.contains(&shape(&folder)) {
            disk.remove_folder(&checkpoints.join(folder))?;
        }
    }
    Ok(())
}
