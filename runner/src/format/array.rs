//! Arrays and tables: `.npy` (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>) and Parquet
//! (<https://parquet.apache.org/docs/file-format/>).

use std::fs::File;
use std::io;

use super::{Completeness, has_hole, number, read_at};

/// The longest header of a `.npy` file that is read: NumPy itself warns of headers over 10 000 bytes.
const MAX_HEADER_BYTES: u64 = 64 * 1024;
/// Parquet's mark at both ends, and the length of what stands before the last one.
const PARQUET_END_BYTES: u64 = 8;

pub(super) fn npy(file: &mut File, bytes: u64) -> io::Result<Completeness> {
    let start = read_at(file, 0, 12)?;
    if start.len() < 12 {
        return Ok(Completeness::Torn);
    }
    let (length_at, length_bytes) = if start[6] == 1 { (8, 2) } else { (8, 4) };
    let header_bytes = number(&start[length_at..length_at + length_bytes]);
    let data_at = (length_at + length_bytes) as u64 + header_bytes;
    if bytes < data_at {
        return Ok(Completeness::Torn);
    }
    if header_bytes > MAX_HEADER_BYTES {
        return Ok(Completeness::Unknown);
    }
    let header = read_at(file, data_at - header_bytes, usize::try_from(header_bytes).unwrap_or(0))?;
    Ok(match data_bytes(&String::from_utf8_lossy(&header)) {
        Some(data) => (data_at.checked_add(data).is_some_and(|end| bytes >= end) && !has_hole(file, bytes)).into(),
        // Structured types and pickled objects.
        None => Completeness::Unknown,
    })
}

/// The size of the data that `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }` describes.
fn data_bytes(header: &str) -> Option<u64> {
    let kind = header.split_once("'descr': '")?.1.split_once('\'')?.0;
    let digits = kind.trim_start_matches(|c: char| !c.is_ascii_digit());
    let size: u64 = digits.parse().ok()?;
    let size = match kind.trim_start_matches(['<', '>', '|', '=']).chars().next()? {
        'O' => return None,
        // Characters of four bytes.
        'U' => size.checked_mul(4)?,
        _ => size,
    };
    let shape = header.split_once("'shape': (")?.1.split_once(')')?.0;
    let lengths = shape.split(',').map(str::trim).filter(|length| !length.is_empty());
    lengths.map(|length| length.parse::<u64>().ok()).try_fold(size, |bytes, length| bytes.checked_mul(length?))
}

pub(super) fn parquet(file: &mut File, bytes: u64) -> io::Result<Completeness> {
    let end = read_at(file, bytes.saturating_sub(PARQUET_END_BYTES), 8)?;
    let is_whole =
        bytes >= 4 + PARQUET_END_BYTES && end.ends_with(b"PAR1") && number(&end[..4]) <= bytes - 4 - PARQUET_END_BYTES;
    Ok(is_whole.into())
}
