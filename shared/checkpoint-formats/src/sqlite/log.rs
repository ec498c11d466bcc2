//! SQLite's write-ahead log: pages as they are after the last transactions
//! (<https://www.sqlite.org/fileformat2.html#the_write_ahead_log>).

use std::collections::HashSet;
use std::io::{self, ErrorKind, Read};

use super::{Restored, page_bytes};
use crate::source::{Source, big_endian};

/// The first bytes, without the last bit, which selects the byte order of the checksums.
const MAGIC: u64 = 0x377f_0682;
const HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The bytes of a header, and of a frame's header, that are part of the checksum.
const SUMMED: usize = 24;
const FRAME_SUMMED: usize = 8;

/// The running checksum: each frame's continues the one before.
struct Checksum {
    is_big_endian: bool,
    sums: (u32, u32),
}

impl Checksum {
    fn add(&mut self, content: &[u8]) {
        let word = |bytes: &[u8]| {
            let bytes = <[u8; 4]>::try_from(bytes).unwrap_or_default();
            if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let (mut first, mut second) = self.sums;
        for words in content.chunks_exact(8) {
            first = first.wrapping_add(word(&words[..4])).wrapping_add(second);
            second = second.wrapping_add(word(&words[4..])).wrapping_add(first);
        }
        self.sums = (first, second);
    }

    /// Whether these eight bytes state the checksum.
    fn is(&self, stated: &[u8]) -> bool {
        big_endian(stated) == (u64::from(self.sums.0) << 32) | u64::from(self.sums.1)
    }
}

/// Returns the effect of `log` on a database of `database_bytes` bytes; `None` if the log has no complete transaction.
pub(super) fn restored(log: &mut Source, database_bytes: u64) -> io::Result<Option<Restored>> {
    let header = log.read_at(0, HEADER_BYTES)?;
    if (header.len() as u64) < HEADER_BYTES || big_endian(&header[..4]) & !1 != MAGIC {
        return Ok(None);
    }
    let Some(page_bytes) = page_bytes(big_endian(&header[8..12])) else { return Ok(None) };
    let mut checksum = Checksum { is_big_endian: header[3] & 1 == 1, sums: (0, 0) };
    checksum.add(&header[..SUMMED]);
    if !checksum.is(&header[SUMMED..]) {
        return Ok(None);
    }
    let mut found = None;
    let mut beside = HashSet::new();
    // These pages belong to a transaction that is not complete yet.
    let mut pending = Vec::new();
    let mut reader = log.reader(HEADER_BYTES);
    // A page, and therefore a frame, has little more than 64 KiB at most.
    let mut frame = vec![0; FRAME_HEADER_BYTES + usize::try_from(page_bytes).unwrap_or_default()];
    loop {
        match reader.read_exact(&mut frame) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
        let (start, content) = frame.split_at(FRAME_HEADER_BYTES);
        checksum.add(&start[..FRAME_SUMMED]);
        checksum.add(content);
        // Frames with another salt are older, because the log is rewritten from its beginning.
        if start[8..16] != header[16..24] || !checksum.is(&start[16..]) {
            break;
        }
        let page = big_endian(&start[..4]);
        if Restored::is_needed(page, page_bytes, database_bytes) {
            pending.push(page);
        }
        // The last frame of a transaction states the database's size after it; others state 0.
        let pages = big_endian(&start[4..8]);
        if pages > 0 {
            beside.extend(pending.drain(..));
            found = Some(pages);
        }
    }
    Ok(found.map(|pages| Restored { page_bytes, pages, beside, is_complete: true }))
}
