//! Reads small files of any kind.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

use crate::odd;
use crate::status::{Kind, Status};

/// Reads the first `most_bytes` of a regular file that others may have written, or may have replaced by a link. It
/// never waits, and does not read a device. Use it only if the content is not passed on.
///
/// # Errors
/// As open(2) and read(2), or if it is no regular file.
pub fn read_regular(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    if Status::of(&file)?.kind != Kind::File {
        return Err(odd(path));
    }
    let mut content = Vec::new();
    file.take(most_bytes).read_to_end(&mut content)?;
    Ok(content)
}
