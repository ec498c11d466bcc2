//! Zip archives: `torch.save`, `numpy.savez`, Keras (<https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT>).

use std::fs::File;
use std::io::{self, BufReader};

use zip::result::ZipError;

use super::Completeness;

/// The directory at the end lists every entry with its checksum.
pub(super) fn completeness(file: File) -> io::Result<Completeness> {
    let Ok(mut archive) = zip::ZipArchive::new(BufReader::new(file)) else {
        return Ok(Completeness::Torn);
    };
    for index in 0..archive.len() {
        let is_intact = match archive.by_index(index) {
            // Reading an entry to its end compares its checksum.
            Ok(mut entry) => io::copy(&mut entry, &mut io::sink()).is_ok(),
            // A method that is not compiled in, or an encrypted entry: the directory is all that can be judged.
            Err(ZipError::UnsupportedArchive(_)) => true,
            Err(_) => false,
        };
        if !is_intact {
            return Ok(Completeness::Torn);
        }
    }
    Ok(Completeness::Whole)
}
