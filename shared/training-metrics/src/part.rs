//! What is new in a file that is read in pieces.

use crate::logged::Logged;

/// What is new in a file.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) found: Vec<Logged>,
    /// Bytes that are read.
    pub(crate) offset: u64,
    /// Whether a checksum does not fit: nothing after it can be read.
    pub(crate) is_broken: bool,
}
