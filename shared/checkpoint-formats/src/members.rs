//! Compressed files of members, each with an end of its own.

use std::io::{self, BufRead, Read};

use crate::Completeness;
use crate::source::Source;

/// The longest mark of a member, in bytes.
const MARK_BYTES: usize = 6;
const BUFFER_BYTES: usize = 64 * 1024;
/// The bytes to which every file may unpack: a second or two of a decoder's time.
const ALWAYS_UNPACKED: u64 = if cfg!(test) { 16 << 20 } else { 1 << 30 };
/// The multiple of its size to which a file may unpack. Compression reduces weights to a third at best.
const MOST_TIMES: u64 = 16;

/// Judges members until one is not whole. `is_start` recognises the first bytes of a further member, which may be cut
/// off. Other bytes after a member are not part of the format: some programs refuse them, others skip them. The same is
/// true of zeros, unless `has_padding` states that the format's programs agree to skip them.
pub(crate) fn completeness(
    source: &mut Source,
    has_padding: bool,
    is_start: impl Fn(&[u8]) -> bool,
    one: impl Fn(&mut Input<'_>, &mut Budget) -> Completeness,
) -> io::Result<Completeness> {
    let mut budget = Budget::of(source);
    let mut input = Input { inner: Box::new(source.reader(0)), ahead: Vec::new(), is_past_end: false, error: None };
    loop {
        let found = one(&mut input, &mut budget);
        if let Some(error) = input.error.take() {
            return Err(error);
        }
        if found != Completeness::Whole {
            return Ok(found);
        }
        if has_padding {
            input.skip_zeros()?;
        }
        let next = input.peek()?;
        if next.is_empty() {
            return Ok(Completeness::Whole);
        }
        if !is_start(next) {
            return Ok(Completeness::Unknown);
        }
    }
}

/// The input of a decoder. It keeps errors of reading, because decoders wrap them into their own.
pub(crate) struct Input<'a> {
    inner: Box<dyn BufRead + 'a>,
    /// Bytes that have been read but not consumed.
    ahead: Vec<u8>,
    /// Whether the decoder has asked for more bytes than there are.
    pub(crate) is_past_end: bool,
    error: Option<io::Error>,
}

impl Input<'_> {
    fn skip_zeros(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.fill_buf()?;
            let zeros = buffer.iter().take_while(|byte| **byte == 0).count();
            let is_end = zeros == 0;
            self.consume(zeros);
            if is_end {
                return Ok(());
            }
        }
    }

    /// Returns the next bytes without consuming them.
    fn peek(&mut self) -> io::Result<&[u8]> {
        let missing = MARK_BYTES.saturating_sub(self.ahead.len());
        self.inner.by_ref().take(missing as u64).read_to_end(&mut self.ahead)?;
        Ok(&self.ahead)
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if !self.ahead.is_empty() {
            return Ok(&self.ahead);
        }
        match self.inner.fill_buf() {
            Ok(buffer) => {
                self.is_past_end |= buffer.is_empty();
                Ok(buffer)
            }
            Err(error) => {
                let shown = io::Error::new(error.kind(), "the file cannot be read");
                self.error = Some(error);
                Err(shown)
            }
        }
    }

    fn consume(&mut self, count: usize) {
        if self.ahead.is_empty() {
            self.inner.consume(count);
        } else {
            self.ahead.drain(..count);
        }
    }
}

/// The bytes to which a file may unpack. A few bytes may unpack to terabytes, which takes hours.
pub(crate) struct Budget(u64);

impl Budget {
    /// Returns the budget of a file: enough for a large checkpoint of zeros, or a multiple of the file's size.
    pub(crate) fn of(source: &Source) -> Self {
        Self(source.bytes.saturating_mul(MOST_TIMES).max(ALWAYS_UNPACKED))
    }

    /// Whether `bytes` more are within the budget. Subtracts them.
    pub(crate) fn has(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes as u64);
        self.0 = left.unwrap_or_default();
        left.is_some()
    }
}

/// The reason why a decoder was not read to its end.
pub(crate) enum Undrained {
    /// The decoder's error.
    Failed(io::Error),
    /// The file unpacks to more than it may.
    TooMuch,
}

impl From<Undrained> for Completeness {
    fn from(undrained: Undrained) -> Self {
        match undrained {
            Undrained::Failed(_) => Self::Torn,
            Undrained::TooMuch => Self::Unjudged,
        }
    }
}

/// Reads a decoder to its end.
pub(crate) fn drain(mut decoder: impl Read, budget: &mut Budget) -> Result<(), Undrained> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match decoder.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) if budget.has(count) => {}
            Ok(_) => return Err(Undrained::TooMuch),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Undrained::Failed(error)),
        }
    }
}

/// Judges a file by whether its decoder can be read to its end.
pub(crate) fn drained(decoder: impl Read, budget: &mut Budget) -> Completeness {
    drain(decoder, budget).map_or_else(Completeness::from, |()| Completeness::Whole)
}

/// Whether a member with this mark begins so, or is cut off within its mark.
pub(crate) fn begins(start: &[u8], mark: &[u8]) -> bool {
    start.starts_with(mark) || mark.starts_with(start)
}
