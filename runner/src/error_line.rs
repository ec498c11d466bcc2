//! The line of a failed command's output that says why.

use anstream::adapter::strip_str;
use spotsweep_protocol::visible::stripped;

const MAX_BYTES: usize = 300;

/// The last line that begins with an exception's name, as Python's tracebacks end, else the last line with text.
pub(crate) fn error_in(log: &[u8]) -> Option<String> {
    let log = String::from_utf8_lossy(log);
    let log = strip_str(&log).to_string();
    let lines = || log.lines().rev().map(str::trim_end).filter(|line| !line.trim().is_empty());
    let found = lines().find(|line| names_exception(line)).or_else(|| lines().next())?.trim();
    let text = stripped(found);
    let end = text.floor_char_boundary(MAX_BYTES);
    Some(if end < text.len() { format!("{}…", &text[..end]) } else { text })
}

/// `ValueError: …`, `torch.OutOfMemoryError: …`, `KeyboardInterrupt`: without indentation.
fn names_exception(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default();
    let is_path = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    is_path && ["Error", "Exception", "Interrupt", "Exit"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_comes_before_what_follows_it() {
        let traceback =
            "epoch=1\nTraceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n    1 / 0\n";
        let cases = [
            (format!("{traceback}ZeroDivisionError: division by zero\n"), Some("ZeroDivisionError: division by zero")),
            (
                format!("{traceback}ZeroDivisionError: division by zero\nwandb: done\n\n"),
                Some("ZeroDivisionError: division by zero"),
            ),
            (
                format!("{traceback}torch.OutOfMemoryError: CUDA out of memory.\n"),
                Some("torch.OutOfMemoryError: CUDA out of memory."),
            ),
            ("sh: 1: pyhton: not found\n".to_owned(), Some("sh: 1: pyhton: not found")),
            ("\u{1b}[31mValueError: bad\u{1b}[0m\n".to_owned(), Some("ValueError: bad")),
            ("ValueError: \u{202e}bad\u{9b}\n".to_owned(), Some("ValueError: bad")),
            ("\n \n".to_owned(), None),
        ];
        for (log, expected) in cases {
            assert_eq!(error_in(log.as_bytes()).as_deref(), expected, "{log}");
        }
        assert_eq!(error_in("é".repeat(400).as_bytes()).map(|line| line.len()), Some(MAX_BYTES + 3));
    }
}
