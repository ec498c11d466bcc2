//! Decides on resume which checkpoints are as they were sealed, and what to do about the others.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use crate::content::{READ_AGAIN_BYTES, has_content, hash, looks_lost};
use crate::database::is_database;
use crate::disk::{Disk, Stamp};
use crate::groups::{Group, Groups};
use crate::kept::may_be_mixed;
use crate::logs::is_log;
use crate::names::{file_name, is_numbered, is_pointer_name, is_settings_name};
use crate::record::{Record, Sealed};
use crate::saves::{Saves, is_unchanged};
use crate::shape::shape;

/// Whether a file can be trusted.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Unchanged since its seal.
    Sealed(Sealed),
    /// Written after the seal, and complete as far as it shows.
    Later,
    /// Incomplete.
    Torn,
}

/// The result of judging a workspace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// The names of checkpoints that are to be quarantined.
    pub(crate) torn: Vec<String>,
    /// Sealed files that are gone.
    pub(crate) missing: Vec<String>,
    /// The newest checkpoint with content that is left.
    pub(crate) newest: Option<String>,
    /// The newest of marks, pointers and other texts. It is the newest checkpoint of a training that has nothing else.
    pub(crate) of_text: Option<String>,
    /// The sealed files that are left.
    pub(crate) sealed: BTreeMap<String, Sealed>,
}

/// Looks at everything once and changes nothing.
pub(crate) struct Judge<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) folder: &'a Path,
    pub(crate) seal: Option<&'a Record>,
    /// The groups of the files and of what is kept.
    pub(crate) groups: &'a Groups,
    /// Whether inodes are those that were sealed. On the local stack a workspace that has moved is a copy, file by
    /// file. A migrated volume has the same inodes.
    pub(crate) same_inodes: bool,
}

impl Judge<'_> {
    /// `unfinished` are checkpoints of which a file was being written last: the newest of them is incomplete.
    pub(crate) fn judge(
        &self,
        files: &BTreeMap<String, Stamp>,
        unfinished: &BTreeSet<String>,
    ) -> io::Result<Judgement> {
        let mut found = Judgement::default();
        let mut bytes_read = 0;
        let (mut without_content, mut newest_content) = (Vec::new(), None::<&Group>);
        let cut = self.seal.map(|seal| cut(seal, files)).unwrap_or_default();
        let kept = self.seal.iter().flat_map(|seal| &seal.kept).map(|(path, file)| (path, file.stamp));
        let known = files.iter().map(|(path, stamp)| (path, *stamp)).chain(kept);
        let shapes = known.filter(|(_, stamp)| stamp.bytes > 0).map(|(path, _)| shape(path)).collect();
        for (group, members) in self.groups.newest_first(files.iter().map(|(path, stamp)| (path.as_str(), *stamp))) {
            let name = &group.name;
            let read_again = found.newest.is_none() || bytes_read < READ_AGAIN_BYTES;
            let mut sealed = Vec::new();
            let is_repeated = LazyCell::new(|| self.is_repeated(group, files));
            let mut torn = found.newest.is_none() && unfinished.contains(name);
            for &path in &members {
                let stamp = files[path];
                match self.verdict(path, stamp, read_again, &shapes)? {
                    Verdict::Sealed(file) => sealed.push((path.to_owned(), file)),
                    Verdict::Later => torn |= cut.contains(path) || (self.is_new(path, stamp) && *is_repeated),
                    // A log stays in its place, because no version of it is kept.
                    Verdict::Torn => torn |= !self.is_log(path),
                }
                bytes_read += if read_again { stamp.bytes } else { 0 };
            }
            if torn {
                found.torn.push(name.clone());
                continue;
            }
            found.sealed.extend(sealed);
            if members.iter().all(|path| self.is_log(path)) {
                continue;
            }
            let has_content = members.iter().any(|path| self.has_content(path, files[*path].bytes));
            if has_content || !members.iter().all(|path| is_settings_name(path)) {
                let newest = if has_content { &mut found.newest } else { &mut found.of_text };
                newest.get_or_insert_with(|| name.clone());
            }
            newest_content = newest_content.or_else(|| has_content.then_some(group));
            if !has_content && group.is_folder {
                without_content.push(name);
            }
        }
        // If a folder has only a mark and another one has content, the rest of the first was not written out.
        let mut kept = self.seal.iter().flat_map(|seal| seal.kept.keys()).filter_map(|path| self.groups.group(path));
        if let Some(other) =
            newest_content.or_else(|| kept.find(|group| group.is_folder)).filter(|group| group.is_folder)
        {
            let parent = |name: &str| Path::new(name).parent().map(Path::to_owned);
            found.torn.extend(without_content.into_iter().filter(|name| parent(name) == parent(&other.name)).cloned());
        }
        if let Some(seal) = self.seal {
            // While the command runs, it removes old checkpoints. That is no loss as long as there are others.
            let gone = seal.files.keys().filter(|path| !files.contains_key(*path));
            let is_empty = found.newest.is_none() && found.of_text.is_none() && found.torn.is_empty();
            let lost = seal.last || is_empty;
            found.missing = gone.filter(|_| lost).cloned().collect();
        }
        Ok(found)
    }

    /// Whether a file has lost all its content: the kept version, its siblings or the name of a pointer show that it
    /// had some. Another empty file is a mark.
    fn is_emptied(&self, path: &str, stamp: Stamp, shapes: &BTreeSet<String>) -> bool {
        let had_content = || self.seal.is_some_and(|seal| seal.kept.get(path).is_some_and(|kept| kept.stamp.bytes > 0));
        let is_sibling = || is_numbered(file_name(path)) && shapes.contains(&shape(path));
        stamp.bytes == 0 && (is_pointer_name(path) || had_content() || is_sibling())
    }

    /// Whether the last attempt may have repeated the save of a checkpoint only in part: a file with content lies there
    /// as the attempt found it, or is gone although a version of it is kept.
    fn is_repeated(&self, group: &Group, files: &BTreeMap<String, Stamp>) -> bool {
        group.members.iter().any(|path| match files.get(path) {
            Some(stamp) => self.is_as_found(path, *stamp) && self.has_content(path, stamp.bytes),
            None => self.seal.is_some_and(|seal| seal.kept.contains_key(path)),
        })
    }

    /// Whether the last attempt wrote this file, and it has content. A script may write a mark or another text later than
    /// the checkpoint.
    fn is_new(&self, path: &str, stamp: Stamp) -> bool {
        !self.is_as_found(path, stamp) && self.has_content(path, stamp.bytes)
    }

    /// Whether a numbered file is unchanged since the last attempt found it.
    fn is_as_found(&self, path: &str, stamp: Stamp) -> bool {
        let first = self.seal.and_then(|seal| seal.first.get(path));
        first.is_some_and(|then| is_unchanged(&stamp, then))
    }

    /// Whether saves may have written over an earlier version of a file. After a loss, parts of any of them may be there.
    fn may_be_mixed(&self, path: &str, stamp: Stamp) -> io::Result<bool> {
        let Some(seal) = self.seal.filter(|seal| seal.trained && !seal.written_out) else { return Ok(false) };
        Ok(self.has_content(path, stamp.bytes)
            && may_be_mixed(self.disk, self.folder, path, (seal, self.groups.is_numbered(path)))?)
    }

    fn is_log(&self, path: &str) -> bool {
        is_log(path, self.seal.and_then(|seal| seal.change(path)))
    }

    fn has_content(&self, path: &str, bytes: u64) -> bool {
        has_content(self.disk, &self.folder.join(path), path, bytes)
    }

    /// `shapes` are the shapes of the files with content.
    fn verdict(&self, path: &str, stamp: Stamp, read_again: bool, shapes: &BTreeSet<String>) -> io::Result<Verdict> {
        let file = self.folder.join(path);
        let by_itself = || {
            let is_torn = looks_lost(self.disk, &file, stamp.bytes)? || self.may_be_mixed(path, stamp)?;
            Ok(if is_torn { Verdict::Torn } else { Verdict::Later })
        };
        // A writer that has begun and given up leaves the file closed, so it may be sealed.
        if self.is_emptied(path, stamp, shapes) {
            return Ok(Verdict::Torn);
        }
        let is_cut = |seal: &Record| seal.cut.get(path).is_some_and(|then| is_unchanged(&stamp, then));
        let is_over = self.seal.is_some_and(|seal| seal.last || is_cut(seal));
        let Some(sealed) = self.seal.and_then(|seal| seal.files.get(path)) else {
            // The last seal leaves out files that were cut off, except pointers, because a pointer does not show its
            // end.
            let is_left_out = is_over && !is_pointer_name(path);
            return if is_left_out && !is_database(self.disk, &file) { Ok(Verdict::Torn) } else { by_itself() };
        };
        let (now, then) = (stamp, sealed.stamp);
        let same_inode = self.same_inodes && now.inode == then.inode;
        let untouched = now.bytes == then.bytes && now.modified_ns == then.modified_ns;
        let trusted = untouched && !read_again && (same_inode || !self.same_inodes);
        // `correct_times` has compared the others.
        let may_be_same = now.bytes == then.bytes && (untouched || !self.may_be_mixed(path, now)?);
        if trusted || (may_be_same && hash(self.disk, &file, now.bytes)? == sealed.sha256) {
            return Ok(Verdict::Sealed(Sealed { stamp: now, ..sealed.clone() }));
        }
        if is_over && !is_database(self.disk, &file) {
            // Nothing was written after the seal.
            return Ok(Verdict::Torn);
        }
        // The command went on after the seal: a file that differs is newer, not worse.
        if now.bytes == 0 && then.bytes > 0 { Ok(Verdict::Torn) } else { by_itself() }
    }
}

/// The `files` of which a save has rewritten some since the seal, but not the other parts of the same checkpoint. Those
/// are as sealed, or an earlier save has rewritten them.
fn cut<'a>(seal: &Record, files: &'a BTreeMap<String, Stamp>) -> BTreeSet<&'a str> {
    let saves = Saves::of(seal.versions());
    let is_sealed = |path: &str, now: &Stamp| seal.version(path).is_some_and(|then| is_unchanged(now, &then.stamp));
    let is_as_sealed = |path: &str| files.get(path).is_none_or(|now| is_sealed(path, now));
    let is_of_two = |path: &str| seal.is_part(path) && !saves.are_of_one(path, |path| files.get(path).copied());
    let is_cut = |path: &&str| saves.parts(path).any(is_as_sealed) || is_of_two(path);
    files.keys().map(String::as_str).filter(is_cut).collect()
}
