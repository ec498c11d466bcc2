//! Reads the kernel's files in `/proc` and `/sys`.
#![expect(clippy::disallowed_methods, reason = "no training can put a link there")]

use std::fs;
use std::io;
use std::path::Path;

/// The text of one of the kernel's files. Programs choose names, arguments and paths in it, and one that is not UTF-8
/// must not hide the rest. Such bytes become U+FFFD, which the runner never searches for.
pub(crate) fn text(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}
