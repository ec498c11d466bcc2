//! Escapes text before it reaches a terminal.

use std::io::{self, Write};

use spotsweep_protocol::visible::{Sight, push_escape};

/// Bytes of a character that lacks only its last one.
const MOST_BEGUN: usize = 3;

/// Passes text on, with an escape for each character that [`Sight`] hides. Line breaks pass unchanged.
///
/// The escapes are those of JSON. So JSON can be written through it as well, and a program reads the same values back.
/// What is not UTF-8 becomes U+FFFD.
#[derive(Debug)]
pub(crate) struct Gate<W: Write> {
    to: W,
    sight: Sight,
    /// The beginning of a character whose end has not been written yet.
    begun: Vec<u8>,
}

impl<W: Write> Gate<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, sight: Sight::default(), begun: Vec::with_capacity(2 * MOST_BEGUN) }
    }

    /// Writes what has been held back, which is a character that never ended.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.begun).is_empty() {
            self.to.write_all("\u{fffd}".as_bytes())?;
        }
        self.to.flush()
    }

    fn pass(&mut self, text: &str) -> io::Result<()> {
        let mut seen = String::with_capacity(text.len());
        for c in text.chars() {
            if self.sight.hides(c) && c != '\n' {
                push_escape(&mut seen, c);
            } else {
                seen.push(c);
            }
        }
        self.to.write_all(seen.as_bytes())
    }
}

impl<W: Write> Write for Gate<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = std::mem::take(&mut self.begun);
        let joined = if held.is_empty() {
            bytes
        } else {
            held.extend_from_slice(bytes);
            &held
        };
        let mut chunks = joined.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.pass(chunk.valid())?;
            let broken = chunk.invalid();
            if chunks.peek().is_none() && is_begun(broken) {
                self.begun = broken.to_vec();
            } else if !broken.is_empty() {
                self.pass("\u{fffd}")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Whether these bytes may be the beginning of a character.
fn is_begun(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes.len() <= MOST_BEGUN
        && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn through(pieces: &[&[u8]]) -> String {
        let mut written = Vec::new();
        let mut gate = Gate::new(&mut written);
        pieces.iter().for_each(|piece| gate.write_all(piece).unwrap());
        gate.finish().unwrap();
        drop(gate);
        String::from_utf8(written).unwrap()
    }

    #[test]
    fn nothing_that_a_terminal_obeys_passes() {
        let text = "a\u{1b}[2J\u{9b}31m\u{202e}\r\u{8}\u{7f}\u{2028}\u{e0041}\tz\n모델 ❤\u{fe0f}\n";
        let expected = "a\\u001b[2J\\u009b31m\\u202e\\r\\u0008\\u007f\\u2028\\udb40\\udc41\\tz\n모델 ❤\u{fe0f}\n";
        assert_eq!(through(&[text.as_bytes()]), expected);
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(through(&bytes), expected, "however it is cut");
    }

    #[test]
    fn what_is_not_text_is_replaced() {
        assert_eq!(through(&[b"a\xff\x9bb"]), "a\u{fffd}\u{fffd}b", "a lone C1 byte is one, too");
        assert_eq!(through(&[b"a\xe2\x80", b"z"]), "a\u{fffd}z");
        assert_eq!(through(&[b"a\xe2\x80"]), "a\u{fffd}");
    }

    #[test]
    fn json_is_read_back_unchanged() {
        let value = serde_json::json!({ "\u{9b}k\u{e0041}": "\u{202e}\u{7f}\u{1b}\n" });
        let written = through(&[value.to_string().as_bytes()]);
        assert!(written.is_ascii(), "{written}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), value);
    }
}
