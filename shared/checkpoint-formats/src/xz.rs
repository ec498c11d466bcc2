//! Xz: each block has a checksum, and an index and a footer end each stream
//! (<https://tukaani.org/xz/xz-file-format.txt>, section 2.1).

use std::io::{self, ErrorKind};

use lzma_rust2::XzReader;

use crate::Completeness;
use crate::members::{self, Undrained};
use crate::source::Source;

pub(crate) const MAGIC: &[u8] = b"\xfd7zXZ\0";
/// The memory for the dictionary of `xz -9`, 64 MiB, and some more.
const MAX_MEMORY_KB: u32 = 80 * 1024;

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    let is_start = |start: &[u8]| members::begins(start, MAGIC);
    members::completeness(source, false, is_start, |input, budget| {
        match members::drain(XzReader::new_mem_limit(input, false, MAX_MEMORY_KB), budget) {
            Ok(()) => Completeness::Whole,
            // The dictionary is larger, or the decoder does not have the filter.
            Err(Undrained::Failed(error))
                if matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::Unsupported) =>
            {
                Completeness::Unknown
            }
            Err(undrained) => undrained.into(),
        }
    })
}
