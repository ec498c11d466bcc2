//! Lines inside brackets and quotes that begin further left than YAML 1.2 wants.
//!
//! PyYAML, and so W&B, takes any indentation there, and people close a list at the indentation of its key. The parser
//! refuses some of these lines. Blanks at the start of such a line mean nothing, so lines that it refuses get more of
//! them, and every place is moved back by as many.

use std::collections::BTreeMap;

use saphyr_parser::{Parser, ScanError, StrInput};

/// Bytes that may be scanned to find all such lines: each is found by one more look at the file.
const MAX_SCANNED_BYTES: usize = 16 << 20;
/// Lines that are found in any file, however large.
const MIN_SCANS: usize = 4;
/// Blanks that a line gets first. Twice as many follow while it is refused.
const FIRST_BLANKS: u32 = 64;
/// Most blanks of one line.
const MAX_BLANKS: u32 = 4096;

/// The blanks that lines have got, by their number from 1.
pub(crate) type Blanks = BTreeMap<u32, u32>;

/// Whether the parser has refused the indentation of a line inside brackets or quotes.
///
/// Outside of brackets it never says "invalid indentation": there a lower indentation ends what is open.
pub(crate) fn is_outdented(error: &ScanError) -> bool {
    let info = error.info();
    ["invalid indentation", "invalid indentation in flow construct", "invalid indentation in quoted scalar"]
        .contains(&info)
}

/// The text with enough blanks before such lines, as far as they can be found in bounded time.
pub(crate) fn indented(text: &str) -> (String, Blanks) {
    let (mut text, mut blanks) = (text.to_owned(), Blanks::new());
    for _ in 0..(MAX_SCANNED_BYTES / text.len().max(1)).max(MIN_SCANS) {
        let Some(error) = first_error(&text).filter(is_outdented) else { break };
        let line = u32::try_from(error.marker().line()).unwrap_or(u32::MAX);
        let lines = if error.info().contains("quoted") {
            let start = start_of(&text, line) + byte_of_column(&text, line, error.marker().col());
            continued_lines(&text[start..], line)
        } else {
            vec![line]
        };
        if lines.is_empty() || !lines.iter().all(|line| indent(&mut text, *line, &mut blanks)) {
            break;
        }
    }
    (text, blanks)
}

fn first_error(text: &str) -> Option<ScanError> {
    let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(text);
    std::iter::from_fn(|| parser.next_event()).find_map(Result::err)
}

/// Puts blanks before a line; false if it has as many as it may have.
fn indent(text: &mut String, line: u32, blanks: &mut Blanks) -> bool {
    let known = blanks.entry(line).or_insert(0);
    let more = (*known).max(FIRST_BLANKS);
    if *known + more > MAX_BLANKS {
        return false;
    }
    *known += more;
    text.insert_str(start_of(text, line), &" ".repeat(more as usize));
    true
}

/// Where a line begins, in bytes. Lines end as YAML's do: a lone carriage return counts.
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

fn byte_of_column(text: &str, line: u32, column: usize) -> usize {
    text[start_of(text, line)..].chars().take(column).map(char::len_utf8).sum()
}

/// The further lines of the quoted text at the start of `rest`, which begins in `line`.
///
/// None where one of them looks like the start or end of a document, which PyYAML refuses.
fn continued_lines(rest: &str, line: u32) -> Vec<u32> {
    let Some(quote) = rest.chars().next() else { return Vec::new() };
    let (mut lines, mut last) = (Vec::new(), quote);
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((index, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        if c == quote && !(quote == '\'' && next == Some(quote)) {
            break;
        }
        // What is escaped ends nothing, but for a line.
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
