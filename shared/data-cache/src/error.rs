//! Why a data set is not on the disk.

use std::io;

use spotsweep_protocol::claim::KeyProblem;

use crate::next::Shortage;
use crate::source::GetError;

/// Why a data set cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The object was changed after the sweep was accepted.
    #[error("`{key}` has changed since the sweep was accepted; submit the sweep again to train on the new content")]
    Changed {
        /// The key without the set's prefix.
        key: String,
    },
    /// The object was deleted after the sweep was accepted.
    #[error("`{key}` has been deleted since the sweep was accepted; restore it, or submit the sweep again")]
    Gone {
        /// The key without the set's prefix.
        key: String,
    },
    /// The object must not be read.
    #[error("`{key}` cannot be read: {message}; allow the trials' role to read it")]
    Denied {
        /// The key without the set's prefix.
        key: String,
        /// S3's answer.
        message: String,
    },
    /// The content that arrived is not the object's.
    #[error("`{key}` arrived damaged: {why}")]
    Damaged {
        /// The key without the set's prefix.
        key: String,
        /// What is wrong with it.
        why: String,
    },
    /// The network or the service has failed repeatedly. Another attempt may succeed.
    #[error("`{key}` did not arrive: {message}")]
    Broken {
        /// The key without the set's prefix.
        key: String,
        /// The last failure.
        message: String,
    },
    /// Nothing has arrived for this many seconds. Another attempt may succeed.
    #[error("nothing has arrived for {seconds} s")]
    Standstill {
        /// The seconds.
        seconds: u64,
    },
    /// The listing cannot be had.
    #[error("the listing did not arrive: {0}")]
    Listing(#[source] GetError),
    /// The listing is not the one to which the set is pinned.
    #[error("the listing is damaged: {0}; submit the sweep again")]
    DamagedListing(String),
    /// A key of the listing cannot be a file's path.
    #[error(transparent)]
    Key(#[from] KeyProblem),
    /// The disk has not enough room.
    #[error(
        "{} bytes are needed, {} are free, {} more are taken by data sets that are not in use, and {} by those in use; \
         use instances with a larger disk, or a smaller data set",
        .0.needed, .0.free, .0.evictable, .0.in_use
    )]
    DoesNotFit(Shortage),
    /// The disk is full, though there seemed to be room.
    #[error("the disk is full; use instances with a larger disk, or a smaller data set")]
    DiskFull,
    /// An archive cannot be unpacked.
    #[error("the archive `{key}` cannot be unpacked: {why}")]
    Archive {
        /// The key without the set's prefix.
        key: String,
        /// Which entry, and why.
        why: String,
    },
    /// The disk has failed.
    #[error("could not {what}: {source}")]
    Disk {
        /// The operation.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl DataError {
    /// Whether another attempt may succeed, so that this one is an interruption and not a failure.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Broken { .. }
            | Self::Standstill { .. }
            | Self::Listing(GetError::Broken(_) | GetError::Busy(_))
            // The disk of another instance may be fine.
            | Self::Disk { .. } => true,
            Self::Changed { .. }
            | Self::Gone { .. }
            | Self::Denied { .. }
            | Self::Damaged { .. }
            | Self::Listing(GetError::Changed | GetError::Gone | GetError::Denied(_))
            | Self::DamagedListing(_)
            | Self::Key(_)
            // `Shortage::is_caused_by_others` says whether another attempt may find room.
            | Self::DoesNotFit(_)
            | Self::DiskFull
            | Self::Archive { .. } => false,
        }
    }

    /// The error of an operation on the disk.
    pub(crate) fn disk(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| {
            if source.kind() == io::ErrorKind::StorageFull { Self::DiskFull } else { Self::Disk { what, source } }
        }
    }

    /// The error of a request for an object.
    pub(crate) fn get(key: &str, error: GetError) -> Self {
        let key = key.to_owned();
        match error {
            GetError::Changed => Self::Changed { key },
            GetError::Gone => Self::Gone { key },
            GetError::Denied(message) => Self::Denied { key, message },
            GetError::Broken(message) | GetError::Busy(message) => Self::Broken { key, message },
        }
    }
}
