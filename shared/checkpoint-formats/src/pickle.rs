//! Pickles: operations up to STOP (<https://github.com/python/cpython/blob/main/Lib/pickletools.py>; frames:
//! <https://peps.python.org/pep-3154/#framing>).

use std::io::{self, BufRead, Read};

use crate::Completeness;
use crate::source::{Reader, Source};

/// The pickled magic number that `torch.save` writes first if it does not use zip
/// (<https://github.com/pytorch/pytorch/blob/main/torch/serialization.py>, `_legacy_save`).
const TORCH: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";
/// The number of pickles before the tensors of such a file: magic number, version, system, object, keys.
const TORCH_PICKLES: u32 = 5;
/// The class that `joblib` pickles before an array, whose bytes are then between the operations
/// (<https://github.com/joblib/joblib/blob/main/joblib/numpy_pickle.py>).
const JOBLIB: &[u8] = b"NumpyArrayWrapper";
/// The longest argument that is searched for `joblib`'s class.
const NAME_BYTES: u64 = 64;
/// The offset up to which an invalid operation means another format with the same beginning. A later one means a lost
/// page.
const SURE_AT: u64 = 16;

/// The argument that follows an operation's byte.
enum Argument {
    /// The argument has this number of bytes.
    Bytes(u64),
    /// A length of this number of bytes, and then as many bytes as the length states.
    Counted(u64),
    /// The length of the following frame, which must exist.
    Frame,
    /// The argument is this number of lines.
    Lines(u32),
    /// There is no argument: the pickle ends.
    Stop,
    /// The byte is no operation of any protocol.
    Invalid,
}

/// Returns the argument of an operation, as `pickletools.opcodes` lists it.
fn argument(operation: u8) -> Argument {
    match operation {
        b'.' => Argument::Stop,
        b'(' | b')' | b'0' | b'1' | b'2' | b'N' | b'Q' | b'R' | b']' | b'}' => Argument::Bytes(0),
        b'a' | b'b' | b'd' | b'e' | b'l' | b'o' | b's' | b't' | b'u' => Argument::Bytes(0),
        0x81 | 0x85..=0x89 | 0x8f..=0x94 | 0x97 | 0x98 => Argument::Bytes(0),
        b'K' | b'h' | b'q' | 0x80 | 0x82 => Argument::Bytes(1),
        b'M' | 0x83 => Argument::Bytes(2),
        b'J' | b'j' | b'r' | 0x84 => Argument::Bytes(4),
        b'G' => Argument::Bytes(8),
        0x95 => Argument::Frame,
        b'U' | b'C' | 0x8a | 0x8c => Argument::Counted(1),
        b'T' | b'X' | b'B' | 0x8b => Argument::Counted(4),
        0x8d | 0x8e | 0x96 => Argument::Counted(8),
        b'I' | b'L' | b'F' | b'S' | b'V' | b'p' | b'g' | b'P' => Argument::Lines(1),
        b'c' | b'i' => Argument::Lines(2),
        _ => Argument::Invalid,
    }
}

/// Judges the pickles from `start` on. Without `has_protocol`, the first is of protocol 0 or 1, or no pickle.
pub(crate) fn completeness(source: &mut Source, start: u64, has_protocol: bool) -> io::Result<Completeness> {
    let is_torch = source.read_at(start, TORCH.len() as u64)? == TORCH;
    let has_hole = source.has_hole();
    let bytes = source.bytes;
    let mut walk =
        Walk { reader: source.reader(start), start, at: start, bytes, is_old: !has_protocol, is_joblib: false };
    let found = walk.pickle()?;
    if found != Completeness::Whole {
        return Ok(found);
    }
    if has_hole {
        return Ok(Completeness::Torn);
    }
    // Anything may follow a pickle; torch writes tensors there, without a length.
    let mut pickles = 1;
    while walk.reader.fill_buf()?.first() == Some(&0x80) && !(is_torch && pickles == TORCH_PICKLES) {
        if walk.pickle()? != Completeness::Whole {
            return Ok(if is_torch { Completeness::Torn } else { Completeness::Unknown });
        }
        pickles += 1;
    }
    if is_torch {
        return Ok(if pickles < TORCH_PICKLES { Completeness::Torn } else { Completeness::Unknown });
    }
    Ok(if walk.reader.fill_buf()?.is_empty() { Completeness::Whole } else { Completeness::Unknown })
}

/// A reader that goes from operation to operation.
struct Walk<'a> {
    reader: Reader<'a>,
    start: u64,
    at: u64,
    /// The file's length.
    bytes: u64,
    /// Whether the protocol is 0 or 1, which have no operations from 0x80 on, and none for bytes.
    is_old: bool,
    is_joblib: bool,
}

impl Walk<'_> {
    /// Reads one pickle up to its STOP.
    fn pickle(&mut self) -> io::Result<Completeness> {
        let mut frame_end = 0;
        loop {
            let Some(operation) = self.number(1)?.and_then(|number| u8::try_from(number).ok()) else {
                return Ok(self.broken());
            };
            if self.is_old && (operation >= 0x80 || matches!(operation, b'B' | b'C')) {
                return Ok(Completeness::Unknown);
            }
            let skipped = match argument(operation) {
                Argument::Stop => return Ok(if frame_end > self.bytes { self.broken() } else { Completeness::Whole }),
                Argument::Invalid => return Ok(self.invalid()),
                Argument::Bytes(count) => Some(count),
                Argument::Counted(size) => self.number(size)?,
                Argument::Frame => {
                    let length = self.number(8)?;
                    frame_end = length.map_or(u64::MAX, |length| self.at.saturating_add(length));
                    length.map(|_| 0)
                }
                Argument::Lines(count) => self.lines(count)?,
            };
            // An argument must not reach beyond the end.
            let end = skipped.and_then(|count| self.at.checked_add(count)).filter(|end| *end <= self.bytes);
            let Some(end) = end else { return Ok(self.broken()) };
            self.skip(end - self.at)?;
        }
    }

    /// Judges a file that ends too early. After an array of `joblib`, its bytes may have been read as operations.
    fn broken(&self) -> Completeness {
        if self.is_joblib { Completeness::Unknown } else { Completeness::Torn }
    }

    fn invalid(&self) -> Completeness {
        if self.is_old || self.at - self.start <= SURE_AT { Completeness::Unknown } else { self.broken() }
    }

    /// Skips `count` lines; `None` if one has no end. Their content is only searched for `joblib`'s class.
    fn lines(&mut self, count: u32) -> io::Result<Option<u64>> {
        for _ in 0..count {
            self.is_joblib |= self.reader.fill_buf()?.starts_with(JOBLIB);
            loop {
                let buffer = self.reader.fill_buf()?;
                if buffer.is_empty() {
                    return Ok(None);
                }
                let end = buffer.iter().position(|byte| *byte == b'\n');
                let used = end.map_or(buffer.len(), |end| end + 1);
                self.reader.consume(used);
                self.at += used as u64;
                if end.is_some() {
                    break;
                }
            }
        }
        Ok(Some(0))
    }

    /// Skips `count` bytes, which must exist.
    fn skip(&mut self, count: u64) -> io::Result<()> {
        if count <= NAME_BYTES {
            let mut argument = Vec::new();
            self.reader.by_ref().take(count).read_to_end(&mut argument)?;
            self.is_joblib |= argument.starts_with(JOBLIB);
        } else {
            self.reader.seek_relative(i64::try_from(count).unwrap_or(i64::MAX))?;
        }
        self.at += count;
        Ok(())
    }

    /// Reads a number of `size` bytes, up to eight; `None` at the end of the file.
    fn number(&mut self, size: u64) -> io::Result<Option<u64>> {
        let mut number = 0;
        for place in 0..size {
            let Some(byte) = self.reader.fill_buf()?.first().copied() else { return Ok(None) };
            self.reader.consume(1);
            self.at += 1;
            number |= u64::from(byte) << (8 * place);
        }
        Ok(Some(number))
    }
}
