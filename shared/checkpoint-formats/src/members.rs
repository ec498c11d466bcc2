//! Compressed files: one member after the other, each with an end of its own.

use std::io::{self, BufRead, Read};

use crate::Completeness;
use crate::source::Source;

/// The longest mark of a member.
const MARK_BYTES: usize = 6;

/// Judges members until one is not whole. A member after the first one begins as `is_start` says of its first bytes, which
/// may be cut off. Other bytes after a member are no part of the format: some programs refuse them, others pass over them.
/// So it is with zeros, unless the programs of a format agree to take them for padding, as `has_padding` says.
pub(crate) fn completeness(
    source: &mut Source,
    has_padding: bool,
    is_start: impl Fn(&[u8]) -> bool,
    one: impl Fn(&mut Input<'_>) -> Completeness,
) -> io::Result<Completeness> {
    let mut input = Input { inner: Box::new(source.reader(0)), ahead: Vec::new(), is_past_end: false, error: None };
    loop {
        let found = one(&mut input);
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

/// Reads a decoder to its end.
pub(crate) fn drain(mut decoder: impl Read) -> io::Result<()> {
    io::copy(&mut decoder, &mut io::sink()).map(drop)
}

/// Whether a member with this mark begins so, or begins so and is cut off in its mark.
pub(crate) fn begins(start: &[u8], mark: &[u8]) -> bool {
    start.starts_with(mark) || mark.starts_with(start)
}
