//! Reads a compressed tar entry by entry.
//!
//! It takes only what [`crate::pack`] writes: GNU headers of files and symbolic links, and the long names before them.
//! Everything else is an error, so no extension of the format can give a file a second meaning.

use std::io::{BufReader, Read};

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use sha2::{Digest as _, Sha256};
use tar::{EntryType, Header};

use crate::content::Content;
use crate::error::UnpackError;
use crate::names::{LONGEST_PATH, escaped};

/// The unit of a tar.
pub(crate) const BLOCK: usize = 512;
const STEP_BYTES: usize = 64 << 10;

/// One file or link.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) content: Content,
}

pub(crate) struct Reader<R: Read> {
    tar: StreamingDecoder<BufReader<R>, FrameDecoder>,
    hash: Sha256,
    bytes: u64,
    limit_bytes: u64,
    /// The bytes of the last entry's content that are not read yet.
    ahead: u64,
    /// The zeros after that content, up to the next block.
    padding: u64,
}

impl<R: Read> Reader<R> {
    pub(crate) fn new(archive: R, limit_bytes: u64) -> Result<Self, UnpackError> {
        let tar = StreamingDecoder::new(BufReader::new(archive));
        let tar = tar.map_err(|error| UnpackError::Compression(std::io::Error::other(error.to_string())))?;
        Ok(Self { tar, hash: Sha256::new(), bytes: 0, limit_bytes, ahead: 0, padding: 0 })
    }

    /// Returns the next entry, or `None` at the end of the tar. What is left of the content before it is skipped.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, UnpackError> {
        self.content(|_| Ok(()))?;
        let (mut long_path, mut long_target) = (None, None);
        loop {
            let block = self.block()?;
            if block == [0; BLOCK] {
                let is_alone = long_path.is_none() && long_target.is_none();
                return if is_alone { self.end().map(|()| None) } else { Err(self.odd("a name without its file")) };
            }
            let header = Header::from_byte_slice(&block);
            self.check(header)?;
            let long = match header.entry_type() {
                EntryType::GNULongName => &mut long_path,
                EntryType::GNULongLink => &mut long_target,
                EntryType::Regular | EntryType::Symlink => return self.entry(header, long_path, long_target).map(Some),
                _ => {
                    let path = escaped(&long_path.unwrap_or_else(|| header.path_bytes().into_owned()));
                    return Err(UnpackError::Entry { path, why: "it is neither a file nor a symbolic link" });
                }
            };
            let name = self.long_name(header)?;
            if long.replace(name).is_some() {
                return Err(self.odd("two long names for one file"));
            }
        }
    }

    fn entry(&mut self, header: &Header, path: Option<Vec<u8>>, target: Option<Vec<u8>>) -> Result<Entry, UnpackError> {
        let text = |name: Vec<u8>| {
            String::from_utf8(name)
                .map_err(|error| UnpackError::Entry { path: escaped(error.as_bytes()), why: "its name is not UTF-8" })
        };
        let path = text(path.unwrap_or_else(|| header.path_bytes().into_owned()))?;
        let bytes = header.entry_size().map_err(|_| self.odd("a size that is no number"))?;
        if header.entry_type() == EntryType::Symlink {
            let short = || header.link_name_bytes().map(std::borrow::Cow::into_owned);
            let target = text(target.or_else(short).unwrap_or_default())?;
            if bytes != 0 {
                return Err(self.odd("a link with content"));
            }
            return Ok(Entry { path, content: Content::Link { target } });
        }
        let mode = header.mode().map_err(|_| self.odd("a mode that is no number"))?;
        (self.ahead, self.padding) = (bytes, bytes.next_multiple_of(BLOCK as u64) - bytes);
        Ok(Entry { path, content: Content::File { bytes, executable: mode & 0o100 != 0 } })
    }

    /// Passes what is left of the last entry's content to `take`.
    pub(crate) fn content(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), UnpackError>,
    ) -> Result<(), UnpackError> {
        let mut buffer = [0; STEP_BYTES];
        while self.ahead > 0 {
            let most = usize::try_from(self.ahead).map_or(STEP_BYTES, |ahead| ahead.min(STEP_BYTES));
            let part = &mut buffer[..most];
            self.fill(part)?;
            self.ahead -= most as u64;
            take(part)?;
        }
        let padding = std::mem::take(&mut self.padding) as usize;
        self.fill(&mut buffer[..padding])
    }

    /// Checks the SHA-256 of the whole tar, after the last entry.
    pub(crate) fn check_hash(self, expected: &str) -> Result<(), UnpackError> {
        let found: String = hex(&self.hash.finalize());
        if found == expected { Ok(()) } else { Err(UnpackError::Hash { expected: expected.to_owned(), found }) }
    }

    /// Reads a long name. A zero ends it.
    fn long_name(&mut self, header: &Header) -> Result<Vec<u8>, UnpackError> {
        let bytes = header.entry_size().map_err(|_| self.odd("a size that is no number"))?;
        if bytes > LONGEST_PATH as u64 + 1 {
            return Err(self.odd("a name longer than 3 800 bytes"));
        }
        (self.ahead, self.padding) = (bytes, bytes.next_multiple_of(BLOCK as u64) - bytes);
        let mut name = Vec::new();
        self.content(|part| {
            name.extend_from_slice(part);
            Ok(())
        })?;
        if name.pop_if(|last| *last == 0).is_none() || name.contains(&0) {
            return Err(self.odd("a long name with a zero in it, or without one at its end"));
        }
        Ok(name)
    }

    fn check(&self, header: &Header) -> Result<(), UnpackError> {
        // The sum takes the bytes of the sum itself, 148 to 155, as spaces.
        let others = |(at, byte): (usize, &u8)| u32::from(if (148..156).contains(&at) { b' ' } else { *byte });
        let sum: u32 = header.as_bytes().iter().enumerate().map(others).sum();
        if header.cksum().ok() != Some(sum) {
            return Err(self.odd("a wrong checksum"));
        }
        header.as_gnu().map(drop).ok_or_else(|| self.odd("no GNU form"))
    }

    /// Reads the second of the two blocks of zeros that end a tar, and what is behind it.
    fn end(&mut self) -> Result<(), UnpackError> {
        if self.block()? != [0; BLOCK] {
            return Err(self.odd("a single block of zeros before it"));
        }
        let mut behind = [0; BLOCK];
        let count = self.read(&mut behind)?;
        if count == 0 { Ok(()) } else { Err(self.odd("something behind the end of the archive")) }
    }

    fn block(&mut self) -> Result<[u8; BLOCK], UnpackError> {
        let mut block = [0; BLOCK];
        self.fill(&mut block)?;
        Ok(block)
    }

    fn fill(&mut self, mut buffer: &mut [u8]) -> Result<(), UnpackError> {
        while !buffer.is_empty() {
            let count = self.read(buffer)?;
            if count == 0 {
                return Err(UnpackError::Compression(std::io::ErrorKind::UnexpectedEof.into()));
            }
            buffer = &mut buffer[count..];
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, UnpackError> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let count = self.tar.read(buffer).map_err(UnpackError::Compression)?;
        self.hash.update(&buffer[..count]);
        self.bytes += count as u64;
        if self.bytes > self.limit_bytes {
            return Err(UnpackError::TooLarge { limit_bytes: self.limit_bytes });
        }
        Ok(count)
    }

    fn odd(&self, what: &'static str) -> UnpackError {
        UnpackError::Header { at: self.bytes.saturating_sub(BLOCK as u64), what }
    }
}

/// Returns bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
