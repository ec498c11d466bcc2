//! A file that is read in bounded pieces.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

const BUFFER_BYTES: usize = 64 * 1024;

/// A file, and its length when it was opened.
pub(crate) struct Source {
    file: File,
    /// Its length.
    pub(crate) bytes: u64,
}

impl Source {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes })
    }

    /// Up to `length` bytes at `offset`: fewer where the file ends.
    pub(crate) fn read_at(&mut self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        self.file.seek(SeekFrom::Start(offset))?;
        let mut content = Vec::new();
        (&self.file).take(length).read_to_end(&mut content)?;
        Ok(content)
    }

    /// A reader with a buffer, from `offset` on.
    pub(crate) fn reader(&mut self, offset: u64) -> io::Result<BufReader<&File>> {
        self.file.seek(SeekFrom::Start(offset))?;
        Ok(BufReader::with_capacity(BUFFER_BYTES, &self.file))
    }

    /// Whether blocks before the file's end were never written: after a lost instance, pages that the kernel had not
    /// written back. Formats without checksums do not show that in another way. Where the file system does not say, no.
    pub(crate) fn has_hole(&self) -> bool {
        rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Hole(0)).is_ok_and(|hole| hole < self.bytes)
    }
}

/// A little-endian number; of more than eight bytes, the lowest eight.
pub(crate) fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// A big-endian number of up to eight bytes.
pub(crate) fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Whether an error came from the content and not from reading it.
pub(crate) fn is_about_content(error: &io::Error) -> bool {
    // An error of the operating system has its number; decoders make theirs without one.
    error.raw_os_error().is_none()
}
