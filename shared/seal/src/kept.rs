//! Kept copies of sealed checkpoints in `.spotsweep/kept/`, until newer ones are sealed.
//!
//! A training removes or overwrites its older checkpoints, and may do so before the newer one is written out. So the
//! runner copies the newest sealed checkpoint, up to a bound. Beyond it, files with a number get a second name
//! (link(2)), which takes up no space.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::aside::put_aside;
use crate::content::{hash, is_whole};
use crate::database::beside;
use crate::disk::{Disk, is_full};
use crate::files::{has_all, kinds, walk};
use crate::groups::{Group, Groups, are_of_one_save};
use crate::logs::{Change, may_be_log};
use crate::names::checkpoint;
use crate::record::{Record, Sealed};

/// The folder of kept copies.
const KEPT: &str = "kept";
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
    let is_usable = |group| is_one_version(disk, groups, group, &version(kept, group, own));
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

/// The files of one version of a checkpoint, by path.
type Version<'a> = BTreeMap<&'a str, (PathBuf, &'a Sealed)>;

/// The kept version of a checkpoint; `None` if its files do not belong together.
pub(crate) fn kept_version<'a>(
    disk: &dyn Disk,
    (record, own): (&'a Record, &Path),
    groups: &Groups,
    group: &'a Group,
) -> Option<Version<'a>> {
    Some(version(&record.kept, group, own)).filter(|version| is_one_version(disk, groups, group, version))
}

fn version<'a>(kept: &'a Kept, group: &'a Group, own: &Path) -> Version<'a> {
    let members = group.members.iter().filter_map(|path| Some((path, kept.get(path)?)));
    members.map(|(path, sealed)| (path.as_str(), (kept_path(own, path), sealed))).collect()
}

/// Whether the files of a version belong together. Parts of two versions are no checkpoint. So where each save rewrites
/// several parts, all of them must be intact, and one save must have written them.
fn is_one_version(disk: &dyn Disk, groups: &Groups, group: &Group, version: &Version<'_>) -> bool {
    let is_intact = |(at, sealed): &(PathBuf, &Sealed)| is_intact(disk, at, sealed).unwrap_or(false);
    let stamps = || version.iter().map(|(path, (_, sealed))| (*path, sealed.stamp));
    let is_whole = || version.len() == group.members.len() && are_of_one_save(stamps());
    !groups.has_parts(group) || (is_whole() && version.values().all(is_intact))
}

/// Whether the file at `path` may have parts of two versions, and nothing shows that: its format is one of those that
/// programs overwrite without truncating the file first. False for a log, and for a file that the training replaces by
/// another file. Of numbered files, only those count that an earlier look has found, such as `part-0.bin`: other saves
/// write new ones. A file in a folder that is named like a checkpoint is written again only where a save is repeated. A
/// file of a known format is trusted if nothing is kept that could replace it.
pub(crate) fn may_be_mixed(
    disk: &dyn Disk,
    checkpoints: &Path,
    path: &str,
    (record, is_numbered): (&Record, bool),
) -> io::Result<bool> {
    let change = record.change(path);
    let is_rewritten = !is_numbered || (record.version(path).is_some() && checkpoint(path) == path);
    let may_share_blocks = change != Some(Change::Replaced) && !may_be_log(path, change);
    let file = checkpoints.join(path);
    let is_replaceable = || Ok::<_, io::Error>(record.kept.contains_key(path) || !is_whole(disk, &file)?);
    Ok(is_rewritten && may_share_blocks && disk.may_mix(&file)? && is_replaceable()?)
}

/// The path of the kept version of a file.
pub(crate) fn kept_path(own: &Path, path: &str) -> PathBuf {
    own.join(KEPT).join(path)
}
