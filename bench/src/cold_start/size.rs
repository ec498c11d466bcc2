//! Measures the size of a function's deployment.

use std::fs;
use std::io::{self, Cursor, Write};
use std::path::Path;

use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

/// Returns the bytes of a binary, and of the zip for Lambda: the binary as `bootstrap`, with the strongest compression.
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
