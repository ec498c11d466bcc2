//! What the kernel says, in `/proc` and `/sys`.
#![expect(clippy::disallowed_methods, reason = "no training can put a link there")]

use std::fs;
use std::io;
use std::path::Path;

/// A file of the kernel's. It is bytes: names of processes, arguments and paths are what programs chose, and one that is
/// not UTF-8 must not hide all the rest. Bytes that are no text come as U+FFFD, which is no part of what is looked for.
pub(crate) fn text(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}
