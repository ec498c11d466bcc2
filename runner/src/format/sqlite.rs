//! SQLite: the header has the size in pages; a journal or a write-ahead log beside the file completes it
//! (<https://www.sqlite.org/fileformat2.html>, sections 1.3 and 3).

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::{Completeness, read_at};

const HEADER_BYTES: usize = 100;

pub(super) fn completeness(file: &mut File, bytes: u64, path: &Path) -> io::Result<Completeness> {
    let header = read_at(file, 0, HEADER_BYTES)?;
    if header.len() < HEADER_BYTES {
        return Ok(Completeness::Torn);
    }
    let big_endian = |at: usize| header[at..at + 4].iter().fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    let page = match u64::from(header[16]) << 8 | u64::from(header[17]) {
        1 => 65_536,
        page => page,
    };
    if !page.is_power_of_two() || page < 512 {
        return Ok(Completeness::Torn);
    }
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        fs::metadata(name).is_ok_and(|found| found.len() > 0)
    };
    // SQLite rolls the journal back, or the log forward, when it opens the file.
    if beside("-journal") || beside("-wal") {
        return Ok((bytes >= page).into());
    }
    // The size is valid only where the change counter is that for which it was written.
    let is_valid = big_endian(24) == big_endian(92) && big_endian(28) > 0;
    let is_whole = if is_valid { bytes >= big_endian(28) * page } else { bytes >= page && bytes.is_multiple_of(page) };
    Ok(is_whole.into())
}
