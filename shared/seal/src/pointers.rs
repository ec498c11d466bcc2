//! Text files and symbolic links that name a checkpoint, such as DeepSpeed's `latest`.
//!
//! A script starts from the checkpoint that they name. If that one is gone, many scripts start from their beginning.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use crate::aside::put_aside;
use crate::content::small_text;
use crate::disk::{Disk, Stamp, unfinished};
use crate::failed::Replaced;
use crate::groups::Groups;
use crate::kept::{Kept, kept_path, restore};
use crate::names::{file_name, is_latest_name, is_pointer_name, number as number_of};
use crate::shape::{shape, words};

/// The pointers of a workspace and what repairs them.
pub(crate) struct Pointers<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) checkpoints: &'a Path,
    pub(crate) own: &'a Path,
    pub(crate) kept: &'a Kept,
    pub(crate) groups: &'a Groups,
    /// Files that are unchanged since their seal.
    pub(crate) sealed: &'a Kept,
    /// The names of checkpoints that were incomplete. A pointer among them is its kept version now.
    pub(crate) torn: &'a [String],
    /// Quarantine folder for a pointer that names nothing.
    pub(crate) aside: &'a Path,
}

impl Pointers<'_> {
    /// Repairs each pointer to a checkpoint that is gone: it then names the one that its sealed version names, or else
    /// the `newest`. A pointer to the latest checkpoint names the newest one if that is sealed. Returns the replaced
    /// pointers with their earlier content.
    pub(crate) fn repair(&self, newest: &str) -> io::Result<Vec<Replaced>> {
        let mut replaced = Vec::new();
        let files = self.disk.files(self.checkpoints)?;
        let is_sealed = |path: &str| self.sealed.contains_key(path) || self.kept.contains_key(path);
        let members = self.groups.named(newest).map(|group| &group.members);
        let is_sealed = members.map_or_else(|| is_sealed(newest), |members| members.iter().all(|path| is_sealed(path)));
        // A pointer to a checkpoint of several files names the first.
        let newest = self.groups.named(newest).and_then(|group| group.places().first().copied()).unwrap_or(newest);
        let present: BTreeSet<&str> = files.keys().map(|path| file_name(self.groups.place(path))).collect();
        let is_gone = |name: &str| !present.contains(name) && shape(name) == shape(file_name(newest));
        for (link, target) in self.disk.symbolic_links(self.checkpoints)? {
            if target.file_name().and_then(|name| name.to_str()).is_some_and(is_gone) {
                self.disk.symbolic_link(&link, &target.with_file_name(file_name(newest)))?;
                let name = link.file_name().and_then(|name| name.to_str()).map(str::to_owned);
                replaced.extend(name.map(|name| Replaced::Link(name, target)));
            }
        }
        for (path, stamp) in &files {
            if self.groups.is_numbered(path) {
                continue;
            }
            if let Some(text) = small_text(self.disk, &self.checkpoints.join(path), stamp.bytes) {
                replaced.extend(self.repair_text((path, &text), (newest, is_sealed), &present, &is_gone)?);
            }
        }
        Ok(replaced)
    }

    fn repair_text(
        &self,
        (path, now): (&str, &str),
        (newest, is_sealed): (&str, bool),
        present: &BTreeSet<&str>,
        is_gone: &dyn Fn(&str) -> bool,
    ) -> io::Result<Option<Replaced>> {
        let was = || Some(Replaced::Text(path.to_owned(), now.to_owned()));
        let file = self.checkpoints.join(path);
        let is_present = |word: &str| present.contains(word);
        if names_one(now, &is_present) && !self.torn.iter().any(|name| name == path) {
            return Ok(None);
        }
        let sealed = self.kept.get(path).and_then(|_| text(self.disk, &kept_path(self.own, path))).unwrap_or_default();
        if let Some((kept, name)) = self.kept.get(path).zip(named(&sealed, &is_present)) {
            // A script replaces the pointer when the checkpoint is complete, and was interrupted between the two.
            if is_sealed && is_latest_name(path) && shape(name) == shape(file_name(newest)) {
                return replace(self.disk, &file, &sealed.replace(name, file_name(newest))).map(|()| was());
            }
            if restore(self.disk, &kept_path(self.own, path), &file, kept)? {
                return Ok(was());
            }
        }
        let gone = |text: &str| named(text, is_gone).map(str::to_owned);
        // The end of the text was not written out.
        let cut = words(now).last().filter(|word| word.len() > 2 && file_name(newest).starts_with(word));
        let named = [now, &sealed].into_iter().find_map(|text| Some((text, gone(text)?)));
        if let Some(whole) = self.begun_path(path, now, newest).filter(|_| named.is_none()) {
            return replace(self.disk, &file, &whole).map(|()| was());
        }
        match named.or_else(|| Some((now, cut?.to_owned()))) {
            Some((text, name)) => replace(self.disk, &file, &text.replace(&name, file_name(newest))).map(|()| was()),
            // A script that finds no pointer starts from its beginning, but it fails on a pointer that names nothing.
            None if self.names_nothing(path, now, present) => {
                put_aside(self.disk, self.checkpoints, self.aside, path)?;
                Ok(Some(Replaced::Moved(path.to_owned())))
            }
            None => Ok(None),
        }
    }

    /// The path of the `newest` checkpoint if the pointer at `path` has only its first part, folders included. Its
    /// writer gave up in the middle and closed it, so it may be sealed.
    fn begun_path(&self, path: &str, now: &str, newest: &str) -> Option<String> {
        let whole = self.checkpoints.join(newest);
        let whole = whole.to_str().filter(|_| is_pointer_name(path) && now.len() > 2)?;
        let starts = std::iter::once(0).chain(whole.match_indices('/').map(|(at, _)| at + 1));
        starts
            .map(|start| &whole[start..])
            .find(|path| path.len() > now.len() && path.starts_with(now))
            .map(str::to_owned)
    }

    /// Whether a file with the name of a pointer names no existing checkpoint and is not as it was sealed.
    fn names_nothing(&self, path: &str, text: &str, present: &BTreeSet<&str>) -> bool {
        let number = |word: &str| word.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().ok();
        let numbers: BTreeSet<u64> = present.iter().filter_map(|name| number(number_of(name)?)).collect();
        let names_one = words(text).any(|word| number(word).is_some_and(|number| numbers.contains(&number)));
        is_pointer_name(path) && !self.sealed.contains_key(path) && !names_one
    }
}

/// Replaces the text of `file` and keeps its owner. A file that is written over may end up as neither the old nor the
/// new one, with the same stamp: times are no finer than the kernel's tick.
pub(crate) fn replace(disk: &dyn Disk, file: &Path, text: &str) -> io::Result<()> {
    let unfinished = unfinished(file);
    disk.copy(file, &unfinished)?;
    disk.write(&unfinished, text.as_bytes())?;
    disk.sync(&unfinished)?;
    disk.rename(&unfinished, file)
}

/// The names that pointers to the latest checkpoint contain, because a script starts from one of those.
pub(crate) fn names_of_latest(
    disk: &dyn Disk,
    checkpoints: &Path,
    files: &BTreeMap<String, Stamp>,
) -> io::Result<BTreeSet<String>> {
    let is_latest = |path: &Path| path.to_str().is_some_and(is_latest_name);
    let links = disk.symbolic_links(checkpoints)?.into_iter().filter(|(link, _)| is_latest(link));
    let targets = links.filter_map(|(_, target)| Some(target.file_name()?.to_str()?.to_owned()));
    let texts = files.keys().filter(|path| is_latest_name(path));
    let texts = texts.filter_map(|path| text(disk, &checkpoints.join(path)));
    let named = texts.flat_map(|text| words(&text).map(str::to_owned).collect::<Vec<_>>());
    Ok(targets.chain(named).collect())
}

/// The text of a small text file; `None` for every other file.
pub(crate) fn text(disk: &dyn Disk, file: &Path) -> Option<String> {
    small_text(disk, file, disk.stamp(file).ok()?.bytes)
}

/// Whether a text names something that `is_checkpoint`.
pub(crate) fn names_one(text: &str, is_checkpoint: &dyn Fn(&str) -> bool) -> bool {
    named(text, is_checkpoint).is_some()
}

/// The first word of a text that `is_wanted`. A bare number is a name only if the text has nothing else.
fn named<'a>(text: &'a str, is_wanted: &dyn Fn(&str) -> bool) -> Option<&'a str> {
    let whole = text.trim().rsplit('/').next();
    let is_name = |word: &str| whole == Some(word) || !word.chars().all(|c| c.is_ascii_digit());
    words(text).find(|word| is_name(word) && is_wanted(word))
}
