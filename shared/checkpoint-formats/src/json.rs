//! JSON: one value, and nothing after it but white space (<https://www.rfc-editor.org/rfc/rfc8259>, section 2), or in
//! `.jsonl` one value on each line (<https://jsonlines.org/>).

use std::io::{self, Read};

use serde::de::IgnoredAny;
use serde_json::Error;

use crate::Completeness;
use crate::source::{Reader, Source};

/// The longest text that is read.
const MAX_BYTES: u64 = 1 << 30;
/// The deepest nesting that is followed, because the parser stores one byte for each level.
const MAX_DEPTH: u64 = 1 << 20;

/// Judges a text that should be one value. If it is unfinished, only `must_be_json` makes it torn.
pub(crate) fn one_value(source: &mut Source, must_be_json: bool) -> io::Result<Completeness> {
    judge(source, must_be_json, |reader| serde_json::from_reader::<_, IgnoredAny>(reader).map(drop))
}

/// Judges a text that should be a sequence of values, the last one complete.
pub(crate) fn lines(source: &mut Source) -> io::Result<Completeness> {
    judge(source, true, |reader| {
        serde_json::Deserializer::from_reader(reader).into_iter::<IgnoredAny>().try_for_each(|value| value.map(drop))
    })
}

fn judge(
    source: &mut Source,
    must_be_json: bool,
    parse: impl FnOnce(&mut Watched<Reader<'_>>) -> Result<(), Error>,
) -> io::Result<Completeness> {
    let bytes = source.bytes;
    if bytes > MAX_BYTES {
        return Ok(Completeness::Unjudged);
    }
    let mut reader = Watched { inner: source.reader(0), count: 0, last: None, depth: 0 };
    match parse(&mut reader) {
        Ok(()) => Ok(Completeness::Whole),
        Err(_) if reader.depth > MAX_DEPTH => Ok(Completeness::Unjudged),
        Err(error) if error.is_io() => Err(error.into()),
        Err(_) if !must_be_json => Ok(Completeness::Unknown),
        // A number may be cut off at its point, which is an error of syntax. Zeros are pages that were never written.
        Err(error) if error.is_eof() || reader.count >= bytes || reader.last == Some(0) => Ok(Completeness::Torn),
        // Python's `json` writes NaN, and some files of that name hold one value per line.
        Err(_) => Ok(Completeness::Unknown),
    }
}

/// A reader that records how far a parser has read, and the last byte. It works because the parser asks for single
/// bytes.
struct Watched<R> {
    inner: R,
    count: u64,
    last: Option<u8>,
    /// The number of open brackets, including brackets in texts.
    depth: u64,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count += count as u64;
        self.last = buffer[..count].last().copied().or(self.last);
        for byte in &buffer[..count] {
            match byte {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        if self.depth > MAX_DEPTH {
            return Err(io::Error::other("too many brackets"));
        }
        Ok(count)
    }
}
