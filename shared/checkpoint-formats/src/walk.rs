//! Reads a file part by part, without storing skipped parts.

use std::io::{self, BufRead};

use crate::Completeness;
use crate::source::{Reader, Source};

/// The most bytes of a number of variable length.
const VARIABLE_BYTES: u32 = 10;

/// The reason why a walk ends before the end of the format.
pub(crate) enum Stop {
    /// The file cannot be read.
    Failed(io::Error),
    /// A part is missing.
    Torn,
    /// The content is not known here.
    Unknown,
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

pub(crate) struct Walk<'a> {
    reader: Reader<'a>,
    pub(crate) at: u64,
    /// The file's length.
    bytes: u64,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(source: &'a mut Source, at: u64) -> Self {
        let bytes = source.bytes;
        Self { reader: source.reader(at), at, bytes }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes
    }

    /// Returns the next byte without consuming it.
    pub(crate) fn peek(&mut self) -> Result<u8, Stop> {
        self.reader.fill_buf()?.first().copied().ok_or(Stop::Torn)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Stop> {
        let byte = self.peek()?;
        self.reader.consume(1);
        self.at += 1;
        Ok(byte)
    }

    /// Reads a little-endian number of `size` bytes, up to eight.
    pub(crate) fn little(&mut self, size: u32) -> Result<u64, Stop> {
        (0..size).try_fold(0, |number, place| Ok(number | (u64::from(self.byte()?) << (8 * place))))
    }

    /// Reads a big-endian number of `size` bytes, up to eight.
    pub(crate) fn big(&mut self, size: u32) -> Result<u64, Stop> {
        (0..size).try_fold(0, |number, _| Ok((number << 8) | u64::from(self.byte()?)))
    }

    /// Reads a number with seven bits in each byte, the lowest first. The eighth bit is set if more bytes follow
    /// (<https://protobuf.dev/programming-guides/encoding/#varints>).
    pub(crate) fn variable(&mut self) -> Result<u64, Stop> {
        let mut number = 0;
        for place in 0..VARIABLE_BYTES {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Stop::Torn)
    }

    /// Skips `count` bytes, which must exist.
    pub(crate) fn skip(&mut self, count: u64) -> Result<(), Stop> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes).ok_or(Stop::Torn)?;
        self.reader.seek_relative(i64::try_from(count).map_err(|_| Stop::Torn)?)?;
        self.at = end;
        Ok(())
    }
}

/// Judges a file by a walk from `at` on. If the walk reaches its end, the file is whole, unless some blocks were never
/// written.
pub(crate) fn judge(
    source: &mut Source,
    at: u64,
    walk: impl FnOnce(Walk<'_>) -> Result<(), Stop>,
) -> io::Result<Completeness> {
    let has_hole = source.has_hole();
    match walk(Walk::new(source, at)) {
        Ok(()) => Ok((!has_hole).into()),
        Err(Stop::Torn) => Ok(Completeness::Torn),
        Err(Stop::Unknown) => Ok(Completeness::Unknown),
        Err(Stop::Failed(error)) => Err(error),
    }
}
