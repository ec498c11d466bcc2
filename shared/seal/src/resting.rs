//! Seals files while the command runs.

use std::cell::{LazyCell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::at_end::AtEnd;
use crate::content::{has_content, is_small_text, is_whole};
use crate::disk::{Disk, Stamp, is_full};
use crate::files::walk;
use crate::groups::Groups;
use crate::kept::Kept;
use crate::logs::{Change, may_be_log};
use crate::names::{is_library_log, is_log_name, is_numbered};
use crate::record::{Record, Sealed};
use crate::saves::{Round, Saves};
use crate::sealer::Sealer;

/// A file that was modified within this time may change again and have the same stamp: times are no finer than the
/// kernel's tick (a hundredth of a second at most: <https://man7.org/linux/man-pages/man7/time.7.html>).
const TICK: Duration = Duration::from_millis(20);

/// A file that never rests is sealed after this time without a seal if its format shows that it is complete.
const LONG: Duration = Duration::from_secs(20);

impl Sealer {
    /// Seals the files that are closed, not incomplete by their format, and unchanged for `quiet` at `now_ns`, in
    /// nanoseconds since 1970. Returns whether the seal has changed. A file that is rewritten again and again may never
    /// rest for `quiet`. Its first version is sealed if its format shows that it is complete, and another one if the
    /// last seal of it is old. `open` finds the files that are open for writing. No file of a checkpoint is sealed while
    /// another one is open: the command may be writing it again after a save that it has abandoned.
    ///
    /// # Errors
    /// If the workspace cannot be read or written.
    pub fn seal_resting(
        &mut self,
        disk: &dyn Disk,
        quiet: Duration,
        now_ns: i64,
        open: &dyn Fn() -> BTreeSet<PathBuf>,
    ) -> io::Result<bool> {
        self.reserve(disk);
        // Most rounds find nothing new and need not look at the processes.
        let at_rest = LazyCell::new(|| AtEnd::new(open(), now_ns, false));
        let mut has_replaced = false;
        let found = walk(disk, &self.checkpoints)?;
        let before = std::mem::replace(&mut self.seen, found.clone());
        for (path, stamp) in &found {
            has_replaced |= self.note_replaced(path, *stamp, before.get(path));
        }
        let ready = self.ready(disk, &found, &at_rest, (quiet, now_ns));
        let mut changed = self.trusted(&found);
        changed.extend(self.seal_ready(disk, &Round { now_ns, found: &found, before: &before, ready: &ready })?);
        let is_gone = |path: &String| !found.contains_key(path);
        if changed.is_empty() && !has_replaced && !self.record.files.keys().any(is_gone) {
            return Ok(false);
        }
        // The earlier state of a file stays in the manifest until its new state is known.
        let mut files = self.record.files.clone();
        files.retain(|path, _| !is_gone(path));
        files.extend(changed);
        let groups = self.groups(&files);
        self.keep(disk, &files, &groups, now_ns);
        let mut record = Record { files, ..self.record.clone() };
        if !record.failures.is_empty() && self.has_new_checkpoint(disk)? {
            record.failures.clear();
        }
        if let Err(error) = record.write(disk, &self.own) {
            if !is_full(&error) {
                return Err(error);
            }
            self.make_room(disk);
            record.write(disk, &self.own)?;
        }
        self.record = record;
        Ok(true)
    }

    /// Whether the last look has found a file that differs from its sealed version, so that the next look should follow
    /// soon. Logs do not count, because they always differ.
    pub fn has_unsealed(&self) -> bool {
        let is_sealed =
            |path: &str, stamp: &Stamp| self.record.files.get(path).is_some_and(|sealed| sealed.stamp == *stamp);
        let mut states = self.seen.iter().filter(|(path, _)| !may_be_log(path, self.record.change(path)));
        states.any(|(path, stamp)| !is_library_log(path) && !is_sealed(path, stamp))
    }

    /// The doubtful files that are as sealed: the command has gone on from them. If there are several with numbers, it
    /// may have gone on from another. Parts of one checkpoint are trusted together: one that a save has rewritten has no
    /// version of the others' any more.
    fn trusted(&self, found: &BTreeMap<String, Stamp>) -> Kept {
        let files = &self.record.files;
        let is_as_sealed = |path: &str| found.get(path) == files.get(path).map(|sealed| &sealed.stamp);
        let saves = LazyCell::new(|| Saves::of(files));
        let is_trusted = |(path, sealed): &(&String, &Sealed)| {
            let is_one_of_one = !is_numbered(path) || sealed.is_part;
            sealed.doubtful && is_one_of_one && is_as_sealed(path) && saves.parts(path).all(is_as_sealed)
        };
        let trusted = files.iter().filter(is_trusted);
        trusted.map(|(path, known)| (path.clone(), Sealed { doubtful: false, ..known.clone() })).collect()
    }

    /// The files that may be sealed and differ from their seal, and whether each is at rest.
    fn ready(
        &self,
        disk: &dyn Disk,
        found: &BTreeMap<String, Stamp>,
        now: &AtEnd,
        (quiet, now_ns): (Duration, i64),
    ) -> BTreeMap<String, bool> {
        let saving = OnceCell::new();
        let mut ready = BTreeMap::new();
        for (path, &stamp) in found {
            let is_closed = || {
                let saving = saving.get_or_init(|| self.saving(disk, found, now));
                !now.was_writing(disk, &self.checkpoints.join(path), stamp) && !saving.contains(path)
            };
            let before = self.record.files.get(path);
            let is_resting = rests(stamp, quiet.max(TICK), now_ns);
            let is_early = || {
                is_due(before, now_ns)
                    && rests(stamp, TICK, now_ns)
                    && self.is_complete(disk, path)
                    && !self.counts_another(disk, found, path)
            };
            if before.is_none_or(|sealed| sealed.stamp != stamp) && is_closed() && (is_resting || is_early()) {
                ready.insert(path.clone(), is_resting);
            }
        }
        ready
    }

    /// Seals the files that are ready. Files that one save rewrites are sealed together or not at all.
    fn seal_ready(&mut self, disk: &dyn Disk, round: &Round<'_>) -> io::Result<Kept> {
        let mut sealed = Kept::new();
        if round.ready.is_empty() {
            return Ok(sealed);
        }
        let saves = Saves::of(self.record.versions());
        for (path, is_resting) in round.ready {
            let stamp = round.found[path];
            let is_cut = self.is_within_save(disk, path, &saves, round) || self.is_of_two_saves(path, &saves, round);
            if !self.is_emptied(path, stamp.bytes) && !is_cut {
                let one = self.seal_whole(disk, path, stamp, !is_resting);
                sealed.extend(self.or_leave_out(path, one)?.map(|one| (path.clone(), one)));
            }
        }
        let is_incomplete = |path: &str| round.ready.contains_key(path) && !sealed.contains_key(path);
        let incomplete: BTreeSet<String> =
            sealed.keys().filter(|path| saves.with(path).any(is_incomplete)).cloned().collect();
        sealed.retain(|path, _| !incomplete.contains(path));
        self.note_parts(&saves, &mut sealed);
        // The command has gone on from them, because there is no other version that it could have started from.
        sealed.values_mut().filter(|sealed| sealed.is_part).for_each(|sealed| sealed.doubtful = false);
        Ok(sealed)
    }

    /// The files of the numbered checkpoints of which a file is open for writing. A log may be open all the time.
    fn saving(&self, disk: &dyn Disk, files: &BTreeMap<String, Stamp>, now: &AtEnd) -> BTreeSet<String> {
        let is_open = |(path, stamp): &(&String, &Stamp)| {
            now.was_writing(disk, &self.checkpoints.join(path), **stamp) && !may_be_log(path, self.record.change(path))
        };
        let files_now = files.iter().map(|(path, stamp)| (path.as_str(), *stamp));
        let groups = Groups::with_parts(files_now, self.record.parts());
        let of_open = files.iter().filter(is_open).filter_map(|(path, _)| groups.group(path));
        of_open.flat_map(|group| group.members.iter().cloned()).collect()
    }

    /// Notes that this attempt has put another file in the place of a sealed one. Returns whether that is new. The
    /// inodes of other attempts prove nothing: a copy has other inodes, and so has a version that is put back.
    pub(crate) fn note_replaced(&mut self, path: &str, stamp: Stamp, before: Option<&Stamp>) -> bool {
        if before.is_none_or(|before| before.inode == stamp.inode) || is_log_name(path) {
            return false;
        }
        let Some(sealed) = self.record.files.get_mut(path) else { return false };
        sealed.change.replace(Change::Replaced) != Some(Change::Replaced)
    }

    /// Whether the format of a file that is rewritten under its name shows that it is complete. False if it cannot be
    /// read.
    fn is_complete(&self, disk: &dyn Disk, path: &str) -> bool {
        !is_numbered(path) && is_whole(disk, &self.checkpoints.join(path)).unwrap_or(false)
    }

    /// Whether a text may count what is saved next to it. It is then not sealed before that.
    fn counts_another(&self, disk: &dyn Disk, files: &BTreeMap<String, Stamp>, path: &str) -> bool {
        let folder = Path::new(path).parent();
        let mut beside = files.iter().filter(|(other, _)| *other != path && Path::new(other).parent() == folder);
        let is_text = |path: &str, stamp: &Stamp| is_small_text(disk, &self.checkpoints.join(path), stamp.bytes);
        files.get(path).is_some_and(|stamp| is_text(path, stamp))
            && beside.any(|(other, stamp)| has_content(disk, &self.checkpoints.join(other), other, stamp.bytes))
    }
}

/// Whether a file may be sealed before it rests: it was never sealed, or its sealed version is old.
fn is_due(before: Option<&Sealed>, now_ns: i64) -> bool {
    before.is_none_or(|before| rests(before.stamp, LONG, now_ns))
}

fn rests(stamp: Stamp, quiet: Duration, now_ns: i64) -> bool {
    let age = i128::from(now_ns) - i128::from(stamp.modified_ns);
    u128::try_from(age).is_ok_and(|age| age >= quiet.as_nanos())
}
