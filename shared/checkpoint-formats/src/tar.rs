//! Tar: members of a header and content in blocks, then blocks of zeros
//! (<https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html>, "ustar Interchange Format" and "pax Header
//! Block"; <https://www.gnu.org/software/tar/manual/html_node/Standard.html>).

use std::io::{self, Read};

use crate::Completeness;
use crate::source::{Source, big_endian};

pub(crate) const BLOCK: u64 = 512;
/// The longest extended header that is read for a member's size.
const MAX_EXTENDED_BYTES: u64 = 1 << 20;

/// Whether a file begins with a header: one with the mark of `ustar`, or in a file of that ending one with a right
/// checksum. A file of that ending which is shorter than a header counts too.
pub(crate) fn is_tar(start: &[u8], ending: &str) -> bool {
    let is_named = ending == "tar";
    if (start.len() as u64) < BLOCK {
        return is_named;
    }
    (is_named || start[257..].starts_with(b"ustar")) && has_checksum(start)
}

/// Whether the header's checksum is right: the sum of its bytes, with spaces in place of the checksum. Old programs
/// summed signed bytes.
fn has_checksum(header: &[u8]) -> bool {
    let Some(stated) = number(&header[148..156]).and_then(|stated| i64::try_from(stated).ok()) else { return false };
    let counted = || header.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { b' ' } else { *byte });
    counted().map(i64::from).sum::<i64>() == stated
        || counted().map(|byte| i64::from(byte.cast_signed())).sum::<i64>() == stated
}

/// Reads octal digits, or GNU's binary number after a first byte of 0x80.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let (high, low) = field.split_at(field.len().saturating_sub(8));
        let is_small = high.iter().enumerate().all(|(at, byte)| *byte == if at == 0 { 0x80 } else { 0 });
        return is_small.then(|| big_endian(low));
    }
    let text = std::str::from_utf8(field.split(|byte| *byte == 0).next()?).ok()?.trim();
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    let mut at = 0;
    // The size that an extended header states for the next member.
    let mut extended = None;
    let mut is_announced = false;
    loop {
        let header = source.read_at(at, BLOCK)?;
        if header.is_empty() && !is_announced {
            // Python takes this for the end. But every writer ends with zeros, so members may be missing.
            return Ok(Completeness::Unknown);
        }
        if (header.len() as u64) < BLOCK {
            return Ok(Completeness::Torn);
        }
        if header.iter().all(|byte| *byte == 0) {
            return if is_announced { Ok(Completeness::Torn) } else { only_zeros_follow(source, at) };
        }
        let kind = header[156];
        let (true, Some(size)) = (has_checksum(&header), number(&header[124..136])) else {
            return Ok(Completeness::Unknown);
        };
        is_announced = matches!(kind, b'x' | b'X' | b'g' | b'L' | b'K');
        let size = match kind {
            // GNU's sparse members have more headers.
            b'S' => return Ok(Completeness::Unknown),
            // Links, devices and folders have no content, whatever the header states.
            b'1'..=b'6' => 0,
            _ if is_announced => size,
            _ => extended.unwrap_or(size),
        };
        let content_at = at + BLOCK;
        let next = size.checked_next_multiple_of(BLOCK).and_then(|size| content_at.checked_add(size));
        let Some(next) = next.filter(|next| *next <= source.bytes) else { return Ok(Completeness::Torn) };
        extended = match kind {
            b'x' | b'X' => stated_size(&source.read_at(content_at, size.min(MAX_EXTENDED_BYTES))?),
            // A long name may be between an extended header and its member.
            b'g' | b'L' | b'K' => extended,
            _ => None,
        };
        at = next;
    }
}

/// Returns the size in the records of an extended header. Each record is `LENGTH KEY=VALUE` and a line end, and its
/// length includes all of that.
fn stated_size(mut records: &[u8]) -> Option<u64> {
    let mut size = None;
    loop {
        let digits = records.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let Some(length) = std::str::from_utf8(&records[..digits]).ok().and_then(|text| text.parse().ok()) else {
            return size;
        };
        let Some(record) = records.get(digits..length) else { return size };
        if let Some(value) = record.strip_prefix(b" size=") {
            size = std::str::from_utf8(value).ok().and_then(|text| text.trim().parse().ok());
        }
        records = &records[length..];
    }
}

/// Whether only zeros follow the first block of zeros. Otherwise a header before them was lost.
fn only_zeros_follow(source: &mut Source, at: u64) -> io::Result<Completeness> {
    let mut reader = source.reader(at);
    let mut buffer = [0; BLOCK as usize];
    loop {
        let count = reader.read(&mut buffer)?;
        if count == 0 {
            return Ok(Completeness::Whole);
        }
        if buffer[..count].iter().any(|byte| *byte != 0) {
            return Ok(Completeness::Unknown);
        }
    }
}
