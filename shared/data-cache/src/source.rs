//! Where the objects of a data set come from.

use std::fs::File;
use std::ops::Range;

use bytes::Bytes;

/// The objects of one data set.
pub trait Objects: Send + Sync + 'static {
    /// The content of an answer.
    type Body: Body;

    /// Returns the set's listing as a file that is read from its beginning. It is asked for only if the set has to be
    /// fetched.
    fn listing(&self) -> impl Future<Output = Result<File, GetError>> + Send;

    /// Asks for an object, or for a part of it. The request must carry the ETag as `If-Match`, so that S3 refuses
    /// another content: <https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html>.
    fn get(&self, wanted: &Wanted<'_>) -> impl Future<Output = Result<Answer<Self::Body>, GetError>> + Send;
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The key, without the data set's prefix.
    pub key: &'a str,
    /// The ETag, with its quotes.
    pub etag: &'a str,
    /// The bytes, if not the whole object is wanted. They are never none. The last one of an HTTP range is part of it,
    /// so `0..8` is `bytes=0-7`.
    pub range: Option<Range<u64>>,
}

/// An answer whose content is to be read.
#[derive(Debug)]
pub struct Answer<B> {
    /// The content.
    pub body: B,
    /// How the content can be checked.
    pub check: Check,
}

/// How the content of an object can be checked, besides its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The source computes a checksum while the whole object is read, and ends it with an error if it is wrong. A ranged
    /// request has no such checksum.
    Source,
    /// An ETag of 32 hexadecimal digits is the MD5. That is so with SSE-S3 and without encryption:
    /// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html>.
    Md5,
    /// There is nothing to compare it with.
    Nothing,
}

/// The content of an answer, piece by piece.
pub trait Body: Send {
    /// Returns the next piece, or `None` at the end. An error after the last byte says that a checksum is wrong. The
    /// source ends a body that stalls with [`GetError::Broken`].
    fn next(&mut self) -> impl Future<Output = Option<Result<Bytes, GetError>>> + Send;
}

/// Why an object does not arrive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GetError {
    /// The object has another ETag (412).
    #[error("it was changed")]
    Changed,
    /// There is no such object (404).
    #[error("it does not exist")]
    Gone,
    /// The request is refused (403, or another answer that stays the same).
    #[error("access was refused: {0}")]
    Denied(String),
    /// The service asks for fewer requests (503). S3 answers so while it gets ready for more of them:
    /// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html>.
    #[error("{0}")]
    Busy(String),
    /// The network or the service has failed. Another try may succeed.
    #[error("{0}")]
    Broken(String),
}
