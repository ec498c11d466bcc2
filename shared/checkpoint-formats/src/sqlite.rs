//! SQLite: the header states the size in pages. A hot journal or a write-ahead log in the same folder completes the
//! database (<https://www.sqlite.org/fileformat2.html>, sections 1.3, 3 and 4).

mod journal;
mod log;

use std::collections::HashSet;
use std::io;
use std::path::Path;

use crate::source::{Source, big_endian};
use crate::{Completeness, Open};

/// The first bytes of a database.
pub const MAGIC: &[u8] = b"SQLite format 3\0";
const HEADER_BYTES: u64 = 100;
/// A byte of the page that holds locks and is never written (section 1.4).
const LOCK_AT: u64 = 1 << 30;

/// The bytes that a kernel writes back at once.
const FILE_PAGE_BYTES: u64 = 4096;

/// The database after SQLite has opened it with the file next to it.
struct Restored {
    page_bytes: u64,
    /// The number of its pages.
    pages: u64,
    /// The pages in the file next to it, as far as they are needed: the first ones, and those that the database lacks.
    beside: HashSet<u64>,
    /// Whether the file next to it has everything that it states.
    is_complete: bool,
}

impl Restored {
    /// Whether a page next to a database of `bytes` bytes is needed here.
    fn is_needed(page: u64, page_bytes: u64, bytes: u64) -> bool {
        page <= first_pages(page_bytes) || page > bytes / page_bytes
    }

    fn completeness(&self, source: &mut Source) -> io::Result<Completeness> {
        let has_first = source.read_at(0, MAGIC.len() as u64)? == MAGIC
            || (1..=first_pages(self.page_bytes).min(self.pages)).all(|page| self.beside.contains(&page));
        let lock = LOCK_AT / self.page_bytes + 1;
        // The search is short: it ends at the first page that is not in the file next to it.
        let mut missing = source.bytes / self.page_bytes + 1..=self.pages;
        if !has_first || !missing.all(|page| page == lock || self.beside.contains(&page)) {
            return Ok(Completeness::Torn);
        }
        Ok(if self.is_complete { Completeness::Whole } else { Completeness::Unknown })
    }
}

/// Returns how many of the database's pages are lost with the file's first page.
fn first_pages(page_bytes: u64) -> u64 {
    FILE_PAGE_BYTES.div_ceil(page_bytes)
}

pub(crate) fn completeness(source: &mut Source, path: &Path, open: Open<'_>) -> io::Result<Completeness> {
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        // A file that cannot be read counts as absent.
        open(Path::new(&name)).and_then(Source::new).ok()
    };
    // The journal comes first, because SQLite writes no log while a journal is hot.
    if let Some(mut journal) = beside("-journal") {
        match journal::restored(&mut journal, source.bytes)? {
            journal::Found::Nothing => {}
            journal::Found::Unclear => return Ok(Completeness::Unknown),
            journal::Found::Hot(restored) => return restored.completeness(source),
        }
    }
    if let Some(mut log) = beside("-wal")
        && let Some(restored) = log::restored(&mut log, source.bytes)?
    {
        return restored.completeness(source);
    }
    alone(source)
}

/// Judges the database without a file next to it.
fn alone(source: &mut Source) -> io::Result<Completeness> {
    let header = source.read_at(0, HEADER_BYTES)?;
    if (header.len() as u64) < HEADER_BYTES || !header.starts_with(MAGIC) {
        return Ok(Completeness::Torn);
    }
    let Some(page) = page_bytes(match big_endian(&header[16..18]) {
        1 => 65_536,
        page => page,
    }) else {
        return Ok(Completeness::Torn);
    };
    let pages = big_endian(&header[28..32]);
    // The size is valid only if it was written for the current change counter.
    let is_valid = pages > 0 && header[24..28] == header[92..96];
    let is_whole =
        if is_valid { source.bytes >= pages * page } else { source.bytes >= page && source.bytes.is_multiple_of(page) };
    Ok(is_whole.into())
}

/// Returns the size of a page, if it is valid.
fn page_bytes(stated: u64) -> Option<u64> {
    ((512..=65_536).contains(&stated) && stated.is_power_of_two()).then_some(stated)
}
