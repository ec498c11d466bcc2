//! Arrow's files, Feather among them: the same mark at both ends, and before the last one the length of the footer
//! (<https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format>; of the older Feather,
//! <https://github.com/wesm/feather/blob/master/doc/FORMAT.md>).

use std::io;

use crate::Completeness;
use crate::source::{Source, little_endian};

const MARK: &[u8] = b"ARROW1";
const OLD_MARK: &[u8] = b"FEA1";
const LENGTH_BYTES: u64 = 4;

/// The mark that a file begins with.
fn mark(start: &[u8]) -> Option<&'static [u8]> {
    [MARK, OLD_MARK].into_iter().find(|mark| start.starts_with(mark))
}

pub(crate) fn has_magic(start: &[u8]) -> bool {
    mark(start).is_some()
}

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    let Some(mark) = mark(&source.read_at(0, MARK.len() as u64)?) else { return Ok(Completeness::Unknown) };
    let end_bytes = mark.len() as u64 + LENGTH_BYTES;
    // The first mark is padded to eight bytes, but for the older one.
    let Some(most) = source.bytes.checked_sub(mark.len() as u64 + end_bytes) else { return Ok(Completeness::Torn) };
    let end = source.read_at(source.bytes - end_bytes, end_bytes)?;
    let (length, end_mark) = end.split_at(end.len().min(LENGTH_BYTES as usize));
    let footer = little_endian(length);
    Ok((end_mark == mark && footer > 0 && footer <= most && !source.has_hole()).into())
}
