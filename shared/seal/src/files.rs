//! What lies under `checkpoints/`: files, and the checkpoints that they make up.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};
use spotsweep_checkpoint_formats::{Completeness, completeness_by};

use crate::disk::{Disk, Stamp};

const READ_BYTES: usize = 1024 * 1024;
/// Endings of names under which programs write what they later rename.
const UNFINISHED: [&str; 5] = [".part", ".partial", ".tmp", ".temp", "~"];
/// Hugging Face's trainer writes a checkpoint folder under such a name.
const UNFINISHED_START: &str = "tmp-";
/// With a number after them: folders that are one checkpoint, as Hugging Face, DeepSpeed, Megatron,
/// Accelerate and Ray name them.
const CHECKPOINT_FOLDERS: [&str; 8] =
    ["checkpoint", "ckpt", "step", "global_step", "epoch", "iter", "iteration", "model_step"];
/// Endings of the names of files that hold weights or a state, and are never empty.
const WEIGHTS: [&str; 15] = [
    "bin",
    "ckpt",
    "h5",
    "hdf5",
    "joblib",
    "keras",
    "msgpack",
    "npy",
    "npz",
    "onnx",
    "pickle",
    "pkl",
    "pt",
    "pth",
    "safetensors",
];
/// Endings of the names of logs.
const LOGS: [&str; 4] = [".csv", ".jsonl", ".log", ".txt"];

/// Names of pointer files: DeepSpeed's, MMEngine's, Megatron's and TensorFlow's.
const POINTERS: [&str; 4] = ["latest", "last_checkpoint", "latest_checkpointed_iteration.txt", "checkpoint"];

/// The longest pointer file: it names a checkpoint, or holds a counter.
const SMALL_BYTES: u64 = 16 * 1024;

/// Every regular file below `folder` by its path there, but for unfinished ones.
pub(crate) fn walk(disk: &dyn Disk, folder: &Path) -> io::Result<BTreeMap<String, Stamp>> {
    let mut found = disk.files(folder)?;
    found.retain(|path, _| !has_unfinished_part(path));
    Ok(found)
}

/// Whether a file or a folder of its path is unfinished.
pub(crate) fn has_unfinished_part(path: &str) -> bool {
    path.split('/').any(is_unfinished)
}

/// Checkpoint folders in which a file was being written after all others.
pub(crate) fn unfinished_folders(all: &BTreeMap<String, Stamp>) -> BTreeSet<String> {
    let in_folders = || all.iter().filter(|(path, _)| checkpoint(path) != path.as_str());
    let is_newest = |name: &str, modified: i64| {
        in_folders().filter(|(path, _)| checkpoint(path) == name).all(|(_, stamp)| stamp.modified_ns <= modified)
    };
    // What is written anew under a name that is there is not missing.
    let is_new =
        |path: &str| !UNFINISHED.iter().any(|end| path.strip_suffix(end).is_some_and(|path| all.contains_key(path)));
    let unfinished = in_folders().filter(|(path, _)| is_unfinished(file_name(path)) && is_new(path));
    let newest = unfinished.filter(|(path, stamp)| is_newest(checkpoint(path), stamp.modified_ns));
    newest.map(|(path, _)| checkpoint(path).to_owned()).collect()
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a file goes by a name under which programs write what they later rename.
pub(crate) fn is_unfinished(path: &str) -> bool {
    let name = file_name(path);
    name.starts_with(UNFINISHED_START) || UNFINISHED.iter().any(|end| name.ends_with(end))
}

/// The checkpoint that a file belongs to: the outermost folder that is one as a whole, or else
/// the file itself.
pub(crate) fn checkpoint(path: &str) -> &str {
    let mut folders = path.match_indices('/').map(|(end, _)| &path[..end]);
    let is_checkpoint = |folder: &&str| {
        let name = file_name(folder).to_ascii_lowercase();
        let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let numbered = word.len() < name.len();
        numbered && CHECKPOINT_FOLDERS.contains(&word.trim_end_matches(['-', '_', '=', '.']))
    };
    folders.find(is_checkpoint).unwrap_or(path)
}

/// The number in a file's name, such as 5 in `ckpt-5.data-00000-of-00001`.
pub(crate) fn number(path: &str) -> Option<&str> {
    let stem = file_name(path).trim_start_matches('.').split('.').next()?;
    let end = stem.rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = stem[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |last| last + 1);
    Some(&stem[start..end])
}

/// Whether a file belongs to one checkpoint of several, so that it is not rewritten by the next.
pub(crate) fn is_numbered(path: &str) -> bool {
    checkpoint(path) != path || number(path).is_some()
}

/// The newest checkpoint of `content`, as the paths that make it up among `all`: the files of one checkpoint folder, or
/// those in one folder with the same number.
pub(crate) fn newest_group<'a>(
    content: impl Iterator<Item = (&'a str, Stamp)>,
    all: impl Iterator<Item = &'a String>,
) -> BTreeSet<String> {
    let newest = content.max_by_key(|(path, stamp)| (stamp.modified_ns, *path)).map(|(path, _)| path);
    let Some(newest) = newest else { return BTreeSet::new() };
    let folder = |path: &str| path.len() - file_name(path).len();
    let belongs = |path: &&String| {
        let is_sibling = path[..folder(path)] == newest[..folder(newest)];
        checkpoint(path) == checkpoint(newest)
            || (is_sibling && number(path).is_some() && number(path) == number(newest))
    };
    all.filter(belongs).cloned().collect()
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

/// Whether a file is called as pointer files are.
pub(crate) fn is_pointer_name(path: &str) -> bool {
    POINTERS.contains(&file_name(path))
}

/// Whether a file is a log, to which a training appends while it runs.
pub(crate) fn is_log(path: &str) -> bool {
    let name = file_name(path);
    name.contains(".tfevents.") || LOGS.iter().any(|end| name.ends_with(end))
}

/// Whether a file holds a state, other than marks, pointers and logs. `name` is its path below the folder of checkpoints.
pub(crate) fn has_content(disk: &dyn Disk, path: &Path, name: &str, bytes: u64) -> bool {
    bytes > 0 && !is_log(name) && !is_small_text(disk, path, bytes)
}

/// Whether a file is a mark or a pointer: empty, or a short text. One that cannot be read is none.
pub(crate) fn is_small_text(disk: &dyn Disk, path: &Path, bytes: u64) -> bool {
    bytes <= SMALL_BYTES
        && read(disk, path).is_ok_and(|content| !content.contains(&0) && std::str::from_utf8(&content).is_ok())
}

/// All of a small file.
pub(crate) fn read(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    read_pieces(disk, path, u64::MAX, |piece| content.extend_from_slice(piece))?;
    Ok(content)
}

/// Reads two files side by side, piece by piece, up to the end of the shorter one.
pub(crate) fn read_pair(
    disk: &dyn Disk,
    one: &Path,
    other: &Path,
    mut take: impl FnMut(&[u8], &[u8]),
) -> io::Result<()> {
    let other = disk.open(other)?;
    let mut buffer = vec![0; READ_BYTES];
    let mut offset = 0;
    read_pieces(disk, one, other.bytes()?, |piece| {
        let mut filled = 0;
        while filled < piece.len() {
            match other.read_at(&mut buffer[filled..piece.len()], offset + filled as u64) {
                Ok(0) | Err(_) => break,
                Ok(count) => filled += count,
            }
        }
        take(&piece[..filled], &buffer[..filled]);
        offset += piece.len() as u64;
    })
}

/// Reads the first `bytes` of a file piece by piece.
fn read_pieces(disk: &dyn Disk, path: &Path, bytes: u64, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let content = disk.open(path)?;
    let mut buffer = vec![0; READ_BYTES];
    let mut offset = 0;
    while offset < bytes {
        let most = usize::try_from(bytes - offset).unwrap_or(usize::MAX).min(READ_BYTES);
        let count = content.read_at(&mut buffer[..most], offset)?;
        if count == 0 {
            break;
        }
        take(&buffer[..count]);
        offset += count as u64;
    }
    Ok(())
}

/// The most recently modified checkpoint; of several at one moment, the last by name.
pub(crate) fn newest<'a>(files: impl Iterator<Item = (&'a str, Stamp)>) -> Option<String> {
    let newest = files.map(|(path, stamp)| (stamp.modified_ns, checkpoint(path))).max()?;
    Some(newest.1.to_owned())
}

/// SHA-256 of the first `bytes` of a file, in hexadecimal digits.
pub(crate) fn hash(disk: &dyn Disk, path: &Path, bytes: u64) -> io::Result<String> {
    let mut hasher = Sha256::new();
    read_pieces(disk, path, bytes, |piece| hasher.update(piece))?;
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether an unsealed file is incomplete by its format, or holds nothing although weights belong into it. A file that
/// is gone is not.
pub(crate) fn looks_torn(disk: &dyn Disk, path: &Path, bytes: u64) -> io::Result<bool> {
    if bytes == 0 {
        // An empty file of another name is a mark that its folder is complete.
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        return Ok(WEIGHTS.contains(&ending.as_str()));
    }
    match completeness_by(path, &|path| disk.open(path)) {
        Ok(found) => Ok(found == Completeness::Torn),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether an empty file that was being written is cut off, and not a mark: marks have no ending.
pub(crate) fn has_lost_all(path: &str, bytes: u64) -> bool {
    bytes == 0 && file_name(path).trim_start_matches('.').contains('.')
}

/// Whether a file is complete, as its format says.
pub(crate) fn is_whole(disk: &dyn Disk, path: &Path) -> io::Result<bool> {
    Ok(completeness_by(path, &|path| disk.open(path))? == Completeness::Whole)
}

/// Whether a file of a format that is not known has blocks that were never written. Some files are sparse by design:
/// those are sealed as they are.
pub(crate) fn has_unknown_hole(disk: &dyn Disk, path: &Path) -> io::Result<bool> {
    let is_unknown = completeness_by(path, &|path| disk.open(path))? == Completeness::Unknown;
    Ok(is_unknown && disk.open(path)?.has_hole())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    #![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
    use std::fs;

    use super::*;
    use crate::disk::MountedDisk;

    #[test]
    fn folders_that_are_checkpoints_go_as_one() {
        let cases = [
            ("model.pt", "model.pt"),
            ("checkpoint-500/optimizer.pt", "checkpoint-500"),
            ("run/global_step_12/mp/rank_0.pt", "run/global_step_12"),
            ("a/checkpoint-1/step3/x", "a/checkpoint-1"),
            ("iter_0000500/x", "iter_0000500"),
            ("Epoch=3/x", "Epoch=3"),
            // Parameters in a folder's name, and checkpoints below it.
            ("lr_0.1-seed_7/epoch-000001.checkpoint", "lr_0.1-seed_7/epoch-000001.checkpoint"),
            ("7/model.pt", "7/model.pt"),
            ("checkpoint/x", "checkpoint/x"),
            ("version_0/checkpoints/epoch=1.ckpt", "version_0/checkpoints/epoch=1.ckpt"),
        ];
        for (path, expected) in cases {
            assert_eq!(checkpoint(path), expected, "{path}");
        }
    }

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
        let found = walk(&MountedDisk, folder.path()).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), [".metadata", "a/model.pt"]);
    }
}
