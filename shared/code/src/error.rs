//! Why code is not listed, packed or unpacked.

use std::io;

/// Why a folder cannot be listed.
#[cfg(feature = "pack")]
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// A folder or file cannot be read, or was removed meanwhile.
    #[error("`{path}` cannot be read: {source}; make it readable, or leave it out with `exclude` in the sweep file")]
    Read {
        /// The path, with control characters escaped.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A path that cannot be in an archive.
    #[error("`{path}` cannot be sent: {why}; rename it, or leave it out with `exclude` in the sweep file")]
    Name {
        /// The path, with control characters and bytes that are not UTF-8 escaped.
        path: String,
        /// Why.
        why: &'static str,
    },
    /// A pattern that cannot be read.
    #[error("the pattern `{pattern}` of {list} cannot be read: {problem}; write it as in a .gitignore file")]
    Pattern {
        /// The ignore file, or `include` or `exclude`.
        list: String,
        /// The pattern.
        pattern: String,
        /// Why.
        problem: String,
    },
    /// More files than [`crate::MOST_ENTRIES`].
    #[error("the folder has more than 1 000 000 files to send; leave some out with `exclude` in the sweep file")]
    TooMany,
}

/// Why a folder is not packed.
#[cfg(feature = "pack")]
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file is not the one that was listed.
    #[error(
        "`{path}` was changed while the code was packed; wait until nothing writes to it, or leave it out with \
             `exclude` in the sweep file, and submit again"
    )]
    Changed {
        /// The path in the folder.
        path: String,
    },
    /// A file cannot be read, or was removed.
    #[error("`{path}` cannot be read: {source}; make it readable, or leave it out with `exclude` in the sweep file")]
    Read {
        /// The path in the folder.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The archive cannot be written.
    #[error("the archive of the code cannot be written: {0}")]
    Write(#[source] io::Error),
}

/// Why an archive is not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The archive cannot be read.
    #[error("the archive of the code cannot be read: {0}")]
    Archive(#[source] io::Error),
    /// The archive is cut off, damaged, or no Zstandard frame with a tar in it.
    #[error(
        "the archive of the code is incomplete or damaged: {0}; delete it in the bucket and submit the sweep again"
    )]
    Compression(#[source] io::Error),
    /// The tar is larger than allowed.
    #[error("the code has more than {limit_bytes} bytes; leave files out with `exclude` in the sweep file")]
    TooLarge {
        /// The limit, in bytes of the tar.
        limit_bytes: u64,
    },
    /// The tar has more entries than [`MOST_ENTRIES`].
    #[error("the code has more than 1 000 000 files; leave files out with `exclude` in the sweep file")]
    TooMany,
    /// The tar is another one than its name says.
    #[error(
        "the archive of the code has the SHA-256 {found} instead of {expected}; delete it in the bucket and submit the \
         sweep again"
    )]
    Hash {
        /// The hash in the archive's name.
        expected: String,
        /// The hash of the tar.
        found: String,
    },
    /// `spotsweep submit` writes no such tar.
    #[error("the archive of the code has {what} at byte {at} of its tar; pack the code with `spotsweep submit`")]
    Header {
        /// Where in the tar, in bytes.
        at: u64,
        /// What is there.
        what: &'static str,
    },
    /// A file or link that could be written somewhere else, or twice.
    #[error("`{path}` in the archive of the code is refused: {why}; pack the code with `spotsweep submit`")]
    Entry {
        /// The path, with control characters escaped.
        path: String,
        /// Why.
        why: &'static str,
    },
    /// A file cannot be written.
    #[error("the file `{path}` of the code cannot be written: {source}")]
    Write {
        /// The path in the folder.
        path: String,
        /// Why.
        source: io::Error,
    },
}
