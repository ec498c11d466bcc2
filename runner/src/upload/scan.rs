//! What lies in the output folder, and what of it is to be uploaded now.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::names::key_name;
use super::{Filter, LOG, METRICS, OWN, UploadError};

/// Tells one content of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) bytes: u64,
    pub(super) modified: SystemTime,
    /// A file put in place by rename is another one, even at the same second and size.
    pub(super) inode: u64,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            inode: metadata.ino(),
        }
    }
}

/// A file to be uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Key below the trial's prefix.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
}

/// Every regular file below `folder` that the filter lets through, in order of name, and what could not be looked at. A link
/// counts as the file it leads to where that lies in the folder too; other links, links to folders
/// and special files have nothing to upload.
pub(super) fn scan(folder: &Path, filter: &Filter) -> (Vec<Found>, Vec<UploadError>) {
    let mut found = Vec::new();
    let mut failures = Vec::new();
    // The command may have removed the folder itself: then there are no outputs.
    let Ok(root) = folder.canonicalize() else {
        return (found, failures);
    };
    let mut folders = vec![root.clone()];
    while let Some(next) = folders.pop() {
        let entries = match fs::read_dir(&next) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                failures.push(UploadError::List(error));
                continue;
            }
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            let Some(metadata) = content(&root, &path) else { continue };
            if metadata.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&root).map(key_name).unwrap_or_default();
            if filter.admits(&name) {
                found.push(Found { name: own_name(&name), path, stamp: Stamp::of(&metadata) });
            }
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    (found, failures)
}

/// `None` for what has nothing to upload, and for what has gone in the meantime.
fn content(root: &Path, path: &Path) -> Option<Metadata> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if metadata.is_symlink() {
        let target = path.canonicalize().ok().filter(|target| target.starts_with(root))?;
        return fs::metadata(target).ok().filter(Metadata::is_file);
    }
    (metadata.is_dir() || metadata.is_file()).then_some(metadata)
}

fn own_name(name: &str) -> String {
    if name == LOG || name == METRICS { format!("{OWN}{name}") } else { name.to_owned() }
}

/// The files that differ from what has arrived. With `resting` (now, and for how long), only
/// those that nobody has touched for that long.
pub(super) fn due(
    found: Vec<Found>,
    arrived: &BTreeMap<String, Stamp>,
    resting: Option<(SystemTime, Duration)>,
) -> Vec<Found> {
    let rests = |file: &Found| {
        resting.is_none_or(|(now, quiet)| now.duration_since(file.stamp.modified).is_ok_and(|age| age >= quiet))
    };
    found.into_iter().filter(|file| arrived.get(&file.name) != Some(&file.stamp) && rests(file)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_what_is_in_the_folder_is_found() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("model/epoch-1")).unwrap();
        fs::write(at("model/epoch-1/weights"), "12345").unwrap();
        fs::write(at("train.log"), "own").unwrap();
        symlink(at("model/epoch-1/weights"), at("newest")).unwrap();
        symlink(at("model/epoch-1"), at("best")).unwrap();
        symlink(folder.path(), at("model/loop")).unwrap();
        symlink(outside.path().join("secret"), at("leak")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();

        let (found, failures) = scan(folder.path(), &Filter::default());
        assert!(failures.is_empty(), "{failures:?}");
        let names: Vec<_> = found.iter().map(|file| (file.name.as_str(), file.stamp.bytes)).collect();
        assert_eq!(names, [("model/epoch-1/weights", 5), ("newest", 5), ("own/train.log", 3)]);

        assert_eq!(scan(&at("removed"), &Filter::default()).0, []);
    }

    #[test]
    fn changed_files_are_due_once_they_rest() {
        let second = |count| SystemTime::UNIX_EPOCH + Duration::from_secs(count);
        let file = |name: &str, bytes, modified, inode| Found {
            name: name.to_owned(),
            path: PathBuf::from(name),
            stamp: Stamp { bytes, modified: second(modified), inode },
        };
        let arrived = BTreeMap::from([("old".to_owned(), file("old", 1, 10, 1).stamp)]);
        let quiet = Some((second(100), Duration::from_secs(5)));
        // What is found, when it is looked at, whether it is due.
        let cases = [
            (file("old", 1, 10, 1), quiet, false),
            (file("old", 1, 10, 1), None, false),
            (file("old", 2, 10, 1), quiet, true),
            (file("old", 1, 11, 1), quiet, true),
            (file("old", 1, 10, 2), quiet, true),
            (file("new", 1, 95, 3), quiet, true),
            (file("new", 1, 96, 3), quiet, false),
            (file("new", 1, 96, 3), None, true),
            (file("future", 1, 200, 4), quiet, false),
        ];
        for (file, resting, expected) in cases {
            let is_due = !due(vec![file.clone()], &arrived, resting).is_empty();
            assert_eq!(is_due, expected, "{file:?} {resting:?}");
        }
    }
}
