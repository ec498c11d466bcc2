//! SQLite: the header has the size in pages; a hot journal or a write-ahead log in the same folder completes it
//! (<https://www.sqlite.org/fileformat2.html>, sections 1.3, 3 and 4).

mod journal;
mod log;

use std::collections::HashSet;
use std::io;
use std::path::Path;

use crate::source::{Source, big_endian};
use crate::{Completeness, Open};

/// What a database begins with.
pub const MAGIC: &[u8] = b"SQLite format 3\0";
const HEADER_BYTES: u64 = 100;
/// The page that this byte is in holds locks, and is never written (section 1.4).
const LOCK_AT: u64 = 1 << 30;

/// What a kernel writes back at once.
const FILE_PAGE_BYTES: u64 = 4096;

/// What SQLite makes of a database when it opens it, by the file beside it.
struct Restored {
    page_bytes: u64,
    /// How many pages it has then.
    pages: u64,
    /// Which of them are in the file beside it, of the first ones and those that the database lacks.
    beside: HashSet<u64>,
    /// Whether the file beside it has all that it states.
    is_complete: bool,
}

impl Restored {
    /// Whether a page of the file beside a database of so many bytes is of use here.
    fn is_needed(page: u64, page_bytes: u64, bytes: u64) -> bool {
        page <= first_pages(page_bytes) || page > bytes / page_bytes
    }

    fn completeness(&self, source: &mut Source) -> io::Result<Completeness> {
        let has_first = source.read_at(0, MAGIC.len() as u64)? == MAGIC
            || (1..=first_pages(self.page_bytes).min(self.pages)).all(|page| self.beside.contains(&page));
        let lock = LOCK_AT / self.page_bytes + 1;
        // No more are missing than are beside it, or the first that is not there ends the search.
        let mut missing = source.bytes / self.page_bytes + 1..=self.pages;
        if !has_first || !missing.all(|page| page == lock || self.beside.contains(&page)) {
            return Ok(Completeness::Torn);
        }
        Ok(if self.is_complete { Completeness::Whole } else { Completeness::Unknown })
    }
}

/// How many of the database's pages are lost with the file's first page.
fn first_pages(page_bytes: u64) -> u64 {
    FILE_PAGE_BYTES.div_ceil(page_bytes)
}

pub(crate) fn completeness(source: &mut Source, path: &Path, open: Open<'_>) -> io::Result<Completeness> {
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        // One that cannot be read is none.
        open(Path::new(&name)).and_then(Source::new).ok()
    };
    // The journal comes first: SQLite writes no log while one is hot.
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

/// What the database says of itself.
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
    // The size is valid only where the change counter is that for which it was written.
    let is_valid = pages > 0 && header[24..28] == header[92..96];
    let is_whole =
        if is_valid { source.bytes >= pages * page } else { source.bytes >= page && source.bytes.is_multiple_of(page) };
    Ok(is_whole.into())
}

/// A size that pages can have.
fn page_bytes(stated: u64) -> Option<u64> {
    ((512..=65_536).contains(&stated) && stated.is_power_of_two()).then_some(stated)
}
