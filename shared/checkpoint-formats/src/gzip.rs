//! Gzip: each member ends with the checksum and length of its content
//! (<https://www.rfc-editor.org/rfc/rfc1952>, section 2.3).

use std::io;

use flate2::bufread::GzDecoder;

use crate::Completeness;
use crate::members;
use crate::source::Source;

pub(crate) const MAGIC: &[u8] = b"\x1f\x8b\x08";

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    let is_start = |start: &[u8]| members::begins(start, &MAGIC[..2]);
    // Both Python and `gzip` skip zeros after a member.
    members::completeness(source, true, is_start, |input, budget| members::drained(GzDecoder::new(input), budget))
}
