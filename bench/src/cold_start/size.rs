//! What is deployed of a function.

use std::fs;
use std::io::{self, Cursor, Write};
use std::path::Path;

use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

/// Bytes of a binary, and of the zip that Lambda takes: the binary as `bootstrap`, deflated as far as it goes.
pub(super) fn of(binary: &Path) -> io::Result<(f64, f64)> {
    let bytes = fs::read(binary)?;
    let options =
        SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).compression_level(Some(9));
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("bootstrap", options.unix_permissions(0o755))?;
    zip.write_all(&bytes)?;
    let zipped = zip.finish()?.into_inner();
    Ok((bytes.len() as f64, zipped.len() as f64))
}
