//! Checkpoints of a training that has succeeded: many scripts leave their model only there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use spotsweep_protocol::claim::Checkpoints;

use crate::content::{has_content, looks_torn};
use crate::disk::{Disk, Stamp};
use crate::files::{newest_group, walk};
use crate::groups::Groups;
use crate::names::number;

/// The files below `folder` that are to be collected, by their paths there. They are complete, as far as their formats
/// show. Where no file holds more than a short text or a log, the newest of those counts as the checkpoint.
///
/// # Errors
/// Where the folder cannot be read.
pub fn collected(disk: &dyn Disk, folder: &Path, which: Checkpoints) -> io::Result<BTreeSet<String>> {
    let is_complete =
        |path: &str, stamp: Stamp| Ok::<_, io::Error>(!looks_torn(disk, &folder.join(path), stamp.bytes)?);
    match which {
        Checkpoints::None => Ok(BTreeSet::new()),
        Checkpoints::All => {
            let mut complete = BTreeSet::new();
            for (path, stamp) in walk(disk, folder)? {
                if is_complete(&path, stamp)? {
                    complete.insert(path);
                }
            }
            Ok(complete)
        }
        Checkpoints::Newest => {
            let files = walk(disk, folder)?;
            let is_content = |path: &str, stamp: &Stamp| has_content(disk, &folder.join(path), path, stamp.bytes);
            let content = files.iter().filter(|(path, stamp)| is_content(path, stamp));
            let content: BTreeMap<_, _> = content.map(|(path, stamp)| (path.clone(), *stamp)).collect();
            let ways = [(content.clone(), true), (content, false), (files.clone(), false)];
            for (candidates, with_folder) in ways {
                let newest = newest_complete(&files, candidates, with_folder, &is_complete)?;
                if !newest.is_empty() {
                    return Ok(newest);
                }
            }
            Ok(BTreeSet::new())
        }
    }
}

/// All files of the newest checkpoint of which none is incomplete. `candidates` decide which one is newer. What lies in a
/// numbered folder with it belongs to it, where that is taken `with_folder`: a model without one of its files is none.
fn newest_complete(
    files: &BTreeMap<String, Stamp>,
    mut candidates: BTreeMap<String, Stamp>,
    with_folder: bool,
    is_complete: &dyn Fn(&str, Stamp) -> io::Result<bool>,
) -> io::Result<BTreeSet<String>> {
    let groups = Groups::of(files.iter().map(|(path, stamp)| (path.as_str(), *stamp)));
    loop {
        let mut group =
            newest_group(&groups, candidates.iter().map(|(path, stamp)| (path.as_str(), *stamp)), files.keys());
        let around = group.first().and_then(|path| numbered_folder(path)).filter(|_| with_folder).map(str::to_owned);
        if let Some(around) = around {
            group.extend(files.keys().filter(|path| Path::new(path).starts_with(&around)).cloned());
        }
        let mut whole = true;
        for path in &group {
            whole = whole && is_complete(path, files[path])?;
        }
        if whole {
            return Ok(group);
        }
        candidates.retain(|path, _| !group.contains(path));
    }
}

/// The outermost folder of a file that has a number in its name.
fn numbered_folder(path: &str) -> Option<&str> {
    path.match_indices('/').map(|(end, _)| &path[..end]).find(|folder| number(folder).is_some())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    #![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::disk::MountedDisk;

    const ZIP: &[u8] = b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    const TORN: &[u8] = b"PK\x03\x04 and nothing that ends it";
    const TEXT: &[u8] = b"step=3";

    /// Files in the order in which they were written, and what is collected of the newest checkpoint.
    type Case = (&'static [(&'static str, &'static [u8])], &'static [&'static str]);

    #[test]
    fn the_newest_complete_checkpoint_is_collected_with_all_its_files() {
        let cases: [Case; 7] = [
            (&[], &[]),
            (&[("epoch-1.pt", ZIP), ("epoch-2.pt", ZIP), ("latest", TEXT)], &["epoch-2.pt"]),
            (&[("epoch-1.pt", ZIP), ("epoch-2.pt", TORN)], &["epoch-1.pt"]),
            (
                &[("a-1/model.pt", ZIP), ("a-2/model.pt", ZIP), ("a-2/state.json", TEXT)],
                &["a-2/model.pt", "a-2/state.json"],
            ),
            (
                &[("a-1/model.pt", ZIP), ("a-1/o.pt", ZIP), ("a-2/model.pt", ZIP), ("a-2/o.pt", TORN)],
                &["a-1/model.pt", "a-1/o.pt"],
            ),
            (&[("v-0/a-1.pt", TORN), ("v-0/a-2.pt", ZIP)], &["v-0/a-2.pt"]),
            (&[("state.json", TEXT)], &["state.json"]),
        ];
        for (written, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
            for ((name, content), second) in written.iter().zip(1..) {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, content).unwrap();
                let time = begin + Duration::from_secs(second);
                File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
            }
            let disk = MountedDisk::below(folder.path());
            let of = |which| collected(&disk, folder.path(), which).unwrap();
            assert_eq!(
                of(Checkpoints::Newest),
                expected.iter().map(|path| (*path).to_owned()).collect(),
                "{written:?}"
            );
            let complete = written.iter().filter(|(_, content)| *content != TORN);
            assert_eq!(of(Checkpoints::All), complete.map(|(path, _)| (*path).to_owned()).collect());
            assert_eq!(of(Checkpoints::None), BTreeSet::new());
        }
    }
}
