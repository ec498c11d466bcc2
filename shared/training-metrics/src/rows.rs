//! Files with a row on each line, which are read piece by piece. A line that is longer than a piece is passed over.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom};

use spotsweep_protocol::metric::Source;

use crate::logged::{Logged, Value};
use crate::part::{Found, PIECE_BYTES, Read as When};
use crate::sorted::Order;

/// So much of what is read is compared at each look.
const TAIL_BYTES: u64 = 256;
/// Lines by which a file is known that was written again.
const MOST_KNOWN: usize = 16_384;
/// Rows by which it is known where its columns have changed, and values of each.
const MOST_ROWS: usize = 4;
const MOST_VALUES: usize = 64;

/// How far a file of rows is read. Of the rows themselves, only the first few and the last one are kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    /// Bytes of lines that were there before the training, or are handed over.
    offset: u64,
    /// How many lines these are.
    lines: u64,
    /// The end of them: where it differs, the file was written again.
    tail: Vec<u8>,
    /// The hashes of the first lines.
    known: Vec<u64>,
    /// The first rows with values.
    head: Vec<Logged>,
    /// The last row.
    last: Option<Logged>,
    /// Whether the line at `offset` is too long, and passed over.
    within_line: bool,
    /// Whether one was passed over.
    has_passed_over: bool,
    /// The file at the first look during the training: who appends to it is the training.
    first: Option<First>,
    /// Whether the training has appended to the file, or lines of an attempt before are in it.
    is_own: bool,
    /// The order of the rows that were handed over last.
    order: Order,
}

/// A file at one look.
#[derive(Debug, Clone)]
struct First {
    /// Bytes of whole lines.
    bytes: u64,
    /// The hashes of these lines, of a file of one piece.
    lines: Vec<u64>,
}

/// What finds the rows in whole lines. The second argument is whether these are the first of the file.
pub(crate) type Parse<'a> = dyn FnMut(&str, bool) -> Vec<Logged> + 'a;

impl Rows {
    /// The next rows that are new. What lies there at the first look may be another program's file: it waits until the
    /// training appends to it, or has ended.
    pub(crate) fn read(
        &mut self,
        file: &mut (impl Read + Seek),
        when: When,
        parse: &mut Parse<'_>,
    ) -> io::Result<Found> {
        let bytes = file.seek(SeekFrom::End(0))?;
        let whole = whole_lines(file, bytes)?;
        let (mut changing, mut inserted) = (None, None);
        self.order = Order::Appended;
        if bytes < self.offset || self.is_rewritten(file)? {
            self.order = Order::AtOnce;
            match self.find_again(file, whole, parse)? {
                Again::Found(row) => changing = row,
                Again::Sorted(lines) => inserted = Some((Vec::new(), parse(&lines, false))),
                Again::NotYet => return Ok(Found::default()),
            }
        }
        if when == When::Before {
            self.rows(file, whole, u64::MAX, parse)?;
            self.is_own = self.lines > 0;
            return Ok(Found { logged: Vec::new(), has_more: self.offset < whole });
        }
        let first = match self.first.take() {
            Some(first) => first,
            None => First { bytes: whole, lines: lines_of(file, whole)? },
        };
        let first = self.first.insert(first);
        self.is_own |= whole > first.bytes;
        if !self.is_own && when == When::During {
            return Ok(Found::default());
        }
        // What is handed over for the first time may have been sorted since the first look.
        if self.offset == 0
            && self.order == Order::Appended
            && let Some([old, new]) = among(file, whole, &first.lines)?
        {
            self.pass_over(file, whole, u64::MAX, parse)?;
            inserted = Some((parse(&old, false), parse(&new, false)));
        }
        let end = if when == When::Last { bytes } else { whole };
        let mut logged = self.rows(file, end, u64::MAX, parse)?;
        if let Some((old, new)) = inserted {
            self.order = Order::Inserted(new.iter().chain(&logged).filter(|row| !row.values.is_empty()).count());
            logged = old.into_iter().chain(new).chain(logged).collect();
        }
        if let (Some(old), Some(new)) = (changing, logged.first_mut()) {
            new.values.retain(|value| old.step != new.step || !has(&old, value));
        }
        logged.retain(|row| !row.values.is_empty());
        if !self.is_own {
            self.order = Order::AtOnce;
            let values = logged.iter_mut().flat_map(|row| &mut row.values);
            values.for_each(|value| value.source = value.source.min(Source::Found));
        }
        Ok(Found { logged, has_more: self.offset < end })
    }

    /// The order of the rows that were handed over last.
    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// Whether a line was too long.
    pub(crate) fn has_passed_over(&self) -> bool {
        self.has_passed_over
    }

    /// Whether what was read is no longer what it was.
    fn is_rewritten(&self, file: &mut (impl Read + Seek)) -> io::Result<bool> {
        let start = self.offset - self.tail.len() as u64;
        Ok(read_at(file, start, self.tail.len() as u64)? != self.tail)
    }

    /// Goes on in a file that was written again, after the lines that are the same. Where none is, its columns may have
    /// changed: if its first rows have the values that they had, it goes on after as many lines as were read. All other
    /// rows are new. If others lie among all of the lines that were read, only these are new.
    fn find_again(&mut self, file: &mut (impl Read + Seek), whole: u64, parse: &mut Parse<'_>) -> io::Result<Again> {
        let before = std::mem::take(self);
        let (same, is_all) = before.same_lines(file, whole)?;
        let is_known = before.known.len() as u64 == before.lines && same < before.lines;
        if is_known && let Some([_, new]) = among(file, whole, &before.known)? {
            self.pass_over(file, whole, u64::MAX, parse)?;
            (self.first, self.is_own) = (before.first, before.is_own);
            return Ok(Again::Sorted(new));
        }
        let mut is_unfinished = is_all && same < before.lines;
        if same == before.known.len() as u64 {
            self.pass_over(file, whole, before.lines, parse)?;
            is_unfinished |= self.lines < before.lines;
        } else if same > 0 {
            self.pass_over(file, whole, same, parse)?;
        } else {
            self.pass_over(file, whole, before.lines, parse)?;
            if !before.head.iter().zip(&self.head).all(|(old, new)| has_all(new, old)) {
                *self = Self::default();
            } else {
                is_unfinished |= self.lines < before.lines;
            }
        }
        if is_unfinished {
            *self = before;
            return Ok(Again::NotYet);
        }
        (self.first, self.is_own) = (before.first, before.is_own);
        Ok(Again::Found(before.last.filter(|_| same + 1 == before.lines)))
    }

    /// How many of the first lines are what they were, and whether the file has no others.
    fn same_lines(&self, file: &mut (impl Read + Seek), whole: u64) -> io::Result<(u64, bool)> {
        let mut other = Self::default();
        let same = loop {
            let same = self.known.iter().zip(&other.known).take_while(|(one, other)| one == other).count();
            if same < other.known.len() || same == self.known.len() || other.offset >= whole {
                break same;
            }
            other.next(file, whole, u64::MAX)?;
        };
        Ok((same as u64, same as u64 == other.lines && other.offset >= whole))
    }

    /// Passes over so many lines before `end`. They are parsed: they may name the columns.
    fn pass_over(
        &mut self,
        file: &mut (impl Read + Seek),
        end: u64,
        lines: u64,
        parse: &mut Parse<'_>,
    ) -> io::Result<()> {
        while self.offset < end && self.lines < lines {
            self.rows(file, end, lines - self.lines, parse)?;
        }
        Ok(())
    }

    /// The rows of the next piece before `end`, of `most` lines at most.
    fn rows(
        &mut self,
        file: &mut (impl Read + Seek),
        end: u64,
        most: u64,
        parse: &mut Parse<'_>,
    ) -> io::Result<Vec<Logged>> {
        let is_first = self.offset == 0;
        let piece = self.next(file, end, most)?;
        let rows = parse(&String::from_utf8_lossy(&piece), is_first);
        let missing = MOST_ROWS.saturating_sub(self.head.len());
        self.head.extend(rows.iter().filter(|row| !row.values.is_empty()).take(missing).map(part));
        self.last = rows.last().map(part).or(self.last.take());
        Ok(rows)
    }

    /// The next piece before `end`, of whole lines: of `most` at most.
    fn next(&mut self, file: &mut (impl Read + Seek), end: u64, most: u64) -> io::Result<Vec<u8>> {
        let mut piece = read_at(file, self.offset, PIECE_BYTES.min(end.saturating_sub(self.offset)))?;
        let is_last = self.offset + piece.len() as u64 >= end;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let ends = || piece.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).take(most);
        let (count, cut) = ends().fold((0, None), |(count, _), end| (count + 1, Some(end)));
        let is_whole = is_last && (count as usize) < most;
        let length = if is_whole { piece.len() } else { cut.unwrap_or(piece.len()) };
        // A line without an end, at the end of the file or longer than a piece.
        let is_open = length > 0 && piece[length - 1] != b'\n';
        piece.truncate(length);
        let missing = MOST_KNOWN.saturating_sub(self.known.len());
        self.known.extend(piece.split_inclusive(|byte| *byte == b'\n').take(missing).map(hash));
        self.offset += length as u64;
        self.lines += count + u64::from(is_open && is_last);
        self.tail.extend_from_slice(&piece[length.saturating_sub(TAIL_BYTES as usize)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES as usize));
        let is_within = std::mem::replace(&mut self.within_line, is_open && !is_last);
        if is_within {
            let rest = piece.iter().position(|byte| *byte == b'\n').map_or(piece.len(), |end| end + 1);
            piece.drain(..rest);
        }
        if self.within_line {
            self.has_passed_over = true;
            piece.clear();
        }
        Ok(piece)
    }
}

/// Where a file that was written again goes on.
enum Again {
    /// After the lines that are known. The first line after them was this row, if it was the last one.
    Found(Option<Logged>),
    /// These lines lie among all that are known.
    Sorted(String),
    /// It is being written: all that it has is known, and it had more.
    NotYet,
}

/// The hashes of the lines of a file of one piece; of a longer one none.
fn lines_of(file: &mut (impl Read + Seek), whole: u64) -> io::Result<Vec<u64>> {
    let bytes = if whole <= PIECE_BYTES { read_at(file, 0, whole)? } else { Vec::new() };
    Ok(bytes.split_inclusive(|byte| *byte == b'\n').map(hash).collect())
}

/// The lines that are known, and the others, of a file that has all of the known ones, and others among them.
fn among(file: &mut (impl Read + Seek), whole: u64, known: &[u64]) -> io::Result<Option<[String; 2]>> {
    if known.is_empty() || whole > PIECE_BYTES {
        return Ok(None);
    }
    let mut missing = HashMap::<u64, usize>::new();
    known.iter().for_each(|line| *missing.entry(*line).or_default() += 1);
    let (mut old, mut new, mut are_among) = (Vec::new(), Vec::new(), false);
    for line in read_at(file, 0, whole)?.split_inclusive(|byte| *byte == b'\n') {
        match missing.get_mut(&hash(line)).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                are_among |= !new.is_empty();
                old.extend_from_slice(line);
            }
            None => new.extend_from_slice(line),
        }
    }
    let has_all = missing.values().all(|count| *count == 0);
    let texts = || [old, new].map(|lines| String::from_utf8_lossy(&lines).into_owned());
    Ok((has_all && are_among).then(texts))
}

fn hash(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// The part of a row by which it is known.
fn part(row: &Logged) -> Logged {
    let values = row.values.iter().take(MOST_VALUES).cloned().collect();
    Logged { values, ..*row }
}

fn has(row: &Logged, wanted: &Value) -> bool {
    // NaN is not equal to itself.
    let is_equal = |value: &Value| value.name == wanted.name && value.value.to_bits() == wanted.value.to_bits();
    row.values.iter().any(is_equal)
}

/// Whether the newer reading of a row has the step and all values of the older one.
fn has_all(new: &Logged, old: &Logged) -> bool {
    new.step.map(f64::to_bits) == old.step.map(f64::to_bits) && old.values.iter().all(|value| has(new, value))
}

/// Bytes up to the end of the last whole line. A line that is longer than a piece counts as whole.
fn whole_lines(file: &mut (impl Read + Seek), bytes: u64) -> io::Result<u64> {
    let start = bytes.saturating_sub(PIECE_BYTES);
    let end = read_at(file, start, bytes - start)?;
    let last = end.iter().rposition(|byte| *byte == b'\n').map(|at| start + at as u64 + 1);
    Ok(last.unwrap_or(start))
}

fn read_at(file: &mut (impl Read + Seek), offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut read = Vec::new();
    file.take(bytes).read_to_end(&mut read)?;
    Ok(read)
}
