//! The data sets that a sweep's trainings read, and the listings to which they are pinned.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::words::{duration, hexadecimal, size};

/// The variable of a job definition with the path in the container of the instance's cache of data sets.
pub const DATA_CACHE: &str = "SPOTSWEEP_DATA";

/// The folder of a container below which trainings find their data sets.
pub const DATA_FOLDER: &str = "/data";

/// A data set, pinned: every attempt of the sweep reads the objects of its listing, or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSet {
    /// The name in the sweep file, which is also the folder's name below [`DATA_FOLDER`].
    pub name: String,
    /// The bucket of the objects.
    pub bucket: String,
    /// What all keys begin with: nothing, or a prefix with its last slash. Of a single object it is the whole key.
    pub prefix: String,
    /// Whether archives among the objects are unpacked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpack: bool,
    /// The listing's contents.
    #[serde(flatten)]
    pub listing: Listing,
}

/// What a listing has, in figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// SHA-256 of the listing's own bytes, in hexadecimal.
    pub sha256: String,
    /// Number of objects.
    pub objects: u64,
    /// Size of all objects in bytes.
    pub bytes: u64,
}

/// One object of a data set: a line of its listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataObject {
    /// The file's path in the data set's folder: the key without the data set's prefix, or the last part of the key of
    /// a single object.
    pub key: String,
    /// Size in bytes.
    pub size: u64,
    /// S3's ETag, with its quotes. Each request for the object names it, so that S3 refuses another content.
    pub etag: String,
}

impl DataSet {
    /// Returns the name under which instances keep the data set. Two data sets with the same name have the same bytes.
    pub fn id(&self) -> String {
        let Self { name: _, bucket, prefix, unpack, listing } = self;
        // Neither a bucket's name nor a hash has a line feed.
        let text = format!("{bucket}\n{}\n{unpack}\n{prefix}", listing.sha256);
        hexadecimal(Sha256::digest(text))
    }

    /// Returns the whole key of one of its objects.
    pub fn key(&self, object: &DataObject) -> String {
        let is_folder = self.prefix.is_empty() || self.prefix.ends_with('/');
        if is_folder { format!("{}{}", self.prefix, object.key) } else { self.prefix.clone() }
    }

    /// Returns what the keys of its objects begin with, after the bucket's name.
    pub fn place(&self) -> String {
        format!("{}/{}", self.bucket, self.prefix)
    }

    /// Returns the variable with the path of the data set's folder.
    pub fn variable(&self) -> String {
        data_variable(&self.name)
    }
}

/// Returns the variable with the path of the folder of a data set.
pub fn data_variable(name: &str) -> String {
    format!("SPOTSWEEP_DATA_{}", name.to_ascii_uppercase().replace('-', "_"))
}

/// Returns the key of a data set's listing in the deployment's bucket.
pub fn listing_key(sweep: &str, name: &str) -> String {
    format!("results/{sweep}/data/{name}.jsonl")
}

/// How far an attempt has fetched its data sets. What the instance already had counts in neither figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fetch {
    /// Bytes that have arrived.
    pub bytes: u64,
    /// Bytes of all data sets that the attempt fetches, or waits for while another attempt fetches them.
    pub of_bytes: u64,
    /// Seconds since the first request.
    pub seconds: u64,
}

impl Fetch {
    /// Returns the sum of what two attempts fetch at the same time.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            of_bytes: self.of_bytes + other.of_bytes,
            seconds: self.seconds.max(other.seconds),
        }
    }

    /// Whether bytes are missing.
    pub fn is_under_way(&self) -> bool {
        self.bytes < self.of_bytes
    }
}

impl fmt::Display for Fetch {
    /// The bytes, the mean rate, and the time that is left at this rate, or that was taken.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, of_bytes, seconds } = *self;
        let taken = seconds.max(1) as f64;
        let rate = bytes as f64 / taken;
        if !self.is_under_way() {
            return write!(to, "{} in {} ({}/s)", size(of_bytes), duration(taken), size(rate as u64));
        }
        write!(to, "{} of {}", size(bytes), size(of_bytes))?;
        if bytes == 0 {
            return Ok(());
        }
        let left = (of_bytes - bytes) as f64 / rate;
        write!(to, ", {}/s, {} left", size(rate as u64), duration(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_says_how_fast_it_is_and_how_long_it_takes() {
        let text = |bytes, seconds| Fetch { bytes, of_bytes: 10 << 30, seconds }.to_string();
        assert_eq!(text(0, 3), "0 bytes of 10.0 GiB");
        assert_eq!(text(2 << 30, 16), "2.0 GiB of 10.0 GiB, 128.0 MiB/s, 1 min 04 s left");
        assert_eq!(text(10 << 30, 80), "10.0 GiB in 1 min 20 s (128.0 MiB/s)");
    }

    #[test]
    fn another_content_has_another_id() {
        let listing = Listing { sha256: "ab".to_owned(), objects: 1, bytes: 2 };
        let set = DataSet {
            name: "image-net".to_owned(),
            bucket: "b".to_owned(),
            prefix: "p/".to_owned(),
            unpack: false,
            listing,
        };
        assert_eq!(set.variable(), "SPOTSWEEP_DATA_IMAGE_NET");
        assert_eq!(DataSet { name: "other".to_owned(), ..set.clone() }.id(), set.id());
        let listing = Listing { sha256: "ac".to_owned(), ..set.listing };
        let others = [
            DataSet { bucket: "c".to_owned(), ..set.clone() },
            DataSet { prefix: "q/".to_owned(), ..set.clone() },
            DataSet { unpack: true, ..set.clone() },
            DataSet { listing, ..set.clone() },
        ];
        assert!(others.iter().all(|other| other.id() != set.id()));
    }
}
