//! MATLAB's files of version 5: elements that state their lengths, and no mark of the end
//! (<https://www.mathworks.com/help/pdf_doc/matlab/matfile_format.pdf>, "Level 5 MAT-File Format").

use std::io;

use crate::Completeness;
use crate::source::Source;
use crate::walk::{self, Stop};

const HEADER_BYTES: u64 = 128;
/// Types of elements that stand for themselves: an array, and a compressed one.
const ARRAY: u64 = 14;
const COMPRESSED: u64 = 15;

/// Whether a file begins with such a header, written by a little-endian machine.
pub(crate) fn has_header(start: &[u8]) -> bool {
    start.starts_with(b"MATLAB 5.0 MAT-file") && start.get(124..128) == Some(b"\x00\x01IM".as_slice())
}

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    let found = walk::judge(source, HEADER_BYTES, |mut walk| {
        while !walk.is_at_end() {
            let (kind, length) = (walk.little(4)?, walk.little(4)?);
            match kind {
                ARRAY | COMPRESSED => walk.skip(length)?,
                // Zeros in place of an element.
                0 => return Err(Stop::Torn),
                _ => return Err(Stop::Unknown),
            }
        }
        Ok(())
    })?;
    // More variables may have followed: nothing says how many there are.
    Ok(if found == Completeness::Whole { Completeness::Unknown } else { found })
}
