//! HDF5: the superblock states where the file ends
//! (<https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html>, "Disk Format: Level 0A").

use std::io;

use crate::Completeness;
use crate::source::{Source, little_endian};

pub(crate) const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// The bytes of the superblock in every version, with addresses of eight bytes.
const SUPERBLOCK_BYTES: u64 = 64;
/// The shortest user block. The library searches for the signature at this offset and at each doubling of it.
const USER_BLOCK_BYTES: u64 = 512;
/// A flag of version 3.
const OPEN_FOR_WRITING: u8 = 1;
const OPEN_FOR_READERS_TOO: u8 = 4;

/// Returns the offset of the superblock in a file that begins with a user block.
pub(crate) fn behind_a_user_block(source: &mut Source) -> io::Result<Option<u64>> {
    let mut at = USER_BLOCK_BYTES;
    while at < source.bytes {
        if source.read_at(at, 8)? == SIGNATURE {
            return Ok(Some(at));
        }
        let Some(next) = at.checked_mul(2) else { break };
        at = next;
    }
    Ok(None)
}

/// Judges the file by the superblock at `at`.
pub(crate) fn completeness(source: &mut Source, at: u64) -> io::Result<Completeness> {
    let superblock = source.read_at(at, SUPERBLOCK_BYTES)?;
    let Some(version) = superblock.get(8).copied() else { return Ok(Completeness::Torn) };
    // The first offset is that of the size of addresses, the second that of the base address. The end's address is the
    // second one after the base.
    let (size_at, base_at) = match version {
        0 => (13, 24),
        1 => (13, 28),
        2 | 3 => (9, 12),
        _ => return Ok(Completeness::Unknown),
    };
    let size = match superblock.get(size_at) {
        Some(size @ (2 | 4 | 8)) => usize::from(*size),
        Some(_) => return Ok(Completeness::Unknown),
        None => return Ok(Completeness::Torn),
    };
    let end_at = base_at + 2 * size;
    let Some(end) = superblock.get(end_at..end_at + size) else { return Ok(Completeness::Torn) };
    // A file that was not closed may have no address there yet. The address is relative to the file's beginning, not to
    // the base.
    let has_end = end.iter().any(|byte| *byte != 0) && end.iter().any(|byte| *byte != 0xff);
    if !has_end || source.bytes < little_endian(end) {
        return Ok(Completeness::Torn);
    }
    if version < 2 {
        return Ok(Completeness::Whole);
    }
    let sum_at = end_at + 2 * size;
    let Some(sum) = superblock.get(sum_at..sum_at + 4) else { return Ok(Completeness::Torn) };
    if little_endian(sum) != u64::from(checksum(&superblock[..sum_at])) {
        return Ok(Completeness::Torn);
    }
    let flags = if version == 3 { superblock[11] } else { 0 };
    Ok(match flags & (OPEN_FOR_WRITING | OPEN_FOR_READERS_TOO) {
        0 => Completeness::Whole,
        // The library refuses the file until `h5clear` has cleared the flag.
        OPEN_FOR_WRITING => Completeness::Torn,
        // The library also refuses this file, except to readers while it is written.
        _ => Completeness::Unknown,
    })
}

/// Returns Jenkins' `lookup3`, `hashlittle` with an initial value of 0 (<https://burtleburtle.net/bob/c/lookup3.c>).
pub(crate) fn checksum(content: &[u8]) -> u32 {
    let word = |block: &[u8], at: usize| {
        let bytes = block.get(at..).unwrap_or_default();
        bytes.iter().take(4).rev().fold(0_u32, |number, byte| (number << 8) | u32::from(*byte))
    };
    // A superblock has at most 60 bytes before its checksum, so the length fits.
    let start = 0xdead_beef_u32.wrapping_add(u32::try_from(content.len()).unwrap_or(u32::MAX));
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = content;
    if rest.is_empty() {
        return c;
    }
    loop {
        a = a.wrapping_add(word(rest, 0));
        b = b.wrapping_add(word(rest, 4));
        c = c.wrapping_add(word(rest, 8));
        if rest.len() <= 12 {
            break;
        }
        // The three variables change their roles after each step. The original writes these steps out in `mix`.
        for bits in [4, 6, 8, 16, 19, 4] {
            a = a.wrapping_sub(c) ^ c.rotate_left(bits);
            c = c.wrapping_add(b);
            (a, b, c) = (b, c, a);
        }
        rest = &rest[12..];
    }
    // These are the steps of `final` in the original.
    for bits in [14, 11, 25, 16, 4, 14, 24] {
        c = (c ^ b).wrapping_sub(b.rotate_left(bits));
        (a, b, c) = (b, c, a);
    }
    b
}
