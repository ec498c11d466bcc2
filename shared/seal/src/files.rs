//! The files under `checkpoints/`, and the checkpoints that they make up.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use crate::database::is_beside_database;
use crate::disk::{Disk, Stamp};
use crate::groups::Groups;
use crate::names::{UNFINISHED, has_unfinished_part, is_unfinished};
use crate::shape::shape;

/// Every regular file below `folder` by its path there, except those next to a database.
pub(crate) fn walk_all(disk: &dyn Disk, folder: &Path) -> io::Result<BTreeMap<String, Stamp>> {
    let mut found = disk.files(folder)?;
    found.retain(|path, _| !is_beside_database(disk, folder, path));
    Ok(found)
}

/// The same, but without unfinished files.
pub(crate) fn walk(disk: &dyn Disk, folder: &Path) -> io::Result<BTreeMap<String, Stamp>> {
    let mut found = walk_all(disk, folder)?;
    found.retain(|path, _| !has_unfinished_part(path));
    Ok(found)
}

/// The files in `all` under their final names, including the unfinished ones.
pub(crate) fn expected(all: &BTreeMap<String, Stamp>) -> impl Iterator<Item = (&str, Stamp)> {
    let finished = all.iter().filter(|(path, _)| !has_unfinished_part(path));
    let begun = all.iter().filter(|(path, _)| is_unfinished(path));
    finished.chain(begun).map(|(path, stamp)| (finished_name(path), *stamp))
}

fn finished_name(path: &str) -> &str {
    UNFINISHED.iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path)
}

/// Names of checkpoints of which a file was being written after all others. A file that is rewritten under an existing
/// name is not missing.
pub(crate) fn unfinished(all: &BTreeMap<String, Stamp>, groups: &Groups) -> BTreeSet<String> {
    let name = |path: &str| groups.name(finished_name(path)).to_owned();
    let mut newest = BTreeMap::new();
    for (path, stamp) in all {
        let modified = newest.entry(name(path)).or_insert(i64::MIN);
        *modified = stamp.modified_ns.max(*modified);
    }
    let begun = all.iter().filter(|(path, _)| is_unfinished(path) && !all.contains_key(finished_name(path)));
    begun
        .map(|(path, stamp)| (name(path), stamp))
        .filter(|(name, stamp)| newest[name] <= stamp.modified_ns)
        .map(|(name, _)| name)
        .collect()
}

/// The newest checkpoint of `content`, as its paths among `all`.
pub(crate) fn newest_group<'a>(
    groups: &Groups,
    content: impl Iterator<Item = (&'a str, Stamp)>,
    all: impl Iterator<Item = &'a String>,
) -> BTreeSet<String> {
    let newest = content.max_by_key(|(path, stamp)| (stamp.modified_ns, *path)).map(|(path, _)| path);
    let Some(newest) = newest else { return BTreeSet::new() };
    all.filter(|path| groups.is_same(path, newest)).cloned().collect()
}

/// The number of files of each kind in a checkpoint, by the shape of their paths.
pub(crate) type Kinds = BTreeMap<String, usize>;

/// The kinds of the files at `paths`.
pub(crate) fn kinds<'a>(paths: impl Iterator<Item = &'a String>) -> Kinds {
    let mut kinds = Kinds::new();
    paths.for_each(|path| *kinds.entry(shape(path)).or_default() += 1);
    kinds
}

/// Whether the `newer` files have all kinds of the `older` ones, and at least as many of each.
pub(crate) fn has_all(newer: &Kinds, older: &Kinds) -> bool {
    older.iter().all(|(kind, count)| newer.get(kind).is_some_and(|newer| newer >= count))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    #![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
    use std::fs;

    use super::*;
    use crate::disk::MountedDisk;

    #[test]
    fn unfinished_files_are_no_checkpoints() {
        let folder = spotsweep_needs::scratch();
        for name in ["a/model.pt", "a/model.pt.123.part", "tmp-checkpoint-5/model.pt", ".metadata"] {
            fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let found = walk(&MountedDisk::below(folder.path()), folder.path()).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), [".metadata", "a/model.pt"]);
    }
}
