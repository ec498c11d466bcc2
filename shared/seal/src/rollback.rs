//! A training that resumes and fails before it makes progress may have loaded a bad checkpoint, whatever the format
//! says. The seal then quarantines the newest checkpoint, and the next attempt starts from the one before. If that
//! attempt ends in the same way, the checkpoint was not the cause and is put back.

mod halves;
pub(crate) mod undo;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use spotsweep_protocol::claim::Rollback;

use crate::content::{has_content, is_small_text, is_whole};
use crate::database::is_database;
use crate::disk::{Disk, Stamp};
use crate::failed::{BadEnd, Failed};
use crate::files::{Kinds, has_all, kinds, walk};
use crate::groups::{Group, Groups};
use crate::kept::restore_removed;
use crate::logs::{Change, is_log, may_be_log};
use crate::names::{file_name, is_log_name, is_numbered};
use crate::pointers::{Pointers, names_of_latest};
use crate::record::Sealed;
use crate::rollback::halves::is_half;
use crate::sealer::Sealer;
use crate::shape::shape;
use crate::together::{Partner, counters_beside, note};

/// After so many failed checkpoints in a row, the trial fails with the training's own reason.
const MOST: usize = 4;
/// From this rollback on, a complete checkpoint is preferred to a newer one that may be incomplete.
const TO_COMPLETE: usize = 3;

/// The contents of the checkpoint folder after the command has failed.
struct Scene<'a> {
    disk: &'a dyn Disk,
    files: &'a BTreeMap<String, Stamp>,
    /// The groups of those files and of what is kept.
    groups: &'a Groups,
    /// Newest first, with the members that are present.
    checkpoints: &'a [(&'a Group, BTreeSet<&'a str>)],
    /// Files that may be what is left of a checkpoint.
    halves: &'a BTreeSet<String>,
}

impl Sealer {
    /// Whether the command has written a checkpoint since this attempt began. Databases do not count, because it may
    /// write to them before it loads one.
    pub fn has_new_checkpoint(&self, disk: &dyn Disk) -> io::Result<bool> {
        let files = walk(disk, &self.checkpoints)?;
        let mut changed = files.iter().filter(|(path, stamp)| self.first.get(*path) != Some(*stamp));
        let is_state = |path: &str| is_log_name(path) && self.record.change(path) == Some(Change::Rewritten);
        Ok(changed.any(|(path, stamp)| {
            let file = self.checkpoints.join(path);
            is_state(path) || (has_content(disk, &file, path, stamp.bytes) && !is_database(disk, &file))
        }))
    }

    /// Quarantines the newest checkpoint, because the command has ended without any progress. `None` if the checkpoint
    /// is not the cause: the trial was not interrupted before, there is no checkpoint, or the training has ended in the
    /// same way on a complete one. Also `None` if it has failed on this one before, or on four others since its last
    /// progress.
    ///
    /// # Errors
    /// If the workspace cannot be read or written.
    pub fn roll_back(&mut self, disk: &dyn Disk, end: &BadEnd) -> io::Result<Option<Rollback>> {
        let files = walk(disk, &self.checkpoints)?;
        let stamps = files.iter().map(|(path, stamp)| (path.as_str(), *stamp));
        let groups = Groups::with_parts(stamps.chain(self.record.kept_files()), self.record.parts());
        let mut checkpoints = self.checkpoints_of(disk, &files, &groups);
        // A file that the command itself has written, such as settings, is no checkpoint that it failed on.
        let was_found = |path: &&str| self.first.get(*path) == files.get(*path);
        checkpoints.retain(|(_, members)| members.iter().any(was_found));
        let modified = |members: &BTreeSet<&str>| members.iter().map(|path| files[*path].modified_ns).max();
        let newest_ns = checkpoints.iter().filter_map(|(_, members)| modified(members)).max().unwrap_or(i64::MIN);
        // It was written since: the training has passed the failed checkpoints.
        if self.record.failures.iter().all(|failed| newest_ns > failed.newest_ns) {
            self.record.failures.clear();
        }
        let place = self.blamed(disk, &files, &checkpoints)?;
        let extents = extents(&checkpoints);
        let is_complete =
            |place: &usize| extents[*place] != Extent::Fewer && self.is_sealed(&files, &checkpoints[*place]);
        let is_whole = |place: usize| extents[place] == Extent::All && self.is_whole(disk, &checkpoints[place]);
        let halves = self.halves(disk, &files)?;
        let is_half = |place: usize| is_half(checkpoints[place].0, &checkpoints[place].1, &halves);
        let is_proven = place.is_some_and(|place| !is_half(place) && (is_complete(&place) || is_whole(place)));
        if self.has_not_helped(end, place.is_none(), is_proven) {
            self.take_back(disk, end, place.is_none())?;
            return Ok(None);
        }
        let Some(place) = place.filter(|_| self.resumed) else { return Ok(None) };
        let (newest, members) = &checkpoints[place];
        let modified_ns = modified(members).unwrap_or(i64::MIN);
        let times = members.iter().map(|path| ((*path).to_owned(), files[*path].modified_ns)).collect();
        let is_known = |failed: &Failed| failed.name == newest.name && failed.modified == times;
        if self.record.failures.len() >= MOST || self.record.failures.iter().any(is_known) {
            return Ok(None);
        }
        let count = self.record.failures.len() + 1;
        let is_last = count == MOST;
        // Another name of the same file is no other checkpoint.
        let inodes: BTreeSet<u64> = members.iter().map(|path| files[*path].inode).collect();
        let is_alias = |other: usize| checkpoints[other].1.iter().any(|path| inodes.contains(&files[*path].inode));
        let others = || (0..checkpoints.len()).filter(|other| *other != place && !is_alias(*other));
        let is_older = |other: &usize| place > 0 || modified(&checkpoints[*other].1) < Some(modified_ns);
        let sealed = || others().find(|other| !is_half(*other) && self.is_sealed(&files, &checkpoints[*other]));
        let is_safe = |other: &usize| is_complete(other) && !(is_last && is_half(*other));
        let before = others().find(|other| count >= TO_COMPLETE && is_safe(other));
        let before = before.or_else(|| if is_last { sealed() } else { others().find(is_older) });
        let before = before.map(|place| &checkpoints[place]);
        let before = before.map(|(group, members)| (&*group.name, modified(members).unwrap_or(i64::MIN)));
        if is_last {
            self.drop_doubtful(disk, &groups);
        }
        let mut failed = Failed {
            name: newest.name.clone(),
            modified: times,
            newest_ns,
            end: end.clone(),
            is_proven,
            ..self.nothing_moved(disk)?
        };
        let scene = Scene { disk, files: &files, groups: &groups, checkpoints: &checkpoints, halves: &halves };
        let went_back = self.replace_or_go_back(&scene, newest, before, is_last, &mut failed);
        // A retry would lose a file that is quarantined and not recorded.
        let to = went_back.or_else(|error| self.put_back(disk, &failed).and(Err(error)))?;
        let rollback = Rollback { checkpoint: newest.name.clone(), exit_code: end.exit_code, to };
        self.record.failures.push(failed);
        self.write_record(disk)?;
        Ok(Some(rollback))
    }

    /// Puts the last sealed version in the place of `newest`, or goes back to the one `before` it. Returns the
    /// checkpoint that the next attempt starts from.
    fn replace_or_go_back(
        &mut self,
        scene: &Scene<'_>,
        newest: &Group,
        before: Option<(&str, i64)>,
        is_last: bool,
        failed: &mut Failed,
    ) -> io::Result<Option<String>> {
        if !self.replace_with_kept(scene.disk, (newest, scene.groups), is_last, failed)? {
            return self.go_back(scene, newest, before, failed);
        }
        // It counts as the same checkpoint, unless there is another one to go back to.
        let mut kept = newest.members.iter().filter_map(|path| self.record.kept.get(path));
        if scene.checkpoints.len() == 1 && !kept.any(|kept| kept.doubtful) {
            let stamps = walk(scene.disk, &self.checkpoints)?;
            let is_of_it = |(path, _): &(String, Stamp)| newest.members.contains(path);
            failed.modified =
                stamps.into_iter().filter(is_of_it).map(|(path, stamp)| (path, stamp.modified_ns)).collect();
        }
        Ok(Some("its last sealed version".to_owned()))
    }

    /// Drops the kept versions of checkpoints that are not known to be complete, so that no restore uses them.
    fn drop_doubtful(&mut self, disk: &dyn Disk, groups: &Groups) {
        let is_doubtful = |path: &&String| {
            let mut kept = self.record.kept.iter().filter(|(other, _)| groups.is_same(path, other));
            kept.any(|(_, kept)| kept.doubtful)
        };
        let doubtful: Vec<String> = self.record.kept.keys().filter(is_doubtful).cloned().collect();
        doubtful.iter().for_each(|path| self.drop_kept(disk, path));
    }

    /// Whether all files of a checkpoint are unchanged since their seal and known to be complete.
    fn is_sealed(&self, files: &BTreeMap<String, Stamp>, (group, members): &(&Group, BTreeSet<&str>)) -> bool {
        let is_sealed = |path: &str| {
            self.record.files.get(path).is_some_and(|sealed| sealed.stamp == files[path] && !sealed.doubtful)
        };
        group.members.iter().all(|path| members.contains(path.as_str()) && is_sealed(path))
    }

    /// Whether the formats of all files of a checkpoint show that they are complete.
    fn is_whole(&self, disk: &dyn Disk, (group, members): &(&Group, BTreeSet<&str>)) -> bool {
        let is_whole = |path: &str| is_whole(disk, &self.checkpoints.join(path)).unwrap_or(false);
        group.members.iter().all(|path| members.contains(path.as_str()) && is_whole(path))
    }

    /// The place in `checkpoints` of the one that the training loaded. It is the one that a pointer to the latest
    /// names, or else the newest. If the newest is unchanged since its seal, an unsealed one with a larger number takes
    /// its place. If a file's time was not written out, its number decides. A pointer to a sealed checkpoint may be
    /// older than an unsealed newer one, if the writer was lost between the two.
    fn blamed(
        &self,
        disk: &dyn Disk,
        files: &BTreeMap<String, Stamp>,
        checkpoints: &[(&Group, BTreeSet<&str>)],
    ) -> io::Result<Option<usize>> {
        let is_sealed = |checkpoint: &(&Group, BTreeSet<&str>)| self.is_sealed(files, checkpoint);
        let latest = names_of_latest(disk, &self.checkpoints, files)?;
        let is_latest = |(group, _): &(&Group, _)| group.places().iter().any(|place| latest.contains(file_name(place)));
        let is_sure = |place: &usize| !is_sealed(&checkpoints[*place]) || checkpoints[..*place].iter().all(is_sealed);
        if let Some(place) = checkpoints.iter().position(is_latest).filter(is_sure) {
            return Ok(Some(numbered(files, checkpoints, place)));
        }
        let Some(newest) = checkpoints.first() else { return Ok(None) };
        let is_later =
            |group: &Group| shape(&group.name) == shape(&newest.0.name) && group.numbers() > newest.0.numbers();
        let is_other = |other: &(&Group, BTreeSet<&str>)| is_later(other.0) && !is_sealed(other);
        let other = || checkpoints.iter().position(is_other);
        let place = if is_sealed(newest) { other().unwrap_or(0) } else { 0 };
        Ok(Some(numbered(files, checkpoints, place)))
    }

    /// Quarantines `newest` in favour of the one `before` it, or of a kept one that is newer than that. Returns its
    /// name.
    fn go_back(
        &mut self,
        scene: &Scene<'_>,
        newest: &Group,
        before: Option<(&str, i64)>,
        failed: &mut Failed,
    ) -> io::Result<Option<String>> {
        let Scene { disk, groups, .. } = *scene;
        newest.members.iter().for_each(|path| self.drop_kept(disk, path));
        self.move_group_aside(disk, failed, newest)?;
        let aside = self.aside(failed);
        let back = restore_removed(disk, [&self.checkpoints, &self.own, &aside], &self.record.kept, groups, before)?;
        self.note_restored(scene)?;
        let back = back.filter(|back| !back.is_older).map(|back| (back.name, back.modified_ns));
        let to = back.or_else(|| before.map(|(name, modified)| (name.to_owned(), modified)));
        let to_at = to.as_ref().map(|(name, modified)| (name.as_str(), *modified));
        self.put_newer_aside(scene, newest, to_at, failed)?;
        let to = to.map(|(name, _)| name);
        if let Some(to) = &to {
            let (checkpoints, own, sealed) = (&*self.checkpoints, &*self.own, &self.record.files);
            let (kept, aside) = (&self.record.kept, &aside);
            failed.replaced = Pointers { disk, checkpoints, own, kept, groups, sealed, torn: &[], aside }.repair(to)?;
        }
        Ok(to)
    }

    /// Checkpoints with content, newest first; those of text only if there are no others. A file that was hardly
    /// written out may look like a text, but its siblings show that it is none. Databases are left out because they
    /// recover by themselves.
    fn checkpoints_of<'a>(
        &self,
        disk: &dyn Disk,
        files: &'a BTreeMap<String, Stamp>,
        groups: &'a Groups,
    ) -> Vec<(&'a Group, BTreeSet<&'a str>)> {
        let is_none =
            |path: &&str| is_log(path, self.record.change(path)) || is_database(disk, &self.checkpoints.join(path));
        let mut all = groups.newest_first(files.iter().map(|(path, stamp)| (path.as_str(), *stamp)));
        all.retain(|(_, members)| !members.iter().all(is_none));
        let is_content = |path: &str| has_content(disk, &self.checkpoints.join(path), path, files[path].bytes);
        let content: BTreeSet<&str> = files.keys().map(String::as_str).filter(|path| is_content(path)).collect();
        let shapes: BTreeSet<String> =
            content.iter().filter(|path| is_numbered(path)).map(|path| shape(path)).collect();
        let has_content = |path: &&str| content.contains(path) || (is_numbered(path) && shapes.contains(&shape(path)));
        let with_content: Vec<_> = all.iter().filter(|(_, members)| members.iter().any(has_content)).cloned().collect();
        if !with_content.is_empty() {
            return with_content;
        }
        // Of texts, those with numbers are checkpoints; the others are pointers or counters next to them.
        let has_number =
            |(group, _): &(&Group, BTreeSet<&str>)| group.members.iter().any(|path| groups.is_numbered(path));
        if all.iter().any(has_number) {
            all.retain(has_number);
        }
        all
    }

    /// Seals the kept versions that are back in their places.
    fn note_restored(&mut self, scene: &Scene<'_>) -> io::Result<()> {
        for (path, kept) in &self.record.kept {
            match scene.disk.stamp(&self.checkpoints.join(path)) {
                Ok(stamp) if scene.files.get(path) != Some(&stamp) => {
                    self.record.files.insert(path.clone(), Sealed { stamp, ..kept.clone() });
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Quarantines what was written after the checkpoint `before` the `newest` one, or everything if there is none.
    fn put_newer_aside(
        &mut self,
        scene: &Scene<'_>,
        newest: &Group,
        before: Option<(&str, i64)>,
        failed: &mut Failed,
    ) -> io::Result<()> {
        let Scene { disk, files, checkpoints, halves, .. } = *scene;
        let is_newer = |modified_ns: i64| before.is_none_or(|(_, modified)| modified_ns > modified);
        for (group, members) in checkpoints.iter().filter(|(group, _)| group.name != newest.name) {
            if members.iter().any(|path| is_newer(files[*path].modified_ns))
                && before.map(|(name, _)| name) != Some(&group.name)
            {
                // The next attempt would put a kept half back, because it is newer than the checkpoint before.
                let half = group.members.iter().filter(|_| is_half(group, members, halves));
                half.for_each(|path| self.drop_kept(disk, path));
                self.move_group_aside(disk, failed, group)?;
            }
        }
        let shapes: BTreeSet<String> = newest.members.iter().map(|path| shape(path)).collect();
        for (path, stamp) in files.iter().filter(|(path, _)| !newest.members.contains(*path)) {
            let file = self.checkpoints.join(path);
            let may_stay = || is_small_text(disk, &file, stamp.bytes) || is_database(disk, &file);
            let is_later = is_newer(stamp.modified_ns) && (before.is_none() || !may_stay());
            let is_log = || {
                may_be_log(path, self.record.change(path))
                    && !(is_numbered(path) && shapes.contains(&shape(path)))
                    && !has_content(disk, &file, path, stamp.bytes)
            };
            if is_later && !is_log() {
                self.move_aside(disk, failed, path)?;
            }
        }
        self.put_counters_aside(scene, failed)?;
        // The other names of the checkpoint's only file.
        let is_file = |path: &str| files.contains_key(path) || self.record.kept.contains_key(path);
        let Some((before, _)) = before.filter(|(before, _)| is_file(before)) else { return Ok(()) };
        let alias = |(path, stamp): &(&String, &Stamp)| {
            files.get(&newest.name).is_some_and(|file| file.inode == stamp.inode) && **path != newest.name
        };
        for (path, _) in files.iter().filter(alias) {
            self.move_aside(disk, failed, path)?;
            if !is_numbered(path) {
                disk.hard_link(&self.checkpoints.join(before), &self.checkpoints.join(path))?;
            }
        }
        Ok(())
    }

    /// Quarantines the texts that count what was quarantined and is rewritten in place.
    fn put_counters_aside(&mut self, scene: &Scene<'_>, failed: &mut Failed) -> io::Result<()> {
        let Scene { disk, files, groups, checkpoints, .. } = *scene;
        let members = checkpoints.iter().flat_map(|(_, members)| members);
        let aside = self.aside(failed);
        let is_lost = |path: &&str| {
            let is_state = has_content(disk, &aside.join(path), path, files[*path].bytes);
            is_state && !groups.is_numbered(path) && disk.stamp(&self.checkpoints.join(path)).is_err()
        };
        let lost = members.copied().filter(is_lost).map(str::to_owned).collect();
        for path in counters_beside(disk, &self.checkpoints, &self.record, groups, (files, &lost)) {
            (self.say)(&note(&path, Partner::Ahead));
            self.drop_kept(disk, &path);
            self.move_aside(disk, failed, &path)?;
        }
        Ok(())
    }
}

/// The place of a numbered name of the same file, if the name at `place` has no number: `epoch_4.pt` for `last.pt`.
fn numbered(files: &BTreeMap<String, Stamp>, checkpoints: &[(&Group, BTreeSet<&str>)], place: usize) -> usize {
    let inodes = |place: usize| checkpoints[place].1.iter().map(|path| files[*path].inode).collect::<BTreeSet<_>>();
    let has_number = |place: usize| checkpoints[place].1.iter().all(|path| is_numbered(path));
    let is_other_name = |other: &usize| has_number(*other) && inodes(*other) == inodes(place);
    if has_number(place) { place } else { (0..checkpoints.len()).find(is_other_name).unwrap_or(place) }
}

/// How the files of a checkpoint compare with those of similar checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All kinds of files that the similar ones have.
    All,
    /// Not all kinds, but the same kinds as another checkpoint.
    Shared,
    /// Fewer.
    Fewer,
}

/// The extent of each checkpoint.
fn extents(checkpoints: &[(&Group, BTreeSet<&str>)]) -> Vec<Extent> {
    let all: Vec<Kinds> = checkpoints.iter().map(|(group, _)| kinds(group.members.iter())).collect();
    let mut times = BTreeMap::<&Kinds, usize>::new();
    all.iter().for_each(|kinds| *times.entry(kinds).or_default() += 1);
    let is_like = |own: &Kinds, other: &Kinds| other.keys().any(|kind| own.contains_key(kind));
    let extent = |own: &Kinds| match times[own] {
        _ if times.keys().all(|other| !is_like(own, other) || has_all(own, other)) => Extent::All,
        2.. => Extent::Shared,
        _ => Extent::Fewer,
    };
    all.iter().map(extent).collect()
}
