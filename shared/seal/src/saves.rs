//! Finds the files that a save rewrites under their names, such as `model-rank-0.pt` and `model-rank-1.pt`.
//!
//! The names of such files do not say which version is newer. Versions are of one save if they were written right after
//! each other. If a later save has rewritten only some of them, it was cut.

use std::collections::{BTreeMap, BTreeSet};

use crate::at_end::AtEnd;
use crate::content::is_small_text;
use crate::disk::{Disk, Stamp};
use crate::groups::{Written, are_of_one_save, is_next, written};
use crate::kept::Kept;
use crate::logs::{Change, is_log};
use crate::names::{checkpoint, is_pointer_name};
use crate::record::{Record, Sealed};
use crate::sealer::Sealer;
use crate::shape::shape;

/// Files by the saves that have written them.
#[derive(Debug, Default)]
pub(crate) struct Saves {
    /// The files of each save.
    all: Vec<Vec<String>>,
    /// The place of each file's save in `all`.
    by_path: BTreeMap<String, usize>,
}

impl Saves {
    /// Divides `versions`. Folders of one shape, such as those of ranks, count as one.
    pub(crate) fn of<'a>(versions: impl IntoIterator<Item = (&'a String, &'a Sealed)>) -> Self {
        Self::divide(versions.into_iter().map(|(path, sealed)| (path, sealed.stamp, sealed.change)))
    }

    /// Divides files that are not sealed.
    pub(crate) fn of_found(found: &BTreeMap<String, Stamp>) -> Self {
        Self::divide(found.iter().map(|(path, stamp)| (path, *stamp, None)))
    }

    fn divide<'a>(versions: impl Iterator<Item = (&'a String, Stamp, Option<Change>)>) -> Self {
        let mut families = BTreeMap::<String, Vec<Written>>::new();
        let is_state = |(path, _, change): &(&String, _, _)| !is_pointer_name(path) && !is_log(path, *change);
        for (path, stamp, _) in versions.filter(is_state) {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            families.entry(shape(folder)).or_default().push(written(path, stamp));
        }
        let mut saves = Self::default();
        for mut files in families.into_values() {
            files.sort_unstable();
            for save in files.chunk_by(is_next) {
                saves.by_path.extend(save.iter().map(|file| (file.path.to_owned(), saves.all.len())));
                saves.all.push(save.iter().map(|file| file.path.to_owned()).collect());
            }
        }
        saves
    }

    /// The other files of the save of the one at `path`.
    pub(crate) fn with<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a str> {
        let save = self.by_path.get(path).into_iter().flat_map(|place| &self.all[*place]);
        save.map(String::as_str).filter(move |other| *other != path)
    }

    /// The parts of the same checkpoint: those whose names differ in a number only. Such a file that is rewritten
    /// shows that the number is not that of a checkpoint.
    pub(crate) fn parts<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a str> {
        self.with(path).filter(move |other| shape(other) == shape(path))
    }

    /// The parts of the checkpoints of which all parts are as `is_rewritten` says. Files in a folder that is named like a
    /// checkpoint are none: they are rewritten only where a save is repeated.
    fn all_parts(&self, is_rewritten: &dyn Fn(&str) -> bool) -> BTreeSet<String> {
        let is_part = |path: &&String| {
            let mut parts = self.parts(path).peekable();
            parts.peek().is_some() && checkpoint(path) == *path && is_rewritten(path) && parts.all(is_rewritten)
        };
        self.by_path.keys().filter(is_part).cloned().collect()
    }

    /// Whether the parts of the checkpoint of the one at `path` are as one save has left them, as far as the times of
    /// their last changes show.
    pub(crate) fn are_of_one(&self, path: &str, stamp: impl Fn(&str) -> Option<Stamp>) -> bool {
        are_of_one_save(self.parts(path).chain([path]).filter_map(|part| Some((part, stamp(part)?))))
    }

    /// Whether one save has written both files.
    pub(crate) fn is_one(&self, one: &str, other: &str) -> bool {
        self.by_path.get(one).zip(self.by_path.get(other)).is_some_and(|(one, other)| one == other)
    }
}

/// Whether a file is as it was when it had this stamp, in the same place or copied.
pub(crate) fn is_unchanged(now: &Stamp, then: &Stamp) -> bool {
    (now.bytes, now.modified_ns) == (then.bytes, then.modified_ns)
}

/// Notes in `files` that these `parts` are parts of one checkpoint.
fn mark(parts: &BTreeSet<String>, files: &mut Kept) {
    files.iter_mut().filter(|(path, _)| parts.contains(*path)).for_each(|(_, sealed)| sealed.is_part = true);
}

/// What a round of sealing has found.
pub(crate) struct Round<'a> {
    pub(crate) now_ns: i64,
    pub(crate) found: &'a BTreeMap<String, Stamp>,
    /// The same at the round before.
    pub(crate) before: &'a BTreeMap<String, Stamp>,
    /// Those that may be sealed and differ from their seal, and whether each is at rest.
    pub(crate) ready: &'a BTreeMap<String, bool>,
}

impl Record {
    /// Notes which of the files that an attempt `found` are parts of one checkpoint: saves have rewritten all of them
    /// since the seal. Versions that were put back are older.
    pub(crate) fn note_rewritten(&mut self, found: &BTreeMap<String, Stamp>) {
        let parts = Saves::of(self.versions()).all_parts(&|path| {
            found.get(path).zip(self.version(path)).is_some_and(|(now, then)| now.modified_ns > then.stamp.modified_ns)
        });
        let known = self.versions().filter(|(path, _)| parts.contains(*path));
        let known = known.map(|(path, sealed)| (path.clone(), Sealed { is_part: true, ..sealed.clone() }));
        let known: Kept = known.collect();
        self.files.extend(known);
    }
}

impl Sealer {
    /// Whether the save that has rewritten the file at `path` may still go on, because it has not yet rewritten all
    /// files that were saved with it before. It is over if a later save has passed that one over, too. Otherwise it is
    /// over if it has not begun the next file in time. That shows nothing of parts, because a training may hang.
    pub(crate) fn is_within_save(&self, disk: &dyn Disk, path: &str, saves: &Saves, round: &Round<'_>) -> bool {
        let Round { now_ns, found, before, ready } = *round;
        let sealed = |path: &str| self.record.version(path).map(|sealed| sealed.stamp);
        let stamp = found[path];
        let is_later = |before: &Stamp| !is_next(&written(path, *before), &written(path, stamp));
        let is_again = before.get(path).is_some_and(|before| sealed(path) != Some(*before) && is_later(before));
        saves.with(path).any(|other| {
            let Some(then) = sealed(other) else { return false };
            let Some(now) = found.get(other) else { return shape(other) == shape(path) && !is_again };
            let next = Written { at: now_ns, bytes: then.bytes, path: other };
            let is_emptied = self.is_emptied(other, now.bytes);
            let is_text = || !is_emptied && is_small_text(disk, &self.checkpoints.join(other), now.bytes);
            let is_part = shape(other) == shape(path) && (self.record.is_part(path) || *now != then);
            let is_in_time = || is_part || is_next(&written(path, stamp), &next);
            let is_over = (is_again && *now == then) || !is_in_time();
            !ready.contains_key(other) && !is_over && !is_text()
        })
    }

    /// Whether saves have rewritten all parts of the checkpoint of the one at `path` since the seal, but not the same one.
    /// If a later save has passed over a part, they are files that are saved independently of each other.
    pub(crate) fn is_of_two_saves(&self, path: &str, saves: &Saves, round: &Round<'_>) -> bool {
        let Round { found, before, .. } = *round;
        let parts = || saves.parts(path).chain([path]);
        let sealed = |part: &str| self.record.version(part).map(|sealed| sealed.stamp);
        let is_rewritten = |part: &str| found.get(part).is_some_and(|now| Some(*now) != sealed(part));
        let is_again = |part: &str| before.get(part) != found.get(part) && before.get(part) != sealed(part).as_ref();
        let is_left_out = |part: &str| before.get(part) == found.get(part);
        let is_passed_over = || parts().any(is_again) && parts().any(is_left_out);
        parts().all(is_rewritten) && !saves.are_of_one(path, |path| found.get(path).copied()) && !is_passed_over()
    }

    /// Notes which of the files that are about to be sealed are parts of one checkpoint: one save has rewritten all of
    /// them. A version that was put back has the content of the one before.
    pub(crate) fn note_parts(&self, saves: &Saves, sealed: &mut Kept) {
        let is_rewritten = |path: &str| {
            let versions = sealed.get(path).zip(self.record.version(path));
            versions.is_some_and(|(now, then)| now.sha256 != then.sha256)
        };
        let mut parts = saves.all_parts(&is_rewritten);
        let stamp = |path: &str| sealed.get(path).map(|sealed| sealed.stamp);
        parts.retain(|path| saves.are_of_one(path, stamp));
        mark(&parts, sealed);
    }

    /// Completes the last seal: leaves out what belongs to a save that was cut, and doubts all parts of a save of which
    /// one may be incomplete. The earlier state of a file that is left out stays, so that the next attempt sees which
    /// files are of a later save than the others. Returns the files that are left out.
    pub(crate) fn complete_last(
        &self,
        at_end: &AtEnd,
        found: &BTreeMap<String, Stamp>,
        files: &mut Kept,
    ) -> BTreeSet<String> {
        let saves = Saves::of(self.record.versions());
        let cut = self.cut_at_end(at_end, &saves, (found, files));
        for path in &cut {
            (self.say)(&format!("checkpoint file {path} is of a save that was cut, and is not sealed"));
            files.remove(path);
        }
        self.note_parts(&saves, files);
        let is_doubtful = |path: &str| files.get(path).is_some_and(|sealed| sealed.is_part && sealed.doubtful);
        let doubtful: BTreeSet<String> =
            files.keys().filter(|path| saves.parts(path).any(is_doubtful)).cloned().collect();
        files.iter_mut().filter(|(path, _)| doubtful.contains(*path)).for_each(|(_, sealed)| sealed.doubtful = true);
        for (path, before) in self.record.versions().filter(|(path, _)| found.contains_key(*path)) {
            files.entry(path.clone()).or_insert_with(|| before.clone());
        }
        cut
    }

    /// Those of `found` that belong to a save that was cut at the end of the command: other parts were left out of
    /// `files`, were not rewritten yet, or are of the save before.
    fn cut_at_end(
        &self,
        at_end: &AtEnd,
        saves: &Saves,
        (found, files): (&BTreeMap<String, Stamp>, &Kept),
    ) -> BTreeSet<String> {
        let sealed = |path: &str| self.record.version(path).map(|sealed| sealed.stamp);
        let differs = |path: &str| found.get(path).copied().zip(sealed(path)).is_some_and(|(now, then)| now != then);
        let is_rewritten = |path: &str| match files.get(path).zip(self.record.version(path)) {
            Some((now, then)) => now.sha256 != then.sha256,
            None => differs(path),
        };
        let rewritten = saves.all_parts(&is_rewritten);
        let is_cut = |path: &&String| {
            let mut parts = saves.parts(path).filter_map(|other| Some((other, sealed(other)?)));
            let is_cut = |(other, then): (&str, Stamp)| match found.get(other) {
                Some(now) if *now != then => !files.contains_key(other),
                Some(_) | None => self.record.is_part(path) || at_end.was_between(found[*path], then),
            };
            parts.any(is_cut) || (rewritten.contains(*path) && !saves.are_of_one(path, |path| found.get(path).copied()))
        };
        files.keys().filter(|path| differs(path)).filter(is_cut).cloned().collect()
    }
}
