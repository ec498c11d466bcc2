//! Parquet: the same mark at both ends, and before the last one the length of the footer
//! (<https://parquet.apache.org/docs/file-format/>; `PARE` marks an encrypted footer,
//! <https://parquet.apache.org/docs/file-format/data-pages/encryption/>).

use std::io;

use crate::Completeness;
use crate::source::{Source, little_endian};

const MAGIC_BYTES: u64 = 4;
/// The footer's length and the mark after it.
const END_BYTES: u64 = 8;

pub(crate) fn has_magic(start: &[u8]) -> bool {
    start.starts_with(b"PAR1") || start.starts_with(b"PARE")
}

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    let Some(most) = source.bytes.checked_sub(MAGIC_BYTES + END_BYTES) else { return Ok(Completeness::Torn) };
    let start = source.read_at(0, MAGIC_BYTES)?;
    let end = source.read_at(source.bytes - END_BYTES, END_BYTES)?;
    let footer = little_endian(end.get(..4).unwrap_or_default());
    Ok((end.get(4..) == Some(start.as_slice()) && footer > 0 && footer <= most).into())
}
