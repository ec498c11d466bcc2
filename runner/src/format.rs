//! Whether a file is complete, as its own format says.
//!
//! A format is known by its first bytes. What is read is bounded, whatever the file says about itself.

mod array;
mod gzip;
mod hdf5;
mod json;
mod pickle;
mod safetensors;
mod sqlite;
mod zip;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// What a file's format says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// All that was to be written is there.
    Whole,
    /// Its end, or a part of it, is missing: the library that reads the format refuses it.
    Torn,
    /// The format does not say, or is not known here.
    Unknown,
}

impl From<bool> for Completeness {
    fn from(is_whole: bool) -> Self {
        if is_whole { Self::Whole } else { Self::Torn }
    }
}

/// The longest beginning by which a format is known.
const MAGIC_BYTES: u64 = 16;

/// What the format of the file at `path` says.
///
/// # Errors
/// Where the file cannot be read. Strange content is no error.
pub(crate) fn completeness(path: &Path) -> io::Result<Completeness> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut magic = Vec::new();
    file.by_ref().take(MAGIC_BYTES).read_to_end(&mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match magic.as_slice() {
        [] => Ok(Completeness::Unknown),
        [b'P', b'K', 3, 4, ..] => zip::completeness(file),
        [b'P', b'K', 5, 6, ..] => Ok(Completeness::Whole),
        [0x1f, 0x8b, 8, ..] => gzip::completeness(file),
        [0x89, b'H', b'D', b'F', 0x0d, 0x0a, 0x1a, 0x0a, ..] => hdf5::completeness(&mut file, bytes),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => array::npy(&mut file, bytes),
        [b'P', b'A', b'R', b'1', ..] => array::parquet(&mut file, bytes),
        [b'S', b'Q', b'L', b'i', b't', b'e', b' ', b'f', b'o', b'r', b'm', b'a', b't', b' ', b'3', 0] => {
            sqlite::completeness(&mut file, bytes, path)
        }
        [0x80, 2..=5, ..] => pickle::completeness(&mut file, bytes),
        _ if ending == "safetensors" || safetensors::looks_like(&magic) => safetensors::completeness(&mut file, bytes),
        _ if ending == "json" => json::completeness(file),
        _ => Ok(Completeness::Unknown),
    }
}

/// Whether blocks before the file's end were never written: after a lost instance, pages that the kernel had not
/// written back. Formats without checksums cannot show that in another way. Where the file system does not say, no.
fn has_hole(file: &File, bytes: u64) -> bool {
    rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(0)).is_ok_and(|hole| hole < bytes)
}

/// `length` bytes at `offset`; fewer at the end of the file.
fn read_at(file: &mut File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut content = Vec::new();
    file.take(length as u64).read_to_end(&mut content)?;
    Ok(content)
}

/// A little-endian number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests;
