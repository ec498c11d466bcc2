//! A file that is read in bounded pieces.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

const BUFFER_BYTES: usize = 64 * 1024;

/// The access to a file that its judgement needs.
pub trait Content {
    /// Returns the file's length.
    ///
    /// # Errors
    /// If the file system does not report it.
    fn bytes(&self) -> io::Result<u64>;

    /// Reads from `offset` on. Returns the number of bytes read, which is 0 at the end.
    ///
    /// # Errors
    /// If the file cannot be read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Whether blocks before the file's end were never written. False if the file system does not report it.
    fn has_hole(&self) -> bool;
}

impl Content for File {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn has_hole(&self) -> bool {
        let bytes = self.metadata().map_or(0, |metadata| metadata.len());
        rustix::fs::seek(self, rustix::fs::SeekFrom::Hole(0)).is_ok_and(|hole| hole < bytes)
    }
}

/// A file, with its length when it was opened.
pub(crate) struct Source {
    content: Box<dyn Content>,
    pub(crate) bytes: u64,
}

impl Source {
    pub(crate) fn new(content: Box<dyn Content>) -> io::Result<Self> {
        let bytes = content.bytes()?;
        Ok(Self { content, bytes })
    }

    /// Reads up to `length` bytes at `offset`; fewer if the file ends.
    pub(crate) fn read_at(&mut self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let mut read = Vec::new();
        self.at(offset).take(length).read_to_end(&mut read)?;
        Ok(read)
    }

    /// Returns a buffered reader from `offset` on.
    pub(crate) fn reader(&mut self, offset: u64) -> Reader<'_> {
        BufReader::with_capacity(BUFFER_BYTES, self.at(offset))
    }

    fn at(&self, offset: u64) -> Position<'_> {
        Position { content: &*self.content, offset, bytes: self.bytes }
    }

    /// Whether blocks before the file's end were never written. After a lost instance, these are pages that the kernel
    /// had not written back. Formats without checksums do not show that in another way.
    pub(crate) fn has_hole(&self) -> bool {
        self.content.has_hole()
    }
}

pub(crate) type Reader<'a> = BufReader<Position<'a>>;

/// A position in a file, from which it is read.
pub(crate) struct Position<'a> {
    content: &'a dyn Content,
    offset: u64,
    bytes: u64,
}

impl Read for Position<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl Seek for Position<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (base, by) = match to {
            SeekFrom::Start(offset) => (offset, 0),
            SeekFrom::End(by) => (self.bytes, by),
            SeekFrom::Current(by) => (self.offset, by),
        };
        let before_the_start = || io::Error::new(io::ErrorKind::InvalidInput, "a place before the start of the file");
        self.offset = base.checked_add_signed(by).ok_or_else(before_the_start)?;
        Ok(self.offset)
    }
}

/// Returns a little-endian number. Of more than eight bytes, the lowest eight count.
pub(crate) fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Returns a big-endian number of up to eight bytes.
pub(crate) fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Whether an error is about the content, not about reading it.
pub(crate) fn is_about_content(error: &io::Error) -> bool {
    // An error of the operating system has a number; decoders create errors without one.
    error.raw_os_error().is_none()
}
