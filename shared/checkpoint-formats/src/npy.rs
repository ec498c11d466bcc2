//! NumPy's arrays: the header states the type and the shape
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).

use std::io;

use crate::Completeness;
use crate::pickle;
use crate::source::{Source, little_endian};

/// The longest header that is read. By default NumPy itself refuses headers over 10 000 bytes.
const MAX_HEADER_BYTES: u64 = 64 * 1024;

/// The form in which the data are stored.
enum Data {
    /// The data have this number of bytes.
    Bytes(u64),
    /// The data are one pickle.
    Pickle,
    /// The data have a structured type, or a type that is not known here.
    Other,
}

pub(crate) fn completeness(source: &mut Source) -> io::Result<Completeness> {
    let start = source.read_at(0, 12)?;
    let (header_at, length) = match start.get(6) {
        Some(1) => (10, start.get(8..10)),
        Some(2 | 3) => (12, start.get(8..12)),
        Some(_) => return Ok(Completeness::Unknown),
        None => return Ok(Completeness::Torn),
    };
    let Some(header) = length.map(little_endian) else { return Ok(Completeness::Torn) };
    let data_at = header_at + header;
    if source.bytes < data_at {
        return Ok(Completeness::Torn);
    }
    if header > MAX_HEADER_BYTES {
        return Ok(Completeness::Unknown);
    }
    let header = source.read_at(header_at, header)?;
    Ok(match data(&String::from_utf8_lossy(&header)) {
        // Several arrays may follow each other in one file.
        Data::Bytes(count) => {
            (data_at.checked_add(count).is_some_and(|end| source.bytes >= end) && !source.has_hole()).into()
        }
        Data::Pickle => pickle::completeness(source, data_at, true)?,
        Data::Other => Completeness::Unknown,
    })
}

/// Returns the data that a header such as `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }` describes.
fn data(header: &str) -> Data {
    let part = |start: &str, end: char| Some(header.split_once(start)?.1.split_once(end)?.0);
    let Some(kind) = part("'descr': '", '\'') else { return Data::Other };
    let kind = kind.trim_start_matches(['<', '>', '|', '=']);
    if kind.starts_with('O') {
        return Data::Pickle;
    }
    let size = || {
        // Times have a unit after their size: `M8[ns]`.
        let digits = kind.get(1..)?.split('[').next()?;
        // A character takes four bytes.
        let unit = if kind.starts_with('U') { 4 } else { 1 };
        let shape = part("'shape': (", ')')?;
        let lengths = shape.split(',').map(str::trim).filter(|length| !length.is_empty());
        let item = digits.parse::<u64>().ok()?.checked_mul(unit)?;
        lengths.map(|length| length.parse::<u64>().ok()).try_fold(item, |bytes, length| bytes.checked_mul(length?))
    };
    size().map_or(Data::Other, Data::Bytes)
}
