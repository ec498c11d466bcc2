//! Gzip: each member ends with the checksum and length of its content
//! (<https://www.rfc-editor.org/rfc/rfc1952>, section 2.3).

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

use crate::Completeness;
use crate::source::{Source, is_about_content};

pub(crate) fn completeness(source: &mut Source<'_>) -> io::Result<Completeness> {
    let mut reader = source.reader(0);
    loop {
        match io::copy(&mut GzDecoder::new(&mut reader), &mut io::sink()) {
            Ok(_) => {}
            Err(error) if is_about_content(&error) => return Ok(Completeness::Torn),
            Err(error) => return Err(error),
        }
        match after_zeros(&mut reader)? {
            None => return Ok(Completeness::Whole),
            Some(0x1f) => {}
            // Python refuses other bytes after a member, and gzip itself ignores them.
            Some(_) => return Ok(Completeness::Unknown),
        }
    }
}

/// The next byte, which stays unread, after zeros: Python's `gzip` passes over such padding.
fn after_zeros<R: Read>(reader: &mut BufReader<R>) -> io::Result<Option<u8>> {
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(None);
        }
        let zeros = buffer.iter().take_while(|byte| **byte == 0).count();
        let next = buffer.get(zeros).copied();
        reader.consume(zeros);
        if next.is_some() {
            return Ok(next);
        }
    }
}
