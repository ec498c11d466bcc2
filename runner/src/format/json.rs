//! JSON: one value, and nothing after it but white space (RFC 8259).

use std::fs::File;
use std::io::{self, BufReader};

use serde::de::IgnoredAny;

use super::Completeness;

pub(super) fn completeness(file: File) -> io::Result<Completeness> {
    match serde_json::from_reader::<_, IgnoredAny>(BufReader::new(file)) {
        Ok(IgnoredAny) => Ok(Completeness::Whole),
        Err(error) if error.is_eof() => Ok(Completeness::Torn),
        // Python's `json` writes NaN, and some files of that name hold one value per line.
        Err(_) => Ok(Completeness::Unknown),
    }
}
