//! Kept copies of sealed checkpoints in `.spotsweep/kept/`, until newer ones are sealed.
//!
//! A training removes or overwrites its older checkpoints, and may do so before the newer one is written out. So the
//! runner copies the newest sealed checkpoint, up to a bound. Beyond it, files with a number get a second name
//! (link(2)), which takes up no space.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::aside::put_aside;
use crate::content::{hash, read_pair};
use crate::database::beside;
use crate::disk::{Disk, is_full};
use crate::files::{has_all, kinds, walk};
use crate::groups::{Group, Groups, are_of_one_save};
use crate::logs::{Change, may_be_log};
use crate::record::{Part, Record, Sealed};

/// The folder of kept copies.
const KEPT: &str = "kept";
/// The folder of versions that an attempt began with, though they were not sealed. It has only formats that do not show
/// whether a file mixes two versions.
const BEGUN: &str = "begun";
/// The smallest part of a file that a device writes completely or not at all.
const SECTOR: usize = 512;
/// The most parts of a file that are noted as constant.
const MOST_PARTS: usize = 32;

/// Files that are kept, by path below `checkpoints/`.
pub(crate) type Kept = BTreeMap<String, Sealed>;

/// A checkpoint that was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Back {
    pub(crate) name: String,
    /// When it was written.
    pub(crate) modified_ns: i64,
    /// Whether a newer one is left that has fewer files.
    pub(crate) is_older: bool,
}

/// Puts back the numbered kept checkpoints that the training has removed completely or partly. Puts back none if a
/// newer one is left with files of all their kinds. `newest` is the newest one that is left and the time of its
/// modification. If none is left, everything that is kept goes back, except parts of two saves. Returns the newest one
/// that was put back. Moves files next to a database that is gone to `aside`. `groups` are those of all files that lay
/// there, and of what is kept.
pub(crate) fn restore_removed(
    disk: &dyn Disk,
    [checkpoints, own, aside]: [&Path; 3],
    kept: &Kept,
    groups: &Groups,
    newest: Option<(&str, i64)>,
) -> io::Result<Option<Back>> {
    let unusable = if newest.is_none() { unusable(disk, own, kept, groups) } else { BTreeSet::new() };
    let goes_back = |path: &str| groups.is_numbered(path) || (newest.is_none() && !unusable.contains(path));
    let group: Vec<_> = kept.iter().filter(|(path, _)| goes_back(path)).collect();
    let is_older = |name: &str, modified: i64| newest.is_some_and(|(newest, at)| newest != name && at > modified);
    let Some(last) = group.iter().max_by_key(|(_, file)| file.stamp.modified_ns) else { return Ok(None) };
    let at = last.1.stamp.modified_ns;
    if is_older(groups.name(last.0), at) && newer_has_all(disk, checkpoints, groups, &group, at)? {
        return Ok(None);
    }
    let mut back = None;
    for (path, sealed) in &group {
        if disk.stamp(&checkpoints.join(path)).is_ok() {
            continue;
        }
        for beside in beside(disk, checkpoints, path) {
            put_aside(disk, checkpoints, aside, &beside)?;
        }
        if restore(disk, &kept_path(own, path), &checkpoints.join(path), sealed)? {
            let members = group.iter().filter(|(other, _)| groups.is_same(other, path));
            let written = members.map(|(path, file)| (file.stamp.modified_ns, groups.name(path)));
            back = back.max(written.max());
        }
    }
    Ok(back.map(|(modified_ns, name)| Back {
        name: name.to_owned(),
        modified_ns,
        is_older: is_older(name, modified_ns),
    }))
}

/// The kept files of checkpoints that are incomplete, or of several saves.
fn unusable<'a>(disk: &dyn Disk, own: &Path, kept: &'a Kept, groups: &'a Groups) -> BTreeSet<&'a str> {
    let kept_groups = groups.newest_first(kept.iter().map(|(path, file)| (path.as_str(), file.stamp)));
    let is_usable = |group| is_one_version(disk, groups, group, &version(kept, group, |path| kept_path(own, path)));
    kept_groups.into_iter().filter(|(group, _)| !is_usable(group)).flat_map(|(_, members)| members).collect()
}

/// Whether there are newer files of all kinds of the kept `group`. A lost instance may have written out the removal of
/// a checkpoint, and not all files of the next one. A script that looks for a missing one of them, such as a mark,
/// ignores the rest.
fn newer_has_all(
    disk: &dyn Disk,
    checkpoints: &Path,
    groups: &Groups,
    group: &[(&String, &Sealed)],
    modified: i64,
) -> io::Result<bool> {
    let files = walk(disk, checkpoints)?;
    let newer = files.iter().filter(|(path, stamp)| stamp.modified_ns > modified && groups.is_numbered(path));
    Ok(has_all(&kinds(newer.map(|(path, _)| path)), &kinds(group.iter().map(|(path, _)| *path))))
}

/// Puts `source` in the place of `target`, if its content is as `sealed` says.
pub(crate) fn restore(disk: &dyn Disk, source: &Path, target: &Path, sealed: &Sealed) -> io::Result<bool> {
    let is_intact = is_intact(disk, source, sealed)?;
    if is_intact {
        put_in_place(disk, source, target)?;
    }
    Ok(is_intact)
}

/// Copies `source` to `target`. If there is no room for a copy, makes the target a second name of it.
pub(crate) fn put_in_place(disk: &dyn Disk, source: &Path, target: &Path) -> io::Result<()> {
    match disk.copy(source, target) {
        Err(error) if is_full(&error) => disk.hard_link(source, target),
        copied => copied,
    }
}

/// Whether the content of a file is as `sealed` says.
pub(crate) fn is_intact(disk: &dyn Disk, file: &Path, sealed: &Sealed) -> io::Result<bool> {
    Ok(disk.stamp(file).is_ok() && hash(disk, file, sealed.stamp.bytes)? == sealed.sha256)
}

/// The versions of the file at `path` that the runner has, newest first.
fn versions<'a>(record: &'a Record, own: &Path, path: &str) -> Vec<(PathBuf, &'a Sealed)> {
    let begun = record.begun.get(path).map(|sealed| (begun_path(own, path), sealed));
    let kept = record.kept.get(path).map(|sealed| (kept_path(own, path), sealed));
    begun.into_iter().chain(kept).collect()
}

/// The files of one version of a checkpoint, by path.
type Version<'a> = BTreeMap<&'a str, (PathBuf, &'a Sealed)>;

/// The versions of a checkpoint that the runner has, newest first.
pub(crate) fn group_versions<'a>(
    disk: &dyn Disk,
    (record, own): (&'a Record, &Path),
    groups: &Groups,
    group: &'a Group,
) -> Vec<Version<'a>> {
    let begun = version(&record.begun, group, |path| begun_path(own, path));
    let kept = version(&record.kept, group, |path| kept_path(own, path));
    [begun, kept].into_iter().filter(|version| is_one_version(disk, groups, group, version)).collect()
}

fn version<'a>(versions: &'a Kept, group: &'a Group, at: impl Fn(&str) -> PathBuf) -> Version<'a> {
    let members = group.members.iter().filter_map(|path| Some((path, versions.get(path)?)));
    members.map(|(path, sealed)| (path.as_str(), (at(path), sealed))).collect()
}

/// Whether the files of a version belong together. Parts of two versions are no checkpoint. So where each save rewrites
/// several parts, all of them must be intact, and one save must have written them.
fn is_one_version(disk: &dyn Disk, groups: &Groups, group: &Group, version: &Version<'_>) -> bool {
    let is_intact = |(at, sealed): &(PathBuf, &Sealed)| is_intact(disk, at, sealed).unwrap_or(false);
    let stamps = || version.iter().map(|(path, (_, sealed))| (*path, sealed.stamp));
    let is_whole = || version.len() == group.members.len() && are_of_one_save(stamps());
    !groups.has_parts(group) || (is_whole() && version.values().all(is_intact))
}

/// Whether the file at `path` has parts of an earlier version in it, or is only the beginning of one. A lost instance
/// may not have written out some sectors or the end. False for a file that has only grown, a log that was begun again,
/// and a file that the training replaces by another file. Sectors that were the same in two complete versions, such as
/// a header or padding, do not count.
pub(crate) fn is_mixed(
    disk: &dyn Disk,
    checkpoints: &Path,
    own: &Path,
    path: &str,
    record: Option<&Record>,
) -> io::Result<bool> {
    let file = checkpoints.join(path);
    let change = record.and_then(|record| record.change(path));
    let versions = record.map(|record| versions(record, own, path)).unwrap_or_default();
    let constant = record.and_then(|record| record.files.get(path)).map_or(&[][..], |sealed| &sealed.constant);
    if versions.is_empty() || change == Some(Change::Replaced) || may_be_log(path, change) || !disk.may_mix(&file)? {
        return Ok(false);
    }
    for (version, sealed) in versions {
        // A version that was itself overwritten proves nothing.
        if shares_sectors(disk, &file, &version, constant)? && is_intact(disk, &version, sealed)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The parts that a complete version of the file at `path` shares with its kept version, which is complete, too. Both
/// are as sealed. `None` if there is nothing to compare.
pub(crate) fn constant_parts(
    disk: &dyn Disk,
    checkpoints: &Path,
    own: &Path,
    path: &str,
    (sealed, kept): (&Sealed, Option<&Sealed>),
) -> io::Result<Option<Vec<Part>>> {
    let file = checkpoints.join(path);
    let differs = kept.is_some_and(|kept| !kept.doubtful && kept.sha256 != sealed.sha256);
    if !differs || !disk.may_mix(&file)? {
        return Ok(None);
    }
    let mut parts = Vec::<Part>::new();
    compare(disk, &file, &kept_path(own, path), |part, is_same| {
        match parts.last_mut().filter(|last| last.1 == part.0) {
            _ if !is_same => {}
            Some(last) => last.1 = part.1,
            None => parts.push(part),
        }
    })?;
    Ok(Some(joined(parts)))
}

/// At most [`MOST_PARTS`]: the parts with the smallest gaps between them become one. A mix that lies only in such a gap
/// is not noticed then. A file with constant parts all over would need a bitmap, for which the manifest has no room.
fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut between: Vec<u64> = parts.windows(2).map(|pair| pair[1].0 - pair[0].1).collect();
    between.sort_unstable_by(|one, other| other.cmp(one));
    let Some(least) = between.get(MOST_PARTS - 1) else { return parts };
    let mut joined = Vec::<Part>::new();
    for part in parts {
        match joined.last_mut().filter(|last| part.0 - last.1 <= *least) {
            Some(last) => last.1 = part.1,
            None => joined.push(part),
        }
    }
    joined
}

/// Whether some parts of a file are those of `version`, and others are not. The `constant` parts do not count.
fn shares_sectors(disk: &dyn Disk, file: &Path, version: &Path, constant: &[Part]) -> io::Result<bool> {
    let Ok(before) = disk.stamp(version) else { return Ok(false) };
    let (mut has_same, mut has_other) = (false, disk.stamp(file)?.bytes < before.bytes);
    let mut constant = constant.iter().peekable();
    compare(disk, file, version, |part, is_same| {
        while constant.next_if(|constant| constant.1 <= part.0).is_some() {}
        let is_constant = constant.peek().is_some_and(|constant| constant.0 <= part.0);
        has_same |= is_same && !is_constant;
        has_other |= !is_same;
    })?;
    Ok(has_same && has_other)
}

/// Compares two files sector by sector: calls `look` with the place of each, and whether it is the same in both.
fn compare(disk: &dyn Disk, file: &Path, version: &Path, mut look: impl FnMut(Part, bool)) -> io::Result<()> {
    let mut at = 0;
    read_pair(disk, file, version, |now, before| {
        for (now, before) in now.chunks(SECTOR).zip(before.chunks(SECTOR)) {
            let end = at + now.len() as u64;
            look((at, end), now == before);
            at = end;
        }
    })
}

/// The path of the kept version of a file.
pub(crate) fn kept_path(own: &Path, path: &str) -> PathBuf {
    own.join(KEPT).join(path)
}

/// The path of the version of a file that an attempt began with.
pub(crate) fn begun_path(own: &Path, path: &str) -> PathBuf {
    own.join(BEGUN).join(path)
}
