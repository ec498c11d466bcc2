//! SQLite: the header has the size in pages; a hot journal or a write-ahead log in the same folder completes it
//! (<https://www.sqlite.org/fileformat2.html>, sections 1.3, 3 and 4.1).

use std::io;
use std::path::Path;

use crate::source::{Source, big_endian};
use crate::{Completeness, Open};

pub(crate) const MAGIC: &[u8] = b"SQLite format 3\0";
const HEADER_BYTES: u64 = 100;
/// A journal that was rolled back or committed has zeros here, or is empty.
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// The last bit says in which order its checksums are computed.
const LOG_MAGIC: u64 = 0x377f_0682;
/// A log without a frame after its header adds nothing.
const LOG_HEADER_BYTES: u64 = 32;

pub(crate) fn completeness(source: &mut Source<'_>, path: &Path, open: Open<'_>) -> io::Result<Completeness> {
    let header = source.read_at(0, HEADER_BYTES)?;
    if header.len() < 100 {
        return Ok(Completeness::Torn);
    }
    let page = match big_endian(&header[16..18]) {
        1 => 65_536,
        page => page,
    };
    if !page.is_power_of_two() || page < 512 {
        return Ok(Completeness::Torn);
    }
    // SQLite rolls the journal back, or the log forward, when it opens the file.
    if is_recoverable(path, open) {
        return Ok((source.bytes >= page).into());
    }
    let pages = big_endian(&header[28..32]);
    // The size is valid only where the change counter is that for which it was written.
    let is_valid = pages > 0 && header[24..28] == header[92..96];
    let is_whole =
        if is_valid { source.bytes >= pages * page } else { source.bytes >= page && source.bytes.is_multiple_of(page) };
    Ok(is_whole.into())
}

/// Whether a hot journal or a write-ahead log with content belongs to the file at `path`. One that cannot be read is not.
fn is_recoverable(path: &Path, open: Open<'_>) -> bool {
    let companion = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        let content = open(Path::new(&name)).ok()?;
        let mut companion = Source::new(&*content).ok()?;
        let start = companion.read_at(0, 8).ok()?;
        Some((companion.bytes, start))
    };
    let is_hot = companion("-journal").is_some_and(|(_, start)| start == JOURNAL_MAGIC);
    let has_frames = |(bytes, start): (u64, Vec<u8>)| {
        bytes > LOG_HEADER_BYTES && big_endian(start.get(..4).unwrap_or_default()) & !1 == LOG_MAGIC
    };
    is_hot || companion("-wal").is_some_and(has_frames)
}
