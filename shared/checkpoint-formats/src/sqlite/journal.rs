//! SQLite's rollback journal: pages as they were before a transaction. SQLite restores them if the transaction did not
//! end (<https://www.sqlite.org/fileformat2.html#the_rollback_journal>; for a damaged journal, `pager_playback` in
//! <https://sqlite.org/src/file/src/pager.c>).

use std::collections::HashSet;
use std::io::{self, ErrorKind, Read};

use super::{Restored, page_bytes};
use crate::source::{Source, big_endian};

/// The first bytes. A journal that was rolled back or committed has zeros here, or is empty.
const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
const HEADER_BYTES: u64 = 28;
/// A number of records that means all records in the file. SQLite writes it if it does not wait for the disk.
const ALL: u64 = 0xffff_ffff;
/// The bytes of a record besides its page: the page's number before it, and a checksum after it.
const RECORD_BYTES: u64 = 8;
/// The distance of the bytes of a page that are part of the checksum, counted from its end.
const CHECKSUM_STEP: usize = 200;

/// The effect of a journal.
pub(super) enum Found {
    /// SQLite restores nothing.
    Nothing,
    /// The journal does not show what SQLite restores.
    Unclear,
    Hot(Restored),
}

/// The header of a part of a journal.
struct Header {
    records: u64,
    nonce: u32,
    /// The database's size before the transaction.
    pages: u64,
    sector_bytes: u64,
    page_bytes: u64,
}

/// Returns the effect of `journal` on a database of `database_bytes` bytes.
pub(super) fn restored(journal: &mut Source, database_bytes: u64) -> io::Result<Found> {
    if journal.read_at(0, MAGIC.len() as u64)? != MAGIC {
        return Ok(Found::Nothing);
    }
    // SQLite skips a header that is cut off, although its transaction may have begun to write.
    let Some(first) = header(journal, 0)? else { return Ok(Found::Unclear) };
    let end = journal.bytes.saturating_sub(MAGIC.len() as u64);
    // A transaction over several databases ends in this way. Yet another file states whether it was complete.
    if end >= first.sector_bytes && journal.read_at(end, MAGIC.len() as u64)? == MAGIC {
        return Ok(Found::Unclear);
    }
    let page_bytes = first.page_bytes;
    let (pages, sector_bytes) = (first.pages, first.sector_bytes);
    let mut found = Restored { page_bytes, pages, beside: HashSet::new(), is_complete: true };
    let mut at = 0;
    let mut next = Some(first);
    while let Some(header) = next {
        at += sector_bytes;
        let record_bytes = page_bytes + RECORD_BYTES;
        let records = match header.records {
            ALL => journal.bytes.saturating_sub(at).div_ceil(record_bytes),
            records => records,
        };
        if !put_back(journal, at, records, header.nonce, database_bytes, &mut found)? {
            // The transaction may have changed more pages of the database than these.
            found.is_complete = false;
            break;
        }
        at = (at + records * record_bytes).next_multiple_of(sector_bytes);
        next = self::header(journal, at)?;
    }
    Ok(Found::Hot(found))
}

fn header(journal: &mut Source, at: u64) -> io::Result<Option<Header>> {
    let header = journal.read_at(at, HEADER_BYTES)?;
    if (header.len() as u64) < HEADER_BYTES || !header.starts_with(&MAGIC) {
        return Ok(None);
    }
    let number = |at: usize| big_endian(&header[at..at + 4]);
    let sector_bytes = number(20);
    let is_sector = sector_bytes.is_power_of_two() && (32..=65_536).contains(&sector_bytes);
    // A header fills a sector.
    if !is_sector || at.saturating_add(sector_bytes) > journal.bytes {
        return Ok(None);
    }
    let nonce = u32::try_from(number(12)).unwrap_or_default();
    let header = |page_bytes| Header { records: number(8), nonce, pages: number(16), sector_bytes, page_bytes };
    Ok(page_bytes(number(24)).map(header))
}

/// Notes the pages of the next records from `at` on. Returns false if one of them is missing or wrong, because SQLite
/// stops there.
fn put_back(
    journal: &mut Source,
    at: u64,
    records: u64,
    nonce: u32,
    database_bytes: u64,
    found: &mut Restored,
) -> io::Result<bool> {
    let mut reader = journal.reader(at);
    // A page, and therefore a record, has little more than 64 KiB at most.
    let mut record = vec![0; usize::try_from(found.page_bytes + RECORD_BYTES).unwrap_or_default()];
    for _ in 0..records {
        match reader.read_exact(&mut record) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
        let (page, rest) = record.split_at(4);
        let (content, sum) = rest.split_at(rest.len() - 4);
        let page = big_endian(page);
        if page == 0 || big_endian(sum) != u64::from(checksum(content, nonce)) {
            return Ok(false);
        }
        if Restored::is_needed(page, found.page_bytes, database_bytes) {
            found.beside.insert(page);
        }
    }
    Ok(true)
}

fn checksum(content: &[u8], nonce: u32) -> u32 {
    // The checksum counts from the end, and never includes the first byte of the page.
    let bytes = content[1..].iter().rev().skip(CHECKSUM_STEP - 1).step_by(CHECKSUM_STEP);
    bytes.fold(nonce, |sum, byte| sum.wrapping_add(u32::from(*byte)))
}
