//! The forms in which programs print a value.

use std::collections::BTreeSet;

use super::LEAST_BYTES;
use crate::words::hexadecimal;

/// The shortest form, in characters, in base64 or hexadecimal. Shorter ones occur by chance in other text.
const LEAST_ENCODED: usize = 6;
/// Marks the first and the last line of a key. They are the same for all keys.
const MARKS: [&str; 2] = ["-----BEGIN ", "-----END "];
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What percent-encoding keeps besides letters and digits, and what a blank becomes.
const PERCENT: [(&str, &str); 7] = [
    // RFC 3986, and Python's quote and quote_plus.
    ("-._~", "%20"),
    ("-._~/", "%20"),
    ("-._~", "+"),
    // Forms in HTML.
    ("-._*", "+"),
    // JavaScript's encodeURIComponent and encodeURI.
    ("-._~!'()*", "%20"),
    ("-._~!'()*;,/?:@&=+$#", "%20"),
    // The credentials of a URL, as browsers and Rust's url encode them.
    ("-._~!'()*,&+$%", "%20"),
];

/// Which quotes have a backslash before them. A text has none for the quotes that are not around it.
const QUOTES: [&str; 5] = ["", "'", "\"", "'\"", "\"/"];

/// Writes a letter that is no backslash, quote, tab or line break.
type Letter = fn(char) -> String;
const LETTERS: [Letter; 6] = [json, json_ascii, python, python_ascii, python_bytes, rust];

/// Returns the byte strings that show this value.
pub(super) fn of(value: &str) -> BTreeSet<Vec<u8>> {
    let mut forms = BTreeSet::new();
    for text in texts(value) {
        forms.extend(base64(text.as_bytes()));
        forms.extend(hexadecimal_forms(text.as_bytes()));
        forms.extend(percent(text).into_iter().chain(escaped(text)).map(String::into_bytes));
        forms.insert(text.as_bytes().to_owned());
    }
    forms
}

/// Returns the value and its lines, without blanks at the ends: every form of the value has a form of the rest in it,
/// and a line break after the value stays in the output. Lines that are the same in many secrets are left out: the
/// marks of a key, and lines without a letter or digit.
fn texts(value: &str) -> BTreeSet<&str> {
    let shows = |line: &&str| {
        !MARKS.iter().any(|mark| line.starts_with(mark)) && line.chars().any(|letter| letter.is_alphanumeric())
    };
    let lines = value.trim().split(['\n', '\r']).map(str::trim);
    let lines: Vec<&str> = lines.collect();
    let single = if lines.len() > 1 { lines.as_slice() } else { &[] };
    let texts = single.iter().copied().filter(shows).chain([value.trim()]);
    texts.filter(|text| text.len() >= LEAST_BYTES).collect()
}

/// Returns the value in base64, wherever it begins in what is encoded, and whether more follows or not. The characters
/// that have bits of other bytes are left out.
fn base64(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for before in 0_usize..3 {
        let bytes = [&[0; 2][..before], value].concat();
        let encoded = base64_of(&bytes);
        let start = (8 * before).div_ceil(6);
        forms.extend([8 * bytes.len() / 6, encoded.len()].map(|end| encoded[start..end].to_vec()));
    }
    forms.retain(|form| form.len() >= LEAST_ENCODED);
    let for_urls = |byte: &u8| match byte {
        b'+' => b'-',
        b'/' => b'_',
        other => *other,
    };
    let urls: Vec<Vec<u8>> = forms.iter().map(|form| form.iter().map(for_urls).collect()).collect();
    forms.into_iter().chain(urls).collect()
}

/// Encodes bytes without padding.
fn base64_of(bytes: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    for chunk in bytes.chunks(3) {
        let group = (0..3).fold(0, |group, at| group << 8 | usize::from(chunk.get(at).copied().unwrap_or_default()));
        encoded.extend((0..=chunk.len()).map(|at| BASE64[group >> (18 - 6 * at) & 63]));
    }
    encoded
}

fn hexadecimal_forms(value: &[u8]) -> Vec<Vec<u8>> {
    let lower = hexadecimal(value);
    [lower.to_uppercase(), lower]
        .into_iter()
        .filter(|form| form.len() >= LEAST_ENCODED)
        .map(String::into_bytes)
        .collect()
}

fn percent(text: &str) -> Vec<String> {
    let encoded = |(kept, blank): (&str, &str), is_upper: bool| {
        let byte = |byte: u8| match byte {
            b' ' => blank.to_owned(),
            byte if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) => char::from(byte).to_string(),
            byte if is_upper => format!("%{byte:02X}"),
            byte => format!("%{byte:02x}"),
        };
        text.bytes().map(byte).collect()
    };
    PERCENT.into_iter().flat_map(|rule| [true, false].map(|is_upper| encoded(rule, is_upper))).collect()
}

/// Returns the text as it is between quotes in JSON, Rust, Python and shells.
fn escaped(text: &str) -> Vec<String> {
    let with = |quotes: &str, letter: Letter| {
        let escape = |next: char| match next {
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            '\t' => "\\t".to_owned(),
            '\\' => "\\\\".to_owned(),
            quote if quotes.contains(quote) => format!("\\{quote}"),
            other => letter(other),
        };
        text.chars().map(escape).collect()
    };
    let mut forms: Vec<String> = Vec::new();
    for quotes in QUOTES {
        forms.extend(LETTERS.map(|letter| with(quotes, letter)));
    }
    // How shells leave single quotes for a quote: `set -x`, and Python's shlex.
    forms.extend(["'\\''", "'\"'\"'"].map(|quote| text.replace('\'', quote)));
    forms
}

fn json(letter: char) -> String {
    match letter {
        '\u{8}' => "\\b".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\0'..' ' => format!("\\u{:04x}", u32::from(letter)),
        other => other.to_string(),
    }
}

fn json_ascii(letter: char) -> String {
    if letter.is_ascii() {
        return json(letter);
    }
    letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

fn python(letter: char) -> String {
    if letter.is_control() { format!("\\x{:02x}", u32::from(letter)) } else { letter.to_string() }
}

fn python_ascii(letter: char) -> String {
    match u32::from(letter) {
        0..0x80 => python(letter),
        code @ 0x80..0x100 => format!("\\x{code:02x}"),
        code @ 0x100..0x10000 => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}

fn python_bytes(letter: char) -> String {
    if letter.is_ascii() {
        return python(letter);
    }
    letter.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\x{byte:02x}")).collect()
}

fn rust(letter: char) -> String {
    if letter.is_control() { letter.escape_debug().to_string() } else { letter.to_string() }
}
