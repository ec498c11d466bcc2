//! Finds characters that are invisible but change how a terminal or an editor shows a line: control characters, and
//! format characters that hide or reverse the text next to them.
//!
//! Text of others (a sweep file, a training, a name) is printed only after [`escaped`].

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// The characters of category `Cf`, `Zl` or `Zp`, or with the property `Default_Ignorable_Code_Point`, of Unicode 17
/// (<https://www.unicode.org/Public/17.0.0/ucd/DerivedCoreProperties.txt>,
/// <https://www.unicode.org/Public/17.0.0/ucd/extracted/DerivedGeneralCategory.txt>). Visible characters, which have
/// the property `Prepended_Concatenation_Mark` (<https://www.unicode.org/Public/17.0.0/ucd/PropList.txt>), and
/// [`JOINING`] are left out.
const FORMAT: [RangeInclusive<char>; 16] = [
    '\u{ad}'..='\u{ad}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180e}'..='\u{180e}',
    '\u{200b}'..='\u{200b}',
    '\u{200e}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{3164}'..='\u{3164}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{13430}'..='\u{1343f}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
];

/// Characters that change the shape of the one before: joiners, and variation selectors. Scripts and emoji need them.
const JOINING: [RangeInclusive<char>; 6] = [
    '\u{34f}'..='\u{34f}',
    '\u{180b}'..='\u{180d}',
    '\u{180f}'..='\u{180f}',
    '\u{200c}'..='\u{200d}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{e0100}'..='\u{e01ef}',
];

/// Plane 14 has no visible characters: tags, and selectors that are no variants.
const PLANE_14: RangeInclusive<char> = '\u{e0000}'..='\u{e0fff}';

/// The first script that needs joining characters is Hebrew. No emoji has a lower code point.
const FIRST_JOINED: char = '\u{590}';

/// The most joining characters in a row: a selector and a joiner, as in emoji.
const MOST_JOINING: u8 = 2;

/// Whether the character is always invisible, or only changes the one before it.
fn is_hidden(c: char) -> bool {
    !is_plain(c) && (is_joining(c) || c.is_control() || PLANE_14.contains(&c) || is_one_of(&FORMAT, c))
}

/// Whether the character is printable ASCII, as most text is.
fn is_plain(c: char) -> bool {
    matches!(c, ' '..='~')
}

fn is_joining(c: char) -> bool {
    is_one_of(&JOINING, c)
}

fn is_one_of(ranges: &[RangeInclusive<char>], c: char) -> bool {
    ranges.iter().any(|range| range.contains(&c))
}

/// Reads a text from its start, and decides for each character whether it is hidden there.
#[derive(Debug, Default, Clone, Copy)]
pub struct Sight {
    /// The joining characters that may still follow.
    joins: u8,
}

impl Sight {
    /// Whether the text's next character is hidden. A joining character is not hidden where a script or an emoji may
    /// need it.
    pub fn hides(&mut self, c: char) -> bool {
        if self.joins > 0 && is_joining(c) {
            self.joins -= 1;
            return false;
        }
        let is_hidden = is_hidden(c);
        self.joins = if is_hidden || c < FIRST_JOINED { 0 } else { MOST_JOINING };
        is_hidden
    }
}

/// Writes a hidden character as JSON and YAML do: `\n`, `\u001b`, `\u202e`. Within the strings of a JSON document the
/// meaning is unchanged.
pub fn push_escape(to: &mut String, c: char) {
    match c {
        '\t' => to.push_str("\\t"),
        '\n' => to.push_str("\\n"),
        '\r' => to.push_str("\\r"),
        other => {
            for unit in other.encode_utf16(&mut [0; 2]) {
                // Writing to memory cannot fail.
                let _ = write!(to, "\\u{unit:04x}");
            }
        }
    }
}

/// Returns the text with an escape for each hidden character, including line breaks, so that it is one line.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !is_any_hidden(text) {
        return Cow::Borrowed(text);
    }
    let (mut sight, mut seen) = (Sight::default(), String::with_capacity(text.len() + 16));
    for c in text.chars() {
        if sight.hides(c) {
            push_escape(&mut seen, c);
        } else {
            seen.push(c);
        }
    }
    Cow::Owned(seen)
}

/// Returns the text with one replacement character for each hidden one except tabs. The number of characters is
/// unchanged.
pub fn masked(text: &str) -> String {
    let mut sight = Sight::default();
    text.chars().map(|c| if sight.hides(c) && c != '\t' { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Returns the text without its hidden characters.
pub fn stripped(text: &str) -> String {
    let mut sight = Sight::default();
    text.chars().filter(|c| !sight.hides(*c)).collect()
}

fn is_any_hidden(text: &str) -> bool {
    let mut sight = Sight::default();
    text.chars().any(|c| sight.hides(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_escaped() {
        let cases = [
            ("\u{1b}[2Jkey", "\\u001b[2Jkey"),
            ("x\u{9b}31m\u{202e}y", "x\\u009b31m\\u202ey"),
            ("a\tb\r\nc\u{7f}\0", "a\\tb\\r\\nc\\u007f\\u0000"),
            ("\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}", "\\u2066\\u2069\\u200e\\u200f\\u061c"),
            ("a\u{2028}b\u{2029}c\u{200b}\u{feff}\u{ad}", "a\\u2028b\\u2029c\\u200b\\ufeff\\u00ad"),
            ("tag\u{e0041}", "tag\\udb40\\udc41"),
            ("no\u{200d}joiner\u{fe0f}", "no\\u200djoiner\\ufe0f"),
            ("한\u{200d}\u{200d}\u{200d}", "한\u{200d}\u{200d}\\u200d"),
        ];
        for (text, expected) in cases {
            assert_eq!(escaped(text), expected);
            assert_eq!(escaped(expected), expected);
        }
    }

    #[test]
    fn what_scripts_and_emoji_need_stays() {
        for text in ["é 모델 → “x” \u{a0}", "می\u{200c}خواهم", "क्\u{200d}ष", "❤\u{fe0f}\u{200d}🔥", "\u{600}1", ""]
        {
            assert!(matches!(escaped(text), Cow::Borrowed(_)), "{text}");
            assert_eq!((masked(text), stripped(text)), (text.to_owned(), text.to_owned()));
        }
    }

    #[test]
    fn masks_keep_the_number_of_characters() {
        assert_eq!(masked("a\t\u{1b}\u{202e}b"), "a\t\u{fffd}\u{fffd}b");
        assert_eq!(stripped("a\t\u{1b}\u{202e}b"), "ab");
    }

    #[test]
    fn an_escape_is_what_json_reads_back() {
        let text = "\u{1b}\u{9b}\u{202e}\u{e0041}\n\t";
        assert_eq!(serde_json::from_str::<String>(&format!("\"{}\"", escaped(text))).ok().as_deref(), Some(text));
    }
}
