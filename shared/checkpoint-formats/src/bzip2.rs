//! Bzip2: each stream ends with a mark and the checksum of its blocks
//! (<https://gitlab.com/bzip2/bzip2/-/blob/master/decompress.c>; <https://sourceware.org/bzip2/manual/manual.html>).

use std::io;

use ::bzip2::bufread::BzDecoder;

use crate::Completeness;
use crate::members;
use crate::source::Source;

/// The first bytes of a stream. A digit for the size of blocks follows.
const MAGIC: &[u8] = b"BZh";
/// The mark of a block, and the mark of the end of a stream without blocks.
const BLOCK: &[u8] = b"\x31\x41\x59\x26\x53\x59";
const END: &[u8] = b"\x17\x72\x45\x38\x50\x90";

/// Whether a file begins with a stream and its first block.
pub(crate) fn has_magic(start: &[u8]) -> bool {
    let Some([b'1'..=b'9', first @ ..]) = start.strip_prefix(MAGIC) else { return false };
    first.starts_with(BLOCK) || first.starts_with(END)
}

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    let is_start = |start: &[u8]| members::begins(start, MAGIC);
    members::completeness(source, false, is_start, |input, budget| members::drained(BzDecoder::new(input), budget))
}
