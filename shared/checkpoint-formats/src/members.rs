//! Compressed files: one member after the other, each with an end of its own.

use std::io::{self, BufRead, Read};

use crate::Completeness;
use crate::source::Source;

/// The longest mark of a member.
const MARK_BYTES: usize = 6;
const BUFFER_BYTES: usize = 64 * 1024;
/// What every file may unpack to: a second or two of a decoder's time.
const ALWAYS_UNPACKED: u64 = if cfg!(test) { 16 << 20 } else { 1 << 30 };
/// How many times its size a file may unpack to. Weights are packed to a third at best.
const MOST_TIMES: u64 = 16;

/// Judges members until one is not whole. A member after the first one begins as `is_start` says of its first bytes, which
/// may be cut off. Other bytes after a member are no part of the format: some programs refuse them, others pass over them.
/// So it is with zeros, unless the programs of a format agree to take them for padding, as `has_padding` says.
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

/// What a decoder reads. It keeps errors of reading, which decoders wrap into their own.
pub(crate) struct Input<'a> {
    inner: Box<dyn BufRead + 'a>,
    /// Read already, and not yet consumed.
    ahead: Vec<u8>,
    /// Whether more was asked for than there is.
    pub(crate) is_past_end: bool,
    error: Option<io::Error>,
}

impl Input<'_> {
    /// Passes over zeros.
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

    /// The next bytes, which stay unread.
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

/// Bytes that a file may unpack to. A few bytes may stand for terabytes, which take hours.
pub(crate) struct Budget(u64);

impl Budget {
    /// Of a file: what a large checkpoint of zeros has, or some times as much as it takes up.
    pub(crate) fn of(source: &Source) -> Self {
        Self(source.bytes.saturating_mul(MOST_TIMES).max(ALWAYS_UNPACKED))
    }

    /// Whether so many more are within it.
    pub(crate) fn has(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes as u64);
        self.0 = left.unwrap_or_default();
        left.is_some()
    }
}

/// Why a decoder was not read to its end.
pub(crate) enum Undrained {
    /// What it says.
    Failed(io::Error),
    /// There is more than a file may unpack to.
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

/// What it says of a file that the decoder has read to its end.
pub(crate) fn drained(decoder: impl Read, budget: &mut Budget) -> Completeness {
    drain(decoder, budget).map_or_else(Completeness::from, |()| Completeness::Whole)
}

/// Whether a member with this mark begins so, or begins so and is cut off in its mark.
pub(crate) fn begins(start: &[u8], mark: &[u8]) -> bool {
    start.starts_with(mark) || mark.starts_with(start)
}
