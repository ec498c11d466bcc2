//! The new content of a file that is read in pieces.

use serde::{Deserialize, Serialize};

use crate::logged::Logged;

/// The bytes of a file that are read and held at once.
pub(crate) const PIECE_BYTES: u64 = 256 * 1024;

/// The time at which a file is read, relative to the training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Read {
    /// Before the training starts. All content was logged earlier.
    Before,
    /// While the training runs.
    During,
    /// After the end of the training.
    Last,
}

/// A part of the new content of a file. Reading in parts bounds the memory, however long the file is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// What was logged together, in the order of the file.
    pub logged: Vec<Logged>,
    /// Whether the next part may be read at once.
    pub has_more: bool,
}

/// A part of the new content of a file of records.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) found: Vec<Logged>,
    pub(crate) offset: u64,
    /// Whether a checksum is wrong. Nothing after it can be read.
    pub(crate) is_broken: bool,
    pub(crate) has_more: bool,
}
