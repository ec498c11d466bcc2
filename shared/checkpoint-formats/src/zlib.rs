//! Zlib, which `joblib` writes with compression: the checksum of the content is at the end
//! (<https://www.rfc-editor.org/rfc/rfc1950>, section 2.2).

use std::io;

use flate2::bufread::ZlibDecoder;

use crate::Completeness;
use crate::members;
use crate::source::Source;

/// Whether these are the two bytes of a header: deflate with a window of 32 KiB, no dictionary, and a right check. No
/// pickle begins with them.
pub(crate) fn is_header(start: &[u8]) -> bool {
    matches!(start, [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..])
}

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    members::completeness(source, false, |_| false, |input, budget| members::drained(ZlibDecoder::new(input), budget))
}
