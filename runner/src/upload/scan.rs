//! Finds the files in the output folder, and which of them have to be uploaded now.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use spotsweep_beneath::{Entry, Folder, Kind, Status};
use spotsweep_protocol::claim::COLLECTED;
use spotsweep_protocol::patterns::Filter;
use spotsweep_seal::CHECKPOINTS;

use super::names::key_name;
use super::{LOG, METRICS, OWN, UNREADABLE, UploadError};
use crate::storage::Storage;

/// Distinguishes two contents of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) bytes: u64,
    pub(super) modified: SystemTime,
    /// A file that was put in place by a rename has another inode, even with the same second and size.
    pub(super) inode: u64,
}

impl Stamp {
    pub(super) fn of(status: &Status) -> Self {
        Self { bytes: status.bytes, modified: time(status.modified_ns), inode: status.inode }
    }
}

/// A file to be uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The file's key below the trial's prefix.
    pub(super) name: String,
    /// The file's path below its folder.
    pub(super) path: PathBuf,
    /// Whether the file is in the folder of checkpoints, and not in the storage folder.
    pub(super) is_checkpoint: bool,
    pub(super) stamp: Stamp,
}

/// A time in nanoseconds since 1970.
pub(crate) fn time(nanoseconds: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
    let time = if nanoseconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    time.unwrap_or(UNIX_EPOCH)
}

/// A time as nanoseconds since 1970.
pub(super) fn nanoseconds(time: SystemTime) -> i64 {
    let of = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    time.duration_since(UNIX_EPOCH).map_or_else(|before| -of(before.duration()), of)
}

/// The end of the key of a file in the folder of checkpoints.
pub(super) fn saved_name(path: &str) -> String {
    format!("{CHECKPOINTS}/{}", key_name(path.as_ref()))
}

/// The result of one look.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The files to be uploaded, in order of name.
    pub(super) found: Vec<Found>,
    /// Errors of files and folders that could not be looked at.
    pub(super) failures: Vec<UploadError>,
    /// Names of files that are not to be uploaded, with the reasons.
    pub(super) left_out: BTreeMap<String, String>,
}

/// Finds every regular file in the storage folder that the filter accepts. A link counts as the file it leads to if
/// that is in the folder too. Other links, links to folders and special files are not uploaded.
pub(super) fn scan(storage: &Storage, filter: &Filter) -> Scan {
    let mut scan = Scan::default();
    // The command may have removed the folder itself; then there are no outputs.
    let Ok(folder) = storage.open() else { return scan };
    let mut found = Vec::new();
    let walked = folder.walk(|below, entries| {
        found.extend(entries.iter().filter_map(|entry| content(storage, &folder, below, entry)));
    });
    scan.failures.extend(walked.err().map(UploadError::List));
    for (path, status) in found {
        let name = key_name(&path);
        if !filter.admits(&name) {
            continue;
        }
        let name = own_name(&name);
        if storage.is_the_trainings(&status) {
            scan.found.push(Found { name, path, is_checkpoint: false, stamp: Stamp::of(&status) });
        } else {
            scan.left_out.insert(name, UNREADABLE.to_owned());
        }
    }
    scan.found.sort_by(|one, other| one.name.cmp(&other.name));
    scan
}

/// Finds `files` in the folder of checkpoints, which may have `most` bytes together. A missing file is skipped, because
/// it belongs to no checkpoint any more.
pub(super) fn saved(storage: &Storage, files: &BTreeSet<String>, most: u64) -> Scan {
    let mut scan = Scan::default();
    let Ok(folder) = storage.open() else { return scan };
    for path in files {
        let name = saved_name(path);
        match storage.open_file(&folder, path.as_ref()).and_then(|file| Status::of(&file)) {
            Ok(status) if storage.is_the_trainings(&status) => {
                scan.found.push(Found { name, path: path.into(), is_checkpoint: true, stamp: Stamp::of(&status) });
            }
            Ok(_) => drop(scan.left_out.insert(name, UNREADABLE.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => scan.failures.push(UploadError::List(error)),
        }
    }
    let bytes: u64 = scan.found.iter().map(|file| file.stamp.bytes).sum();
    if bytes > most {
        let limit = format!("the newest checkpoint has {bytes} bytes, and {most} are collected at most");
        let why = format!("{limit}; `outputs: {{checkpoints: all}}` in the sweep file has no limit");
        scan.left_out.extend(scan.found.drain(..).map(|file| (file.name, why.clone())));
    }
    scan
}

/// A file with its path; `None` if there is nothing to upload, or if the file has been removed meanwhile.
fn content(storage: &Storage, folder: &Folder, below: &Path, entry: &Entry) -> Option<(PathBuf, Status)> {
    let path = below.join(&entry.name);
    match entry.status.kind {
        Kind::File => Some((path, entry.status)),
        Kind::Link => {
            let file = storage.open_file(folder, &path).ok()?;
            Some((path, Status::of(&file).ok()?))
        }
        Kind::Folder | Kind::Other => None,
    }
}

fn own_name(name: &str) -> String {
    if [LOG, METRICS, COLLECTED].contains(&name) { format!("{OWN}{name}") } else { name.to_owned() }
}

/// The files that differ from what has arrived. With `resting` (now, and for how long), only those that have not
/// changed for that long.
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
    #![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

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

        let storage = |name: &str| Storage::new(folder.path().to_owned(), name.into(), folder.path(), None);
        let Scan { found, failures, left_out } = scan(&storage(""), &Filter::default());
        assert!(failures.is_empty() && left_out.is_empty(), "{failures:?}");
        let names: Vec<_> = found.iter().map(|file| (file.name.as_str(), file.stamp.bytes)).collect();
        assert_eq!(names, [("model/epoch-1/weights", 5), ("newest", 5), ("own/train.log", 3)]);

        assert_eq!(scan(&storage("removed"), &Filter::default()).found, []);
    }

    #[test]
    fn a_checkpoint_that_is_too_large_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a-1")).unwrap();
        fs::write(folder.path().join("a-1/model"), "12345").unwrap();
        fs::write(folder.path().join("a-1/optimizer"), "12345").unwrap();
        let storage = Storage::new(folder.path().to_owned(), "".into(), folder.path(), None);
        let files = ["a-1/model", "a-1/optimizer", "a-1/gone"].map(str::to_owned).into();
        let names = |scan: &Scan| scan.found.iter().map(|file| file.name.clone()).collect::<Vec<_>>();
        let within = saved(&storage, &files, 10);
        assert!(within.failures.is_empty() && within.left_out.is_empty(), "{within:?}");
        assert_eq!(names(&within), ["checkpoints/a-1/model", "checkpoints/a-1/optimizer"]);
        let beyond = saved(&storage, &files, 9);
        assert_eq!((names(&beyond), beyond.left_out.into_keys().collect()), (Vec::new(), names(&within)));
    }

    #[test]
    fn changed_files_are_due_once_they_rest() {
        let second = |count| SystemTime::UNIX_EPOCH + Duration::from_secs(count);
        let file = |name: &str, bytes, modified, inode| Found {
            name: name.to_owned(),
            path: PathBuf::from(name),
            is_checkpoint: false,
            stamp: Stamp { bytes, modified: second(modified), inode },
        };
        let arrived = BTreeMap::from([("old".to_owned(), file("old", 1, 10, 1).stamp)]);
        let quiet = Some((second(100), Duration::from_secs(5)));
        // The file that is found, when it is looked at, and whether it is due.
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
