//! A person's code folder as an archive.
//!
//! [`list`] decides which files of the folder go in, [`pack`] writes them as a tar that Zstandard compresses, and
//! [`unpack`] writes them again where the training runs. The archive's name is the SHA-256 of the tar, so the same code
//! has the same name whatever version of the compressor wrote it.
//!
//! An attempt unpacks into a folder that earlier attempts of the training could write. So every path there is opened
//! with [`spotsweep_beneath`], which follows no link.
//!
//! The feature `pack` has `list` and `pack`, which only the command line needs.

/// The most bytes of a folder's archive before compression: S3 takes no more in one PutObject
/// (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html>).
pub const MOST_BYTES: u64 = 5 << 30;

mod content;
mod error;
mod names;
mod place;
mod reader;
mod unpack;

#[cfg(feature = "pack")]
mod data_sets;
#[cfg(feature = "pack")]
mod item;
#[cfg(feature = "pack")]
mod left_out;
#[cfg(feature = "pack")]
mod list;
#[cfg(feature = "pack")]
mod listing;
#[cfg(feature = "pack")]
mod pack;
#[cfg(feature = "pack")]
mod rules;
#[cfg(feature = "pack")]
mod secrets;
#[cfg(feature = "pack")]
mod stream;
#[cfg(all(test, feature = "pack"))]
mod tests;
#[cfg(feature = "pack")]
mod tokens;
#[cfg(feature = "pack")]
mod walk;

pub use content::Content;
pub use error::UnpackError;
pub use names::MOST_ENTRIES;
pub use unpack::{Unpacked, unpack, verify};

#[cfg(feature = "pack")]
pub use {
    data_sets::{LARGEST_BYTES, MOST_DATA_FILES},
    error::{ListError, PackError},
    item::Item,
    left_out::{Finding, LeftOut, Reason, Secret, pattern},
    list::list,
    listing::Listing,
    pack::{Packed, pack},
    rules::Selection,
};
