//! Finds the line of a failed command's output that names the reason.

use anstream::adapter::strip_str;
use spotsweep_protocol::visible::stripped;

const MAX_BYTES: usize = 300;

/// Exceptions of launchers (torchrun and Accelerate) when the training has failed.
const OF_LAUNCHERS: [&str; 2] = ["ChildFailedError", "CalledProcessError"];

/// The last line that begins with an exception's name, as at the end of Python's tracebacks, or else the last line with
/// text. A launcher's exception counts only if there is no other.
pub(crate) fn error_in(log: &[u8]) -> Option<String> {
    let log = String::from_utf8_lossy(log);
    let log = strip_str(&log).to_string();
    let lines = || log.lines().rev().map(str::trim_end).filter(|line| !line.trim().is_empty());
    let exceptions = || lines().map(without_rank).filter(|line| names_exception(line));
    let is_of_launcher = |line: &&str| OF_LAUNCHERS.iter().any(|name| name_of(line).ends_with(name));
    let of_training = exceptions().find(|line| !is_of_launcher(line));
    let found = of_training.or_else(|| exceptions().next()).or_else(|| lines().next())?.trim();
    let text = stripped(found);
    let end = text.floor_char_boundary(MAX_BYTES);
    Some(if end < text.len() { format!("{}…", &text[..end]) } else { text })
}

/// The line without the `[rank0]: ` that torch puts before the tracebacks of distributed trainings.
fn without_rank(line: &str) -> &str {
    line.strip_prefix("[rank").and_then(|rest| rest.split_once("]: ")).map_or(line, |(_, rest)| rest)
}

fn name_of(line: &str) -> &str {
    line.split(':').next().unwrap_or_default()
}

/// Lines such as `ValueError: …`, `torch.OutOfMemoryError: …`, `KeyboardInterrupt`, without indentation.
fn names_exception(line: &str) -> bool {
    let name = name_of(line);
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
            (
                "[rank1]: KeyError: 'lr'\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
                    .to_owned(),
                Some("KeyError: 'lr'"),
            ),
            ("ChildFailedError: \n=====\n".to_owned(), Some("ChildFailedError:")),
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
