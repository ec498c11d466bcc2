//! HDF5: the superblock says where the file ends
//! (<https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html>, "Disk Format: Level 0A").

use std::fs::File;
use std::io;

use super::{Completeness, number, read_at};

/// Up to the end-of-file address in every version, with 8-byte addresses.
const SUPERBLOCK_BYTES: usize = 64;

pub(super) fn completeness(file: &mut File, bytes: u64) -> io::Result<Completeness> {
    let superblock = read_at(file, 0, SUPERBLOCK_BYTES)?;
    if superblock.len() < SUPERBLOCK_BYTES {
        return Ok(Completeness::Torn);
    }
    // Where the size of addresses stands, and where the end-of-file address does: after the base address and one more.
    let (size_at, end_at) = match superblock[8] {
        0 => (13, 24 + 16),
        1 => (13, 28 + 16),
        2 | 3 => (9, 12 + 16),
        _ => return Ok(Completeness::Unknown),
    };
    if superblock[size_at] != 8 {
        return Ok(Completeness::Unknown);
    }
    let end = number(&superblock[end_at..end_at + 8]);
    // The library refuses a file that is shorter. One that was not closed has a superblock without an end.
    Ok((end != 0 && end != u64::MAX && bytes >= end).into())
}
