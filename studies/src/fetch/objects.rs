//! The synthetic objects of a data set. Their bytes are made from one block, so that the server copies nothing.

use std::ops::Range;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use crc_fast::CrcAlgorithm;
use md5::{Digest as _, Md5};
use sha2::Sha256;
use spotsweep_protocol::claim::{DataObject, DataSet, Listing};
use spotsweep_protocol::words::hexadecimal;

/// The bucket of everything.
pub(super) const BUCKET: &str = "b";
/// The prefix of the data set.
pub(super) const PREFIX: &str = "data/set/";
/// The data set's name.
pub(super) const NAME: &str = "set";
/// The objects in a folder.
const IN_FOLDER: u64 = 1_000;
const BLOCK_BYTES: usize = 1 << 20;

/// What every object repeats from its beginning to its end.
static BLOCK: LazyLock<Vec<u8>> = LazyLock::new(|| {
    // Marsaglia's xorshift64: https://doi.org/10.18637/jss.v008.i14.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.take(BLOCK_BYTES / 8).flatten().collect()
});

/// Objects of the same size and content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objects {
    /// How many there are.
    pub number: u64,
    /// The size of each.
    pub bytes: u64,
    etag: String,
    crc64_nvme: String,
}

impl Objects {
    /// Computes the ETag, which is the content's MD5, and the checksum.
    pub fn new(number: u64, bytes: u64) -> Self {
        let (mut hash, mut crc) = (Md5::new(), crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme));
        pieces(0..bytes).for_each(|piece| {
            hash.update(piece);
            crc.update(piece);
        });
        let etag = format!("\"{}\"", hexadecimal(hash.finalize()));
        Self { number, bytes, etag, crc64_nvme: BASE64_STANDARD.encode(crc.finalize().to_be_bytes()) }
    }

    /// The bytes of all objects.
    pub fn total(&self) -> u64 {
        self.number * self.bytes
    }

    /// Returns the ETag of each object, with its quotes.
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// Returns the CRC64NVME of each object in base64, which S3 computes where its uploader gave no checksum
    /// (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_Checksum.html>).
    pub(super) fn crc64_nvme(&self) -> &str {
        &self.crc64_nvme
    }

    /// Returns the path of an object in the data set. The paths are in the order of their numbers.
    pub(super) fn path(number: u64) -> String {
        format!("{:06}/{number:09}.bin", number / IN_FOLDER)
    }

    /// Whether there is an object with this key.
    pub(super) fn has(&self, key: &str) -> bool {
        let path = key.strip_prefix(PREFIX);
        let number = path.and_then(|path| path.split_once('/')?.1.strip_suffix(".bin")?.parse().ok());
        number.is_some_and(|number| number < self.number && path == Some(Self::path(number).as_str()))
    }

    /// Returns the listing, as `sweep-upload` writes it.
    pub(super) fn listing(&self) -> Vec<u8> {
        let line = |number| {
            let object = DataObject { key: Self::path(number), size: self.bytes, etag: self.etag.clone() };
            serde_json::json!(object).to_string() + "\n"
        };
        (0..self.number).flat_map(|number| line(number).into_bytes()).collect()
    }

    /// Returns the data set as a grant has it.
    pub(super) fn data_set(&self) -> DataSet {
        let sha256 = hexadecimal(Sha256::digest(self.listing()));
        let listing = Listing { sha256, objects: self.number, bytes: self.total() };
        DataSet { name: NAME.to_owned(), bucket: BUCKET.to_owned(), prefix: PREFIX.to_owned(), unpack: false, listing }
    }
}

/// Returns the bytes of a range of every object, piece by piece.
pub(super) fn pieces(range: Range<u64>) -> impl Iterator<Item = &'static [u8]> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let start = (at % BLOCK_BYTES as u64) as usize;
        let length = (BLOCK_BYTES - start).min((range.end - at) as usize);
        at += length as u64;
        (length > 0).then(|| &BLOCK[start..start + length])
    })
}
