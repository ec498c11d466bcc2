//! One file or link that is packed.

use spotsweep_beneath::{Kind, Status};

use crate::content::Content;

/// One file or link that is packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The path in the folder, with `/` between the names.
    pub path: String,
    /// What is there.
    pub content: Content,
    /// When a file was modified, in nanoseconds since 1970. 0 for a link.
    pub modified_ns: i64,
}

impl Item {
    /// Whether an open file is still the listed one.
    pub(crate) fn is(&self, status: &Status) -> bool {
        status.kind == Kind::File && content_of(status) == self.content && status.modified_ns == self.modified_ns
    }
}

/// Returns what is under the path of a regular file.
pub(crate) fn content_of(status: &Status) -> Content {
    Content::File { bytes: status.bytes, executable: status.mode & 0o100 != 0 }
}
