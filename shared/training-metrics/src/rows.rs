//! Files with a row on each line, which are read piece by piece. A line that is longer than a piece is passed over.

use std::io::{self, Read, Seek, SeekFrom};

use spotsweep_protocol::metric::Source;

use crate::logged::Logged;
use crate::part::{Found, PIECE_BYTES, Read as When};

/// So much of what is read is compared at the next look.
const TAIL_BYTES: u64 = 256;

/// How far a file of rows is read. The rows themselves are not kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    /// Bytes of lines that were there before the training, or are handed over.
    offset: u64,
    /// How many lines these are.
    lines: u64,
    /// The end of them: where it differs, the file was written again.
    tail: Vec<u8>,
    /// Whether the line at `offset` is too long, and passed over.
    within_line: bool,
    /// Bytes of whole lines at the first look during the training: who appends to them is the training.
    first: Option<u64>,
    /// Whether the training has appended to the file, or lines of an attempt before are in it.
    is_own: bool,
}

impl Rows {
    /// The next rows that are new, as `parse` finds them in whole lines; the second argument is whether these are the
    /// first of the file. What lies there at the first look may be somebody else's file: it waits until the training
    /// appends to it, or has ended.
    pub(crate) fn read(
        &mut self,
        file: &mut (impl Read + Seek),
        when: When,
        mut parse: impl FnMut(&str, bool) -> Vec<Logged>,
    ) -> io::Result<Found> {
        let bytes = file.seek(SeekFrom::End(0))?;
        let whole = whole_lines(file, bytes)?;
        if bytes < self.offset || self.is_rewritten(file)? {
            self.find_again(file, whole, &mut parse)?;
        }
        if when == When::Before {
            self.pass_over(file, whole, u64::MAX, &mut parse)?;
            self.is_own = self.lines > 0;
            return Ok(Found::default());
        }
        self.is_own |= whole > *self.first.get_or_insert(whole);
        if !self.is_own && when == When::During {
            return Ok(Found::default());
        }
        let is_first = self.offset == 0;
        let end = if when == When::Last { bytes } else { whole };
        let piece = self.next(file, end, u64::MAX)?;
        let mut logged = parse(&String::from_utf8_lossy(&piece), is_first);
        logged.retain(|row| !row.values.is_empty());
        if !self.is_own {
            logged.iter_mut().flat_map(|row| &mut row.values).for_each(|value| value.source = Source::Found);
        }
        Ok(Found { logged, has_more: self.offset < end })
    }

    /// Whether what was read is no longer what it was.
    fn is_rewritten(&self, file: &mut (impl Read + Seek)) -> io::Result<bool> {
        let start = self.offset - self.tail.len() as u64;
        Ok(read_at(file, start, self.tail.len() as u64)? != self.tail)
    }

    /// Goes on after as many lines as were read. Where the file has fewer, it was written from its beginning again.
    fn find_again(
        &mut self,
        file: &mut (impl Read + Seek),
        whole: u64,
        parse: &mut impl FnMut(&str, bool) -> Vec<Logged>,
    ) -> io::Result<()> {
        let before = std::mem::take(self);
        self.pass_over(file, whole, before.lines, parse)?;
        if self.lines < before.lines {
            *self = Self::default();
        } else {
            (self.first, self.is_own) = (before.first, before.is_own);
        }
        Ok(())
    }

    /// Passes over so many lines before `end`. The first of the file are parsed: they may name the columns.
    fn pass_over(
        &mut self,
        file: &mut (impl Read + Seek),
        end: u64,
        lines: u64,
        parse: &mut impl FnMut(&str, bool) -> Vec<Logged>,
    ) -> io::Result<()> {
        while self.offset < end && self.lines < lines {
            let is_first = self.offset == 0;
            let piece = self.next(file, end, lines - self.lines)?;
            if is_first {
                parse(&String::from_utf8_lossy(&piece), true);
            }
        }
        Ok(())
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
            piece.clear();
        }
        Ok(piece)
    }
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
