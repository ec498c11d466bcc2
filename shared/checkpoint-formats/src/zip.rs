//! Zip archives, as `torch.save`, `numpy.savez` and Keras write them
//! (<https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT>, sections 4.3.6 to 4.3.16).

use std::io;

use zip::ZipArchive;
use zip::result::ZipError;

use crate::Completeness;
use crate::members::{self, Budget, Undrained};
use crate::source::{Reader, Source, is_about_content};

/// Judges an archive by the directory at its end, which lists every entry with its checksum.
pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    let (bytes, mut budget) = (source.bytes, Budget::of(source));
    let mut archive = match ZipArchive::new(source.reader(0)) {
        Ok(archive) => archive,
        Err(ZipError::Io(error)) if !is_about_content(&error) => return Err(error),
        Err(_) => return Ok(Completeness::Torn),
    };
    // The directory belongs to an archive that begins further on: to an entry, or to an appended archive.
    if archive.offset() != 0 {
        return Ok(Completeness::Unknown);
    }
    let mut packed = 0_u64;
    for index in 0..archive.len() {
        match entry(&mut archive, index, (&mut packed, bytes), &mut budget)? {
            Completeness::Whole => {}
            other => return Ok(other),
        }
    }
    Ok(Completeness::Whole)
}

/// Reads one entry to its end, which compares its checksum. `packed` is the size of the entries so far, and `bytes`
/// that of the file.
fn entry(
    archive: &mut ZipArchive<Reader<'_>>,
    index: usize,
    (packed, bytes): (&mut u64, u64),
    budget: &mut Budget,
) -> io::Result<Completeness> {
    let mut entry = match archive.by_index(index) {
        Ok(entry) => entry,
        // The compression method is not supported, or the entry is encrypted. Only the directory can be judged.
        Err(ZipError::UnsupportedArchive(_)) => return Ok(Completeness::Whole),
        Err(ZipError::Io(error)) if !is_about_content(&error) => return Err(error),
        Err(_) => return Ok(Completeness::Torn),
    };
    // Otherwise entries that share their bytes would be unpacked once for each of them.
    *packed = packed.saturating_add(entry.compressed_size());
    if *packed > bytes {
        return Ok(Completeness::Unknown);
    }
    match members::drain(&mut entry, budget) {
        Ok(()) => Ok(Completeness::Whole),
        Err(Undrained::Failed(error)) if !is_about_content(&error) => Err(error),
        Err(undrained) => Ok(undrained.into()),
    }
}
