//! Gzip: each member ends with the checksum and length of its content (RFC 1952).

use std::fs::File;
use std::io;

use flate2::read::MultiGzDecoder;

use super::Completeness;

pub(super) fn completeness(file: File) -> io::Result<Completeness> {
    Ok(io::copy(&mut MultiGzDecoder::new(file), &mut io::sink()).is_ok().into())
}
