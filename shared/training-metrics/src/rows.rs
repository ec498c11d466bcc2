//! Reads files with a row on each line, piece by piece. A line that is longer than a piece is skipped.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom};

use spotsweep_protocol::metric::Source;

use crate::logged::{Logged, Value};
use crate::part::{Found, PIECE_BYTES, Read as When};
use crate::sorted::Order;

/// The bytes at the end of what has been read that are compared at each look.
const TAIL_BYTES: u64 = 256;
/// The most lines that are remembered to recognise a file that was rewritten.
const MOST_KNOWN: usize = 16_384;
/// The most rows, and values of each, that are remembered to recognise a file whose columns have changed.
const MOST_ROWS: usize = 4;
const MOST_VALUES: usize = 64;

/// The position up to which a file of rows has been read. Only the first few rows and the last one are kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    /// The bytes of lines that were there before the training or have been returned.
    offset: u64,
    /// The number of these lines.
    lines: u64,
    /// The end of these lines. If it differs, the file was rewritten.
    tail: Vec<u8>,
    /// The hashes of the first lines.
    known: Vec<u64>,
    /// The first rows with values.
    head: Vec<Logged>,
    /// The last row.
    last: Option<Logged>,
    /// Whether the line at `offset` is too long and is skipped.
    within_line: bool,
    /// Whether a line has been skipped.
    has_passed_over: bool,
    /// The file at the first look during the training. If the file has grown at a later look, the training writes it.
    first: Option<First>,
    /// Whether the training has appended to the file, or the file has lines of an earlier attempt.
    is_own: bool,
    /// The order of the rows that were returned last.
    order: Order,
}

/// A file at one look.
#[derive(Debug, Clone)]
struct First {
    /// The bytes of whole lines.
    bytes: u64,
    /// The hashes of these lines, if the file is one piece.
    lines: Vec<u64>,
}

/// Finds the rows in whole lines. The second argument is whether the lines begin the file.
pub(crate) type Parse<'a> = dyn FnMut(&str, bool) -> Vec<Logged> + 'a;

impl Rows {
    /// Returns the next new rows. Rows at the first look may belong to another program's file. So they wait until the
    /// training appends to it or has ended.
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
        // Rows that are returned for the first time may have been sorted since the first look.
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

    /// Returns the order of the rows that were returned last.
    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// Whether a line was too long.
    pub(crate) fn has_passed_over(&self) -> bool {
        self.has_passed_over
    }

    /// Whether the content that was read has changed.
    fn is_rewritten(&self, file: &mut (impl Read + Seek)) -> io::Result<bool> {
        let start = self.offset - self.tail.len() as u64;
        Ok(read_at(file, start, self.tail.len() as u64)? != self.tail)
    }

    /// Goes on in a file that was rewritten, after the unchanged lines. If none is unchanged, the columns may have
    /// changed: if the first rows still have their values, it skips as many lines as were read. All other rows are new.
    /// If new lines are inserted among the lines that were read, only these are new.
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

    /// Returns how many of the first lines are unchanged, and whether the file has no others.
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

    /// Skips the given number of lines before `end`. They are parsed, because they may name the columns.
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

    /// Returns the rows of the next piece before `end`, at most `most` lines.
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

    /// Returns the next piece before `end`: whole lines, at most `most`.
    fn next(&mut self, file: &mut (impl Read + Seek), end: u64, most: u64) -> io::Result<Vec<u8>> {
        let mut piece = read_at(file, self.offset, PIECE_BYTES.min(end.saturating_sub(self.offset)))?;
        let is_last = self.offset + piece.len() as u64 >= end;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let ends = || piece.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).take(most);
        let (count, cut) = ends().fold((0, None), |(count, _), end| (count + 1, Some(end)));
        let is_whole = is_last && (count as usize) < most;
        let length = if is_whole { piece.len() } else { cut.unwrap_or(piece.len()) };
        // The line has no end, at the end of the file or because it is longer than a piece.
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

/// The position at which a rewritten file goes on.
enum Again {
    /// After the known lines. The first line after them was this row, if it was the last one.
    Found(Option<Logged>),
    /// These lines are inserted among all the known ones.
    Sorted(String),
    /// The file is still being rewritten: it has only known lines, and fewer than before.
    NotYet,
}

/// Returns the hashes of the lines of a file of one piece; none for a longer file.
fn lines_of(file: &mut (impl Read + Seek), whole: u64) -> io::Result<Vec<u64>> {
    let bytes = if whole <= PIECE_BYTES { read_at(file, 0, whole)? } else { Vec::new() };
    Ok(bytes.split_inclusive(|byte| *byte == b'\n').map(hash).collect())
}

/// Returns the known lines and the others, of a file with all known lines and others among them.
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

/// Returns the part of a row by which it is recognised.
fn part(row: &Logged) -> Logged {
    let values = row.values.iter().take(MOST_VALUES).cloned().collect();
    Logged { values, ..*row }
}

fn has(row: &Logged, wanted: &Value) -> bool {
    // The bits are compared, because NaN does not equal itself.
    let is_equal = |value: &Value| value.name == wanted.name && value.value.to_bits() == wanted.value.to_bits();
    row.values.iter().any(is_equal)
}

/// Whether the newer reading of a row has the step and all values of the older one.
fn has_all(new: &Logged, old: &Logged) -> bool {
    new.step.map(f64::to_bits) == old.step.map(f64::to_bits) && old.values.iter().all(|value| has(new, value))
}

/// Returns the bytes up to the end of the last whole line. A line that is longer than a piece counts as whole.
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
