//! Reads files and judges their contents.

use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};
use spotsweep_checkpoint_formats::{Completeness, is_model_text};
use spotsweep_protocol::words::hexadecimal;

use crate::database::is_database;
use crate::disk::Disk;
use crate::names::{file_name, is_library_log, is_log_name, is_pointer_name};

/// Files are read again, newest first, up to so many bytes. A volume that was made from a snapshot fetches every block
/// from S3 when it is first read (fact 25). Training reads little more than the newest checkpoint.
/// Beyond that, size and time decide.
pub(crate) const READ_AGAIN_BYTES: u64 = 1 << 30;

const READ_BYTES: usize = 1024 * 1024;
/// Endings of the names of files that are never empty: they hold weights or a state, in a format that has at least a
/// few bytes.
const NEVER_EMPTY: [&str; 25] = [
    "bin",
    "bz2",
    "ckpt",
    "gguf",
    "gz",
    "h5",
    "hdf5",
    "joblib",
    "json",
    "keras",
    "lz4",
    "msgpack",
    "npy",
    "npz",
    "onnx",
    "parquet",
    "pickle",
    "pkl",
    "pt",
    "pth",
    "safetensors",
    "tar",
    "xz",
    "zip",
    "zst",
];
/// The most bytes of a pointer file, which names a checkpoint or holds a counter.
const SMALL_BYTES: u64 = 16 * 1024;

/// Whether the format or the name of a file shows that it holds a state. Marks, pointers and logs do not. `name` is its
/// path below the checkpoint folder.
pub(crate) fn has_content(disk: &dyn Disk, path: &Path, name: &str, bytes: u64) -> bool {
    bytes > 0 && !is_small_text(disk, path, bytes) && (!is_log_name(name) || has_format(disk, path, name))
}

/// Whether a file that is named like a log has the format of a state. Lines of JSON have the format of a log.
pub(crate) fn has_format(disk: &dyn Disk, path: &Path, name: &str) -> bool {
    let is_known = || matches!(disk.completeness(path), Ok(Completeness::Whole | Completeness::Torn));
    !is_library_log(name) && !file_name(name).to_ascii_lowercase().ends_with(".jsonl") && is_known()
}

/// Whether a file is a mark or a pointer: empty, or a short text. False if it cannot be read.
pub(crate) fn is_small_text(disk: &dyn Disk, path: &Path, bytes: u64) -> bool {
    small_text(disk, path, bytes).is_some()
}

/// The text of a mark or a pointer; `None` for a model, however small.
pub(crate) fn small_text(disk: &dyn Disk, path: &Path, bytes: u64) -> Option<String> {
    let content = (bytes <= SMALL_BYTES).then(|| read(disk, path, SMALL_BYTES).ok())??;
    String::from_utf8(content).ok().filter(|text| !text.contains('\0') && !is_model_text(text))
}

/// At most the first `most` bytes of a small file, because a training may make it long meanwhile.
pub(crate) fn read(disk: &dyn Disk, path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    read_pieces(disk, path, most, |piece| content.extend_from_slice(piece))?;
    Ok(content)
}

/// Reads the first `bytes` of a file piece by piece.
fn read_pieces(disk: &dyn Disk, path: &Path, bytes: u64, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let content = disk.open(path)?;
    let mut buffer = buffer(bytes);
    let mut offset = 0;
    while offset < bytes {
        let most = usize::try_from(bytes - offset).unwrap_or(usize::MAX).min(buffer.len());
        let count = content.read_at(&mut buffer[..most], offset)?;
        if count == 0 {
            break;
        }
        take(&buffer[..count]);
        offset += count as u64;
    }
    Ok(())
}

/// A buffer for a file of so many bytes. It is small for a small file, because most of the many files are small.
fn buffer(bytes: u64) -> Vec<u8> {
    vec![0; usize::try_from(bytes).unwrap_or(usize::MAX).min(READ_BYTES)]
}

/// SHA-256 of the first `bytes` of a file, in hexadecimal digits.
pub(crate) fn hash(disk: &dyn Disk, path: &Path, bytes: u64) -> io::Result<String> {
    let mut hasher = Sha256::new();
    read_pieces(disk, path, bytes, |piece| hasher.update(piece))?;
    Ok(hexadecimal(hasher.finalize()))
}

/// Whether an unsealed file is incomplete by its format, or is empty although it should hold weights or a name. False
/// if it is gone or takes too long to judge: a file that its hash does not prove stays doubtful.
pub(crate) fn looks_torn(disk: &dyn Disk, path: &Path, bytes: u64) -> io::Result<bool> {
    if bytes == 0 {
        return Ok(is_never_empty(path));
    }
    Ok(completeness(disk, path)? == Some(Completeness::Torn))
}

/// The same for a file that a lost instance may not have written out. If its format is unknown, lost blocks count, too.
/// Files that are sparse by design are sealed like that. A database may have its missing parts next to it.
pub(crate) fn looks_lost(disk: &dyn Disk, path: &Path, bytes: u64) -> io::Result<bool> {
    if bytes == 0 {
        return Ok(is_never_empty(path));
    }
    match completeness(disk, path)? {
        Some(Completeness::Torn) => Ok(true),
        Some(Completeness::Unknown) => Ok(!is_database(disk, path) && disk.open(path)?.has_hole()),
        Some(Completeness::Whole | Completeness::Unjudged) | None => Ok(false),
    }
}

/// Whether a file of this name is never empty. An empty file of another name marks its folder as complete.
fn is_never_empty(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    NEVER_EMPTY.contains(&ending.as_str()) || is_pointer_name(&path.to_string_lossy())
}

/// `None` for a file that is gone.
fn completeness(disk: &dyn Disk, path: &Path) -> io::Result<Option<Completeness>> {
    match disk.completeness(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Whether the format of a file shows that it is complete.
pub(crate) fn is_whole(disk: &dyn Disk, path: &Path) -> io::Result<bool> {
    Ok(disk.completeness(path)? == Completeness::Whole)
}
