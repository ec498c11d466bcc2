//! Decodes the file's bytes as text, and checks size, encoding and control characters.

use super::MAX_FILE_BYTES;
use super::problem::{Place, Problem, Report};

/// The bytes shown after the first one that is no text.
const SHOWN_BYTES: usize = 4096;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Returns the file's text without a byte order mark.
pub(crate) fn decode<'b>(name: &str, bytes: &'b [u8]) -> Result<&'b str, Box<Problem>> {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Box::new(too_large(name, bytes.len() as u64)));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Err(Box::new(not_utf8(name, bytes, error.valid_up_to()))),
    };
    // YAML 1.2, 5.1, allows tabs, line breaks, next line, and printable characters.
    let forbidden = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    if let Some((before, c)) =
        text.split_once(forbidden).map(|(before, _)| (before, text[before.len()..].chars().next()))
    {
        let code = c.map_or(0, u32::from);
        let message = format!("this is not text: it has the control character U+{code:04X}");
        let report = Report::new(name, text);
        return Err(Box::new(report.locate(after(before), message, "save the file as plain YAML text in UTF-8")));
    }
    Ok(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))
}

/// Returns the problem of a file over [`MAX_FILE_BYTES`].
fn too_large(name: &str, bytes: u64) -> Problem {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    Problem {
        message: format!("the file has {} MiB; {} MiB is the most", mib(bytes), mib(MAX_FILE_BYTES)),
        help: "describe the trials with `method` and `parameters` instead of listing them".to_owned(),
        ..unplaced(name)
    }
}

/// Returns a problem of the file as a whole.
pub(crate) fn unplaced(name: &str) -> Problem {
    let (text, message, help) = (String::new(), String::new(), String::new());
    Problem { file: name.to_owned(), line: 0, column: 0, text, width: 0, message, help }
}

fn not_utf8(name: &str, bytes: &[u8], valid: usize) -> Problem {
    let wide = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let encoding = if wide { "UTF-16" } else { "not UTF-8" };
    // These bytes show the line and the URLs in it; the rest may be a picture.
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(valid + SHOWN_BYTES)]).into_owned();
    let before = String::from_utf8_lossy(&bytes[..valid]).into_owned();
    let message = format!("the file is {encoding} text");
    let help = "save it as YAML in UTF-8";
    Report::new(name, &shown).locate(after(&before), message, help)
}

/// Returns the place of the character that follows `before`.
fn after(before: &str) -> Place {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX - 1);
    let last_line = before.rsplit(['\n', '\r']).next().unwrap_or("");
    let breaks = before.matches('\n').count() + before.matches('\r').count() - before.matches("\r\n").count();
    Place { line: count(breaks) + 1, column: count(last_line.chars().count()) + 1, width: 1 }
}
