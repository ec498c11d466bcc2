//! What lies under `checkpoints/`: files, and the checkpoints that they make up.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use crate::disk::{Disk, Stamp};
use crate::names::{UNFINISHED, checkpoint, file_name, has_unfinished_part, is_unfinished, number};

/// Every regular file below `folder` by its path there, but for unfinished ones.
pub(crate) fn walk(disk: &dyn Disk, folder: &Path) -> io::Result<BTreeMap<String, Stamp>> {
    let mut found = disk.files(folder)?;
    found.retain(|path, _| !has_unfinished_part(path));
    Ok(found)
}

/// Checkpoint folders in which a file was being written after all others.
pub(crate) fn unfinished_folders(all: &BTreeMap<String, Stamp>) -> BTreeSet<String> {
    let in_folders = || all.iter().filter(|(path, _)| checkpoint(path) != path.as_str());
    let mut newest = BTreeMap::new();
    for (path, stamp) in in_folders() {
        let modified = newest.entry(checkpoint(path)).or_insert(i64::MIN);
        *modified = stamp.modified_ns.max(*modified);
    }
    // What is written anew under a name that is there is not missing.
    let is_new =
        |path: &str| !UNFINISHED.iter().any(|end| path.strip_suffix(end).is_some_and(|path| all.contains_key(path)));
    let unfinished = in_folders().filter(|(path, _)| is_unfinished(file_name(path)) && is_new(path));
    let last = unfinished.filter(|(path, stamp)| newest[checkpoint(path)] <= stamp.modified_ns);
    last.map(|(path, _)| checkpoint(path).to_owned()).collect()
}

/// The newest checkpoint of `content`, as the paths that make it up among `all`.
pub(crate) fn newest_group<'a>(
    content: impl Iterator<Item = (&'a str, Stamp)>,
    all: impl Iterator<Item = &'a String>,
) -> BTreeSet<String> {
    let newest = content.max_by_key(|(path, stamp)| (stamp.modified_ns, *path)).map(|(path, _)| path);
    let Some(newest) = newest else { return BTreeSet::new() };
    all.filter(|path| is_same_checkpoint(path, newest)).cloned().collect()
}

/// Whether two files make up one checkpoint: they lie in one checkpoint folder, or in one folder with the same number.
pub(crate) fn is_same_checkpoint(one: &str, other: &str) -> bool {
    let folder = |path: &str| path.len() - file_name(path).len();
    let is_sibling = one[..folder(one)] == other[..folder(other)];
    checkpoint(one) == checkpoint(other) || (is_sibling && number(one).is_some() && number(one) == number(other))
}

/// The folder that is to be put aside with the checkpoint `name`, or else the checkpoint itself: a script that finds the
/// rest of it takes it for its newest checkpoint. Folders with bare numbers are one checkpoint each where there are
/// several; a single one may be that of the whole trial, and one with numbered files has several checkpoints. So the
/// folder goes where all of it is newer than its siblings, and the file has no number.
pub(crate) fn with_its_folder<'a>(files: &BTreeMap<String, Stamp>, name: &'a str) -> &'a str {
    let Some((folder, file)) = name.rsplit_once('/') else { return name };
    let is_number = file_name(folder).chars().all(|c| c.is_ascii_digit());
    let has_number = file.split('.').next().is_some_and(|stem| stem.ends_with(|c: char| c.is_ascii_digit()));
    if !is_number || has_number || !files.contains_key(name) {
        return name;
    }
    let parent = Path::new(folder).parent().unwrap_or(Path::new(""));
    let in_subfolder = |path: &Path| path.strip_prefix(parent).is_ok_and(|rest| rest.components().count() > 1);
    let times = files.iter().map(|(path, stamp)| (Path::new(path), stamp.modified_ns));
    let (own, siblings): (Vec<_>, Vec<_>) =
        times.filter(|(path, _)| in_subfolder(path)).partition(|(path, _)| path.starts_with(folder));
    let oldest = own.into_iter().map(|(_, modified)| modified).min();
    let newest_sibling = siblings.into_iter().map(|(_, modified)| modified).max();
    if newest_sibling.is_some_and(|sibling| oldest >= Some(sibling)) { folder } else { name }
}

/// The most recently modified checkpoint; of several at one moment, the last by name.
pub(crate) fn newest<'a>(files: impl Iterator<Item = (&'a str, Stamp)>) -> Option<String> {
    let newest = files.map(|(path, stamp)| (stamp.modified_ns, checkpoint(path))).max()?;
    Some(newest.1.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    #![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
    use std::fs;

    use super::*;
    use crate::disk::MountedDisk;

    #[test]
    fn a_folder_goes_with_its_checkpoint_where_there_are_older_ones() {
        let files = |paths: &[&str]| -> BTreeMap<String, Stamp> {
            let stamp = |at| Stamp { bytes: 9, modified_ns: at, inode: 1 };
            paths.iter().zip(1..).map(|(path, at)| ((*path).to_owned(), stamp(at))).collect()
        };
        let cases: [(&[&str], &str, &str); 7] = [
            (&["1/model", "1/state", "2/config", "2/model", "latest"], "2/model", "2"),
            (&["run/1/model", "run/2/model"], "run/2/model", "run/2"),
            // The trial's own folder, and one that is written to again and again.
            (&["7/epoch-1", "7/epoch-2"], "7/epoch-2", "7/epoch-2"),
            (&["best/model", "1/model", "last/model", "1/model.b"], "1/model.b", "1/model.b"),
            // The folds of a cross-validation.
            (&["1/epoch-2.pt", "2/epoch-1.pt", "2/epoch-2.pt"], "2/epoch-2.pt", "2/epoch-2.pt"),
            (&["a/checkpoint-1/x", "b/checkpoint-2/x"], "b/checkpoint-2", "b/checkpoint-2"),
            (&["model-1", "model-2"], "model-2", "model-2"),
        ];
        for (paths, name, expected) in cases {
            assert_eq!(with_its_folder(&files(paths), name), expected, "{paths:?}");
        }
    }

    #[test]
    fn unfinished_files_are_no_checkpoints() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/model.pt", "a/model.pt.123.part", "tmp-checkpoint-5/model.pt", ".metadata"] {
            fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let found = walk(&MountedDisk::below(folder.path()), folder.path()).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), [".metadata", "a/model.pt"]);
    }
}
