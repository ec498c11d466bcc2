//! Indents lines inside brackets and quotes that begin further left than YAML 1.2 allows.
//!
//! PyYAML, and therefore W&B, takes any indentation there, and people close a list at the indentation of its key. The
//! parser refuses some of these lines. Blanks at the start of such a line have no meaning. So refused lines get more
//! blanks, and every reported place is moved back by as many.

use std::collections::BTreeMap;

use saphyr_parser::{Parser, ScanError, StrInput};

/// The bytes that may be scanned to find all such lines, about a fifth of a second. Each list needs one more scan of
/// the file.
const MAX_SCANNED_BYTES: usize = 4 << 20;
/// The number of lines that are found in any file, however large.
const MIN_SCANS: usize = 4;
/// Blanks that a line gets first. Their number doubles while the line is refused.
const FIRST_BLANKS: u32 = 64;
/// The most blanks of one line.
const MAX_BLANKS: u32 = 4096;

/// The blanks added to each line, by its number from 1.
pub(crate) type Blanks = BTreeMap<u32, u32>;

/// Whether the parser has refused the indentation of a line inside brackets or quotes.
///
/// Outside of brackets the parser never reports "invalid indentation", because a lower indentation ends what is open.
pub(crate) fn is_outdented(error: &ScanError) -> bool {
    let info = error.info();
    ["invalid indentation", "invalid indentation in flow construct", "invalid indentation in quoted scalar"]
        .contains(&info)
}

/// Returns the text with enough blanks before such lines, as far as they can be found in bounded time.
pub(crate) fn indented(text: &str) -> (String, Blanks) {
    let mut best = (text.to_owned(), Blanks::new());
    let mut error = first_error(text);
    let mut rest = MAX_SCANNED_BYTES.max(MIN_SCANS * text.len());
    while let Some(found) = error.take().filter(is_outdented) {
        let lines = lines_of(&best.0, &found);
        // The lines below are likely to belong to the same list. A line that does not gets an error of its own.
        let more: Vec<u32> = lines.iter().copied().chain(similar_lines(&best.0, lines.last().copied())).collect();
        for (chosen, is_sure) in [(&more, more.len() == lines.len()), (&lines, true)] {
            let Some(next) = with_blanks(&best, chosen) else { continue };
            let Some(left) = rest.checked_sub(next.0.len()) else { return best };
            rest = left;
            let after = first_error(&next.0);
            let is_beyond = |error: &ScanError| chosen.last().is_some_and(|last| line_of(error) > *last);
            if is_sure || after.as_ref().is_none_or(is_beyond) {
                (best, error) = (next, after);
                break;
            }
        }
    }
    best
}

fn first_error(text: &str) -> Option<ScanError> {
    let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(text);
    std::iter::from_fn(|| parser.next_event()).find_map(Result::err)
}

fn line_of(error: &ScanError) -> u32 {
    u32::try_from(error.marker().line()).unwrap_or(u32::MAX)
}

/// Returns the lines that the error is about: the line of a token, or the continuation lines of a quoted text.
fn lines_of(text: &str, error: &ScanError) -> Vec<u32> {
    let line = line_of(error);
    if !error.info().contains("quoted") {
        return vec![line];
    }
    let rest = &text[start_of(text, line)..];
    let column: usize = rest.chars().take(error.marker().col()).map(char::len_utf8).sum();
    continued_lines(&rest[column..], line)
}

/// Returns the lines right below `last` that begin like parts of a list or mapping in brackets, up to the one that
/// closes it.
fn similar_lines(text: &str, last: Option<u32>) -> impl Iterator<Item = u32> {
    let first = last.map_or(u32::MAX, |last| last.saturating_add(1));
    let rest = if last.is_some() { &text[start_of(text, first)..] } else { "" };
    let begins_so = |line: &&str| line.trim_start_matches(' ').starts_with(['"', '\'', '[', '{', ']', '}', ',']);
    let is_end = |line: &str| line.trim_start_matches(' ').starts_with([']', '}']);
    let count = rest.split('\n').take_while(begins_so).count();
    let until_end = rest.split('\n').take(count).position(is_end).map_or(count, |index| index + 1);
    (first..).take(if rest.contains('\r') { 0 } else { until_end })
}

/// Returns the text with more blanks before each of `lines`. `None` if `lines` is empty, or if one of them already has
/// the most blanks.
fn with_blanks((text, blanks): &(String, Blanks), lines: &[u32]) -> Option<(String, Blanks)> {
    let (mut indented, mut blanks) = (String::with_capacity(text.len()), blanks.clone());
    let (first, last) = (*lines.first()?, *lines.last()?);
    let start = start_of(text, first);
    indented.push_str(&text[..start]);
    let mut rest = &text[start..];
    for line in first..=last {
        let known = blanks.entry(line).or_insert(0);
        let more = (*known).max(FIRST_BLANKS);
        *known += more;
        if *known > MAX_BLANKS {
            return None;
        }
        indented.push_str(&" ".repeat(more as usize));
        let (this, next) = rest.split_at(start_of(rest, 2));
        indented.push_str(this);
        rest = next;
    }
    indented.push_str(rest);
    Some((indented, blanks))
}

/// Returns the byte at which a line begins. As in YAML, a lone carriage return ends a line.
fn start_of(text: &str, line: u32) -> usize {
    let bytes = text.as_bytes();
    let ends = bytes.iter().enumerate().filter(|(index, byte)| match byte {
        b'\n' => true,
        b'\r' => bytes.get(index + 1) != Some(&b'\n'),
        _ => false,
    });
    let mut starts = std::iter::once(0).chain(ends.map(|(index, _)| index + 1));
    starts.nth((line as usize).saturating_sub(1)).unwrap_or(text.len())
}

/// Returns the continuation lines of the quoted text at the start of `rest`, which begins in `line`.
///
/// Empty if one of them looks like the start or end of a document, which PyYAML refuses.
fn continued_lines(rest: &str, line: u32) -> Vec<u32> {
    let Some(quote) = rest.chars().next() else { return Vec::new() };
    let (mut lines, mut last) = (Vec::new(), quote);
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((index, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        if c == quote && !(quote == '\'' && next == Some(quote)) {
            break;
        }
        // An escaped character ends nothing, except for a line break.
        if c == quote || c == '\\' && quote == '"' && !matches!(next, Some('\r' | '\n')) {
            chars.next();
        } else if c == '\r' || c == '\n' && last != '\r' {
            lines.push(line + u32::try_from(lines.len()).unwrap_or(u32::MAX) + 1);
            let after = &rest[index + 1..];
            let after = if c == '\r' { after.strip_prefix('\n').unwrap_or(after) } else { after };
            if after.starts_with("---") || after.starts_with("...") {
                return Vec::new();
            }
        }
        last = c;
    }
    lines
}
