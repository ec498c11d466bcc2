//! Writes the files of a listing as an archive.

use std::io::{self, Write};
use std::path::Path;

use ruzstd::encoding::{CompressionLevel, FrameCompressor};
use spotsweep_beneath::Folder;

use crate::error::PackError;
use crate::listing::Listing;
use crate::stream::Stream;

/// An archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// The SHA-256 of the tar, before it is compressed, in lower-case hexadecimal digits.
    pub sha256: String,
    /// The length of the tar in bytes, before it is compressed.
    pub bytes: u64,
    /// The number of files and links.
    pub files: u64,
}

/// Writes the listed files of a folder to `out`, as a tar that Zstandard compresses. The same paths, contents and
/// executable bits give the same tar. The archive is not complete before this has returned.
///
/// # Errors
/// If a file was changed or removed since it was listed or while it is read, or cannot be read; if `out` fails.
pub fn pack(folder: &Path, listing: &Listing, out: impl Write) -> Result<Packed, PackError> {
    let failed = |source| PackError::Read { path: folder.display().to_string(), source };
    let folder = Folder::trusted(folder).map_err(failed)?;
    let mut stream = Stream::new(&folder, &listing.files);
    let mut drain = Drain { out, failure: None };
    let mut compressor = FrameCompressor::new(CompressionLevel::Fastest);
    compressor.set_source(&mut stream);
    compressor.set_drain(&mut drain);
    compressor.compress();
    drop(compressor);
    let (sha256, bytes) = stream.finish()?;
    drain.failure.map_or_else(|| drain.out.flush(), Err).map_err(PackError::Write)?;
    Ok(Packed { sha256, bytes, files: listing.files.len() as u64 })
}

/// Keeps the first error: the compressor panics on an error of its drain.
struct Drain<W> {
    out: W,
    failure: Option<io::Error>,
}

impl<W: Write> Write for Drain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failure.is_none() {
            self.failure = self.out.write_all(bytes).err();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
