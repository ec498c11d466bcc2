//! What is under one path of an archive.

/// What is under one path of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A regular file.
    File {
        /// Its length in bytes.
        bytes: u64,
        /// Whether its owner may execute it.
        executable: bool,
    },
    /// A symbolic link.
    Link {
        /// Its target, relative to the folder of the link. It stays in the packed folder.
        target: String,
    },
}

impl Content {
    /// Returns the length of a file in bytes, and 0 for a link.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::File { bytes, .. } => *bytes,
            Self::Link { .. } => 0,
        }
    }
}
