//! Finds slips in YAML that the parser cannot name, because it stops at the line below them.

use spotsweep_protocol::redact::redacted;

use super::problem::Place;

/// The most lines above that are looked at, because comments may stand between.
const MOST_LINES: usize = 100;

/// The most bytes of a line that is looked at, because messages quote the line.
const MOST_BYTES: usize = 200;

/// Reasons with which the parser stops after such a slip.
const REASONS: [&str; 4] =
    ["mapping values are not allowed", "did not find expected key", "comment intercepting", "simple key"];

/// A slip in a line, and its correction.
pub(crate) struct Slip {
    pub(crate) place: Place,
    pub(crate) message: String,
    pub(crate) help: String,
}

/// Returns `min: 16` for `min:16`: a name, a colon, and a value without a space between.
pub(crate) fn with_space(text: &str) -> Option<String> {
    let (name, value) = text.split_once(':')?;
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+'))
    };
    let is_value = !value.is_empty() && !value.starts_with([' ', '/', '\\', ':']);
    // A number before the colon is a time of the day, and one letter is a drive of Windows.
    let is_other = name.parse::<f64>().is_ok() || name.len() == 1 && value.contains(['/', '\\']);
    (is_name(name) && is_value && !is_other).then(|| format!("{name}: {value}"))
}

/// Returns the slip at which the parser stops in `line`, from 1, or in the line above that is not empty. `text` returns
/// a line by its number.
pub(crate) fn near<'a>(reason: &str, line: u32, text: impl Fn(u32) -> &'a str) -> Option<Slip> {
    if !REASONS.iter().any(|known| reason.contains(known)) {
        return None;
    }
    let is_empty = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let next = |mut lines: Box<dyn Iterator<Item = u32>>| lines.find(|number| !is_empty(text(*number)));
    let above = next(Box::new((1..line).rev().take(MOST_LINES)));
    let below = next(Box::new((line + 1..).take(MOST_LINES)));
    let slip = |number: u32, below: Option<u32>| of(number, text(number), below.map_or("", &text));
    above.and_then(|above| slip(above, Some(line))).or_else(|| slip(line, below))
}

/// Returns the slip in a line that `below` follows.
fn of(number: u32, line: &str, below: &str) -> Option<Slip> {
    let code = |line: &'_ str| line.split_once(" #").map_or(line.len(), |(code, _)| code.len());
    let (written, below) = (line[..code(line)].trim_end(), &below[..code(below)]);
    let indentation = |line: &str| line.len() - line.trim_start_matches(' ').len();
    if written.len() > MOST_BYTES {
        return None;
    }
    let entry = written.trim_start().trim_start_matches("- ");
    let count = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let place = Place { line: number, column: count(written) - count(entry) + 1, width: count(entry).max(1) };
    // The parser has not read this line, so its secrets have not been noted.
    let shown = |text: String| redacted(&text).into_owned();
    if let Some(meant) = with_space(entry) {
        let message = format!("not valid YAML: `{entry}` has no space after its colon");
        return Some(Slip { place, message: shown(message), help: shown(format!("write `{meant}`")) });
    }
    let (name, value) = entry.split_once(": ")?;
    let value = value.trim();
    let is_plain = !value.is_empty() && !value.starts_with(['"', '\'', '[', '{', '&', '*', '|', '>', '!']);
    let is_key = below.trim_end().ends_with(':') || below.contains(": ");
    if !is_plain || !is_key || indentation(below) <= indentation(written) {
        return None;
    }
    let message =
        format!("not valid YAML: `{name}` has the value `{value}`, and the lines below are indented as if it had none");
    let help = format!(
        "write `{name}:` alone, and `{value}` below it with a key of its own, such as `distribution: {value}`; or indent \
         the lines below less"
    );
    Some(Slip { place, message: shown(message), help: shown(help) })
}
