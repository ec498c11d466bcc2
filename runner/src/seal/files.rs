//! What lies under `checkpoints/`: files, and the checkpoints that they make up.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const READ_BYTES: usize = 1024 * 1024;
const NANOSECONDS: i64 = 1_000_000_000;
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
/// Zip files, which `torch.save` and `numpy.savez` write, begin with these.
const ZIP_START: [u8; 4] = *b"PK\x03\x04";

/// Endings of the names of logs.
const LOGS: [&str; 4] = [".csv", ".jsonl", ".log", ".txt"];

/// The longest pointer file: it names a checkpoint, or holds a counter.
const SMALL_BYTES: u64 = 16 * 1024;

/// Tells one content of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(super) bytes: u64,
    /// Since 1970.
    pub(super) modified_ns: i64,
    /// A file put in place by rename is another one.
    pub(super) inode: u64,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            modified_ns: metadata.mtime().saturating_mul(NANOSECONDS).saturating_add(metadata.mtime_nsec()),
            inode: metadata.ino(),
        }
    }
}

/// Every regular file below `folder` by its path there, but for unfinished ones and names that are
/// not UTF-8, which JSON cannot hold. What goes away meanwhile is passed over.
pub(super) fn walk(folder: &Path) -> io::Result<BTreeMap<String, Stamp>> {
    let mut found = walk_all(folder)?;
    found.retain(|path, _| !path.split('/').any(is_unfinished));
    Ok(found)
}

/// Like [`walk`], with the unfinished ones.
pub(crate) fn walk_all(folder: &Path) -> io::Result<BTreeMap<String, Stamp>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let entries = match fs::read_dir(&next) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            let name = path.strip_prefix(folder).ok().and_then(Path::to_str);
            match name {
                Some(_) if metadata.is_dir() => folders.push(path),
                Some(name) if metadata.is_file() => {
                    found.insert(name.to_owned(), Stamp::of(&metadata));
                }
                Some(_) | None => {}
            }
        }
    }
    Ok(found)
}

/// Whether a file goes by a name under which programs write what they later rename.
pub(crate) fn is_unfinished(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with(UNFINISHED_START) || UNFINISHED.iter().any(|end| name.ends_with(end))
}

/// The checkpoint that a file belongs to: the outermost folder that is one as a whole, or else
/// the file itself.
pub(super) fn checkpoint(path: &str) -> &str {
    let mut folders = path.match_indices('/').map(|(end, _)| &path[..end]);
    let is_checkpoint = |folder: &&str| {
        let name = folder.rsplit('/').next().unwrap_or(folder).to_ascii_lowercase();
        let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let numbered = word.len() < name.len();
        numbered && CHECKPOINT_FOLDERS.contains(&word.trim_end_matches(['-', '_', '=', '.']))
    };
    folders.find(is_checkpoint).unwrap_or(path)
}

/// A file that is written while the training goes on, beside its checkpoints.
pub(crate) fn is_log(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.contains(".tfevents.") || LOGS.iter().any(|end| name.ends_with(end))
}

/// Whether a file holds a state, other than marks, pointers and logs. `name` is its path below the folder of checkpoints.
pub(super) fn has_content(path: &Path, name: &str, bytes: u64) -> bool {
    bytes > 0 && !is_log(name) && !is_small_text(path, bytes)
}

/// Whether a file is a mark or a pointer: empty, or a short text. One that cannot be read is none.
pub(super) fn is_small_text(path: &Path, bytes: u64) -> bool {
    bytes <= SMALL_BYTES
        && fs::read(path).is_ok_and(|content| !content.contains(&0) && std::str::from_utf8(&content).is_ok())
}

/// The most recently modified checkpoint; of several at one moment, the last by name.
pub(crate) fn newest<'a>(files: impl Iterator<Item = (&'a str, Stamp)>) -> Option<String> {
    let newest = files.map(|(path, stamp)| (stamp.modified_ns, checkpoint(path))).max()?;
    Some(newest.1.to_owned())
}

/// SHA-256 of the first `bytes` of a file, in hexadecimal digits.
pub(super) fn hash(path: &Path, bytes: u64) -> io::Result<String> {
    let mut file = File::open(path)?.take(bytes);
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What an unsealed file says about itself: weights without content, or a zip without its end.
pub(super) fn looks_torn(path: &Path, bytes: u64) -> io::Result<bool> {
    if bytes == 0 {
        // An empty file of another name is a mark that its folder is complete.
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        return Ok(WEIGHTS.contains(&ending.as_str()));
    }
    Ok(is_zip(path)? && !is_whole_zip(path)?)
}

fn is_zip(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(ZIP_START.len() as u64).read_to_end(&mut start)?;
    Ok(start == ZIP_START)
}

/// Whether every entry of a zip has the checksum that it was written with.
fn is_whole_zip(path: &Path) -> io::Result<bool> {
    let Ok(mut archive) = zip::ZipArchive::new(File::open(path)?) else {
        return Ok(false);
    };
    let count = archive.len();
    // Reading an entry to its end compares its checksum.
    let mut is_whole =
        |index| archive.by_index(index).is_ok_and(|mut entry| io::copy(&mut entry, &mut io::sink()).is_ok());
    Ok((0..count).all(&mut is_whole))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
    fn unfinished_files_are_no_checkpoints() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/model.pt", "a/model.pt.123.part", "tmp-checkpoint-5/model.pt", ".metadata"] {
            fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let found = walk(folder.path()).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), [".metadata", "a/model.pt"]);
    }
}
