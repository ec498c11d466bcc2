//! Keeps sealed checkpoints: see [`kept`](crate::kept).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::content::{has_content, hash};
use crate::database::{is_database, is_divided};
use crate::disk::Disk;
use crate::failed::Failed;
use crate::files::{has_all, kinds, newest_group, walk};
use crate::groups::{Group, Groups, are_of_one_save};
use crate::kept::{Kept, is_intact, kept_path, kept_version, put_in_place};
use crate::logs::is_log;
use crate::names::{checkpoint, file_name, is_pointer_name};
use crate::pointers::{names_one, text};
use crate::record::Sealed;
use crate::room::Room;
use crate::saves::Saves;
use crate::sealer::Sealer;
use crate::shape::shape;
use crate::together::{Partner, note, partners};

/// A checkpoint with fewer files than the one before counts as complete if nothing was written to it for this time.
const COMPLETE_AFTER_NS: i64 = 300_000_000_000;

impl Sealer {
    /// Keeps the newest checkpoint of `files`, which are about to be sealed at `now_ns`, and drops what it replaces. A
    /// checkpoint that cannot be kept costs progress only if an instance is lost.
    pub(crate) fn keep(&mut self, disk: &dyn Disk, files: &Kept, groups: &Groups, now_ns: i64) {
        let next = self.next_group(disk, files, groups, now_ns);
        let worse = self.worse(disk, files, groups);
        let (mut added, mut room) = (Vec::new(), Room::of(groups));
        for (path, sealed) in files {
            let is_log = is_log(path, sealed.change);
            let is_numbered = groups.is_numbered(path);
            if is_log && !is_numbered && self.record.kept.contains_key(path) {
                self.drop_kept(disk, path);
            }
            let is_next = || next.as_ref().is_some_and(|group| group.contains(path));
            let is_wanted = || {
                let is_wanted = if is_numbered { is_next() } else { !is_log };
                is_wanted && !is_divided(disk, &self.checkpoints, path)
            };
            let is_known = self.record.kept.get(path).is_some_and(|kept| kept.sha256 == sealed.sha256);
            if is_known {
                let was_sound = self.record.kept.get(path).is_some_and(|kept| !kept.doubtful);
                let sealed = Sealed { doubtful: sealed.doubtful && !was_sound, ..sealed.clone() };
                self.record.kept.insert(path.clone(), sealed);
            }
            // Parts of two versions are no checkpoint.
            let has_worse_part = || sealed.is_part && worse.iter().any(|part| groups.is_same(part, path));
            let is_worse = worse.contains(path) || has_worse_part();
            if !is_known && !is_worse && is_wanted() && self.keep_one(disk, path, sealed, &mut room) && is_numbered {
                added.push(path.clone());
            }
        }
        if let Some(group) = next {
            self.drop_replaced(disk, &group, groups, &added);
        }
        self.drop_mixed(disk, files, groups);
        let checkpoints = &self.checkpoints;
        self.record.note_in_place(|path, kept| {
            let sealed = files.get(path).filter(|sealed| !groups.is_numbered(path) && sealed.sha256 == kept.sha256);
            sealed.is_some_and(|sealed| disk.stamp(&checkpoints.join(path)).is_ok_and(|now| now == sealed.stamp))
        });
    }

    /// Those of `files` whose kept versions are better. A file that may be incomplete does not replace a complete one. Of
    /// two such versions the longer one replaces the shorter one, which may be only its beginning.
    fn worse(&self, disk: &dyn Disk, files: &Kept, groups: &Groups) -> BTreeSet<String> {
        let is_worse = |(path, sealed): &(&String, &Sealed)| {
            let Some(kept) = self.record.kept.get(*path).filter(|kept| kept.sha256 != sealed.sha256) else {
                return false;
            };
            let is_better = !kept.doubtful || kept.stamp.bytes > sealed.stamp.bytes;
            (sealed.doubtful && is_better) || self.names_nothing(disk, path, files, groups)
        };
        files.iter().filter(is_worse).map(|(path, _)| path.clone()).collect()
    }

    /// The checkpoints of `files`, of what was sealed before, and of what is kept. The training may have removed the
    /// others, but they show which files make up the newest one.
    pub(crate) fn groups(&self, files: &Kept) -> Groups {
        let parts = files.iter().filter(|(_, sealed)| sealed.is_part).map(|(path, _)| path.clone());
        let parts = parts.chain(self.record.parts());
        let files = files.iter().chain(&self.record.files).map(|(path, sealed)| (path.as_str(), sealed.stamp));
        Groups::to_keep(files.chain(self.record.kept_files()), parts.collect())
    }

    /// The newest checkpoint of `files` that is to replace the kept one. The training may be writing a newer one.
    /// Numbered texts are checkpoints if nothing else is one.
    fn next_group(&self, disk: &dyn Disk, files: &Kept, groups: &Groups, now_ns: i64) -> Option<BTreeSet<String>> {
        let has_content =
            |folder: &Path, path: &str, file: &Sealed| has_content(disk, &folder.join(path), path, file.stamp.bytes);
        let mut found: Vec<_> =
            files.iter().filter(|(path, file)| has_content(&self.checkpoints, path, file)).collect();
        let kept = kept_path(&self.own, "");
        if found.is_empty() && !self.record.kept.iter().any(|(path, file)| has_content(&kept, path, file)) {
            let is_text = |path: &str, file: &Sealed| groups.is_numbered(path) && !is_log(path, file.change);
            found = files.iter().filter(|(path, file)| file.stamp.bytes > 0 && is_text(path, file)).collect();
        }
        let ordered = groups.newest_first(found.into_iter().map(|(path, file)| (path.as_str(), file.stamp)));
        let paths = |group: &Group| group.members.iter().filter(|path| files.contains_key(*path)).cloned().collect();
        let kept_at = self.record.kept.iter().filter(|(path, _)| groups.is_numbered(path));
        let kept_at = kept_at.map(|(_, file)| file.stamp.modified_ns).max();
        let modified = |members: &BTreeSet<&str>| members.iter().map(|path| files[*path].stamp.modified_ns).max();
        let newer = ordered.into_iter().take_while(|(_, members)| modified(members) >= kept_at);
        newer.map(|(group, _)| paths(group)).find(|group| self.is_next(group, files, groups, now_ns))
    }

    /// Drops the checkpoints that `group` replaces, if all of `group` is kept and none of it is doubtful. If a part of
    /// it is not kept, because the training is writing to it again, drops what was `added` of it.
    fn drop_replaced(&mut self, disk: &dyn Disk, group: &BTreeSet<String>, groups: &Groups, added: &[String]) {
        let is_whole = group.iter().all(|path| self.record.kept.contains_key(path));
        // A file of a checkpoint still belongs to it after the training has removed the file.
        let names: BTreeSet<&str> = group.iter().map(|path| groups.name(path)).collect();
        let is_old = |path: &&String| groups.is_numbered(path) && !names.contains(groups.name(path));
        let old: Vec<String> = self.record.kept.keys().filter(is_old).cloned().collect();
        let is_doubtful = group.iter().filter_map(|path| self.record.kept.get(path)).any(|kept| kept.doubtful);
        let dropped = match (is_whole || old.is_empty(), is_doubtful) {
            (true, false) => &old,
            (true, true) => return,
            (false, _) => added,
        };
        dropped.iter().for_each(|path| self.drop_kept(disk, path));
    }

    /// Drops the kept parts of `files` whose other parts could not be kept, so that their kept versions are missing or
    /// are of an earlier save.
    fn drop_mixed(&mut self, disk: &dyn Disk, files: &Kept, groups: &Groups) {
        let kept = &self.record.kept;
        let is_mixed = |(group, members): &(&Group, BTreeSet<&str>)| {
            let has_all = || group.members.iter().all(|path| kept.contains_key(path) || !files.contains_key(path));
            let stamps = || members.iter().map(|path| (*path, kept[*path].stamp));
            groups.has_parts(group) && !(has_all() && are_of_one_save(stamps()))
        };
        let mixed = groups.newest_first(self.record.kept_files()).into_iter().filter(is_mixed);
        let mixed: Vec<String> = mixed.flat_map(|(_, members)| members).map(str::to_owned).collect();
        mixed.iter().for_each(|path| self.drop_kept(disk, path));
    }

    /// Keeps the sealed files that were found, and newer ones if nothing is kept in their place: only when the command
    /// loads a file does it show whether it is complete. Also keeps texts that name a checkpoint, because an instance
    /// may be lost before the first seal, while the next text is being written.
    pub(crate) fn keep_found(&mut self, disk: &dyn Disk, groups: &Groups, newest: Option<&str>) -> io::Result<()> {
        let mut files = self.record.files.clone();
        let is_numbered = |path: &str| groups.is_numbered(path);
        let has_group = self.record.kept.keys().any(|path| is_numbered(path));
        let names: BTreeSet<&str> = self.first.keys().map(|path| file_name(groups.place(path))).collect();
        let is_pointer = |path: &str| {
            let text = || text(disk, &self.checkpoints.join(path));
            !is_numbered(path) && text().is_some_and(|text| names_one(&text, &|word| names.contains(word)))
        };
        let found = self.first.iter().map(|(path, stamp)| (path.as_str(), *stamp));
        let possible = Groups::to_keep(found.chain(self.record.kept_files()), self.record.parts());
        let newest = newest.and_then(|name| groups.named(name)).and_then(|group| group.members.first());
        let saves = Saves::of_found(&self.first);
        // Only the saves of this attempt show which files are parts of one checkpoint.
        let parts: BTreeSet<&str> = newest.into_iter().flat_map(|newest| saves.parts(newest)).collect();
        let is_same = |path: &str, newest: &str| groups.is_same(path, newest) || possible.is_same(path, newest);
        let is_of_newest = |path: &str| parts.contains(path) || newest.is_some_and(|newest| is_same(path, newest));
        for (path, stamp) in &self.first {
            if files.get(path).is_some_and(|sealed| sealed.stamp == *stamp) {
                continue;
            }
            let is_pointer = is_pointer(path);
            let is_newest = is_of_newest(path);
            let is_kept = if is_numbered(path) { has_group } else { self.record.kept.contains_key(path) };
            // The next attempt sees by its seal whether a save of this one has written over it.
            let is_overwritten = || -> io::Result<bool> {
                let is_rewritten = !is_numbered(path) || checkpoint(path) == path;
                Ok(self.record.is_part(path) || (is_rewritten && disk.may_mix(&self.checkpoints.join(path))?))
            };
            if is_pointer || (is_newest && (!is_kept || is_overwritten()?)) {
                let sealed = self.seal_one(disk, path, *stamp)?;
                files.extend(sealed.map(|sealed| (path.clone(), Sealed { doubtful: !is_pointer, ..sealed })));
            }
        }
        let groups_to_keep = self.groups(&files);
        let mut to_keep = files.clone();
        let worse = self.worse(disk, &files, &groups_to_keep);
        if parts.iter().chain(&newest.map(String::as_str)).any(|part| worse.contains(*part)) {
            // The kept versions of the others would be of another save.
            to_keep.retain(|path, _| !parts.contains(path.as_str()) && newest != Some(path));
        }
        self.keep(disk, &to_keep, &groups_to_keep, i64::MIN);
        self.forget_unknown(disk)?;
        self.record.files = files;
        Ok(())
    }

    /// Whether to keep the checkpoint `group` of `files` after the kept one: it is newer, and complete as far as one
    /// can tell. It has all files that the kept one has, or nothing was written to it for some time.
    fn is_next(&self, group: &BTreeSet<String>, files: &Kept, groups: &Groups, now_ns: i64) -> bool {
        let numbered = || self.record.kept.iter().filter(|(path, _)| groups.is_numbered(path));
        let has_sound = numbered().any(|(_, file)| !file.doubtful);
        let sound = numbered().filter(|(_, file)| !(has_sound && file.doubtful));
        let kept = newest_group(groups, sound.map(|(path, file)| (path.as_str(), file.stamp)), self.record.kept.keys());
        let modified = group.iter().filter_map(|path| files.get(path)).map(|file| file.stamp.modified_ns).max();
        let kept_at = numbered().map(|(_, file)| file.stamp.modified_ns);
        let has_all = has_all(&kinds(group.iter()), &kinds(kept.iter()));
        let is_new = group.iter().any(|path| self.first.get(path) != files.get(path).map(|file| &file.stamp));
        let is_quiet = modified.is_some_and(|modified| now_ns.saturating_sub(modified) > COMPLETE_AFTER_NS) && is_new;
        modified >= kept_at.max() && (has_all || is_quiet)
    }

    /// Whether the text at `path` names no checkpoint although its kept version does: its writer has given up, and the
    /// file is closed. A training writes a pointer after its checkpoint.
    fn names_nothing(&self, disk: &dyn Disk, path: &str, files: &Kept, groups: &Groups) -> bool {
        if groups.is_numbered(path) {
            return false;
        }
        let texts = text(disk, &kept_path(&self.own, path)).zip(text(disk, &self.checkpoints.join(path)));
        let Some((before, now)) = texts else { return false };
        // What lay there when the attempt began may not be sealed yet.
        let paths = files.keys().chain(self.first.keys());
        let names: BTreeSet<&str> = paths.map(|path| file_name(groups.place(path))).collect();
        let shapes: BTreeSet<String> = names.iter().map(|name| shape(name)).collect();
        names_one(&before, &|word| shapes.contains(&shape(word))) && !names_one(&now, &|word| names.contains(word))
    }

    /// Whether a file is empty although it had content or has the name of a pointer: its writer has begun and given up.
    pub(crate) fn is_emptied(&self, path: &str, bytes: u64) -> bool {
        let had_content = |files: &Kept| files.get(path).is_some_and(|file| file.stamp.bytes > 0);
        bytes == 0 && (is_pointer_name(path) || had_content(&self.record.files) || had_content(&self.record.kept))
    }

    /// Puts the newest kept versions of the files of `group` in their places if they differ, and quarantines the
    /// present files. If `only_sealed`, leaves out versions that are not known to be complete. Also puts back the files
    /// that belong to them. Returns whether there are any.
    pub(crate) fn replace_with_kept(
        &mut self,
        disk: &dyn Disk,
        (group, groups): (&Group, &Groups),
        only_sealed: bool,
        failed: &mut Failed,
    ) -> io::Result<bool> {
        let mut restored = Kept::new();
        let files = walk(disk, &self.checkpoints)?;
        if let Some(version) = self.different_versions(disk, (group, groups), only_sealed)? {
            for (path, (at, sealed)) in version {
                let file = self.checkpoints.join(&path);
                self.move_aside(disk, failed, &path)?;
                put_in_place(disk, &at, &file)?;
                restored.insert(path, Sealed { stamp: disk.stamp(&file)?, ..sealed });
            }
        }
        let has_any = !restored.is_empty();
        let at = [&*self.checkpoints, &*self.own];
        for (path, partner) in partners(disk, at, &self.record, groups, (&files, &restored))? {
            (self.say)(&note(&path, partner));
            if partner == Partner::Ahead {
                self.drop_kept(disk, &path);
                self.move_aside(disk, failed, &path)?;
            }
            if let Some(kept) = self.record.kept.get(&path).filter(|_| partner == Partner::Back) {
                let file = self.checkpoints.join(&path);
                self.move_aside(disk, failed, &path)?;
                put_in_place(disk, &kept_path(&self.own, &path), &file)?;
                restored.insert(path, Sealed { stamp: disk.stamp(&file)?, ..kept.clone() });
            }
        }
        self.record.files.extend(restored);
        Ok(has_any)
    }

    /// The files of the kept version of `group` that differ from what is there, by path, with their places.
    fn different_versions(
        &self,
        disk: &dyn Disk,
        (group, groups): (&Group, &Groups),
        only_sealed: bool,
    ) -> io::Result<Option<BTreeMap<String, (PathBuf, Sealed)>>> {
        let Some(version) = kept_version(disk, (&self.record, &self.own), groups, group) else { return Ok(None) };
        let is_whole = version.values().all(|(_, sealed)| !sealed.doubtful);
        let mut different = BTreeMap::new();
        for (path, (at, sealed)) in version {
            let file = self.checkpoints.join(path);
            let now = match disk.stamp(&file) {
                _ if is_database(disk, &file) || (only_sealed && sealed.doubtful) => continue,
                Ok(stamp) => Some(hash(disk, &file, stamp.bytes)?),
                Err(_) => None,
            };
            if Some(&sealed.sha256) != now.as_ref() && is_intact(disk, &at, sealed).unwrap_or(false) {
                different.insert(path.to_owned(), (at, sealed.clone()));
            }
        }
        let lacks_some = groups.has_parts(group) && only_sealed && !is_whole;
        Ok(Some(different).filter(|different| !different.is_empty() && !lacks_some))
    }
}
