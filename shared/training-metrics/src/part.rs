//! What is new in a file that is read in pieces.

use serde::{Deserialize, Serialize};

use crate::logged::Logged;

/// So much of a file is read and held at once.
pub(crate) const PIECE_BYTES: u64 = 256 * 1024;

/// When a file is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Read {
    /// Before the training starts: what is there was logged before.
    Before,
    /// While it runs.
    During,
    /// After its end.
    Last,
}

/// What is new in a file: a part of it, so that what is held does not grow with the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// What was logged together, in the order of the file.
    pub logged: Vec<Logged>,
    /// Whether the next part may be read at once.
    pub has_more: bool,
}

/// What is new in a file of records.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) found: Vec<Logged>,
    /// Bytes that are read.
    pub(crate) offset: u64,
    /// Whether a checksum does not fit: nothing after it can be read.
    pub(crate) is_broken: bool,
    /// Whether more follows.
    pub(crate) has_more: bool,
}
