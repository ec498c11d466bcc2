//! The objects of a data set in S3, read with the trial's own credentials.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::ops::Range;

use aws_sdk_s3::Client;
use aws_sdk_s3::error::{DisplayErrorContext, SdkError};
use aws_sdk_s3::operation::get_object::{GetObjectError, GetObjectOutput};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumMode, ServerSideEncryption};
use bytes::Bytes;
use spotsweep_data_cache::{Answer, Body, Check, GetError, Objects, Wanted};
use spotsweep_protocol::claim::{DataObject, DataSet, listing_key};
use tokio::task::block_in_place;

/// One data set.
pub(super) struct S3Objects {
    s3: Client,
    set: DataSet,
    /// The deployment's bucket, and the key of the listing.
    listing: (String, String),
}

impl S3Objects {
    pub(super) fn new((s3, bucket): (&Client, &str), sweep: &str, set: &DataSet) -> Self {
        let listing = (bucket.to_owned(), listing_key(sweep, &set.name));
        Self { s3: s3.clone(), set: set.clone(), listing }
    }
}

impl Objects for S3Objects {
    type Body = Content;

    async fn listing(&self) -> Result<File, GetError> {
        let (bucket, key) = &self.listing;
        let found = self.s3.get_object().bucket(bucket).key(key).send().await.map_err(|error| refused(&error))?;
        let mut content = Content(found.body);
        let failed = |error: std::io::Error| GetError::Broken(error.to_string());
        // The file has no name, so the end of the runner removes it.
        let mut file = block_in_place(tempfile::tempfile).map_err(failed)?;
        while let Some(piece) = content.next().await {
            let piece = piece?;
            block_in_place(|| file.write_all(&piece)).map_err(failed)?;
        }
        file.rewind().map_err(failed)?;
        Ok(file)
    }

    async fn get(&self, wanted: &Wanted<'_>) -> Result<Answer<Content>, GetError> {
        let object = DataObject { key: wanted.key.to_owned(), size: 0, etag: String::new() };
        let request = self.s3.get_object().bucket(&self.set.bucket).key(self.set.key(&object)).if_match(wanted.etag);
        let range = wanted.range.clone().map(|Range { start, end }| format!("bytes={start}-{}", end.saturating_sub(1)));
        let is_whole = range.is_none();
        let request = request.set_range(range).checksum_mode(ChecksumMode::Enabled);
        let found = request.send().await.map_err(|error| refused(&error))?;
        Ok(Answer { check: check(&found, is_whole), body: Content(found.body) })
    }
}

/// The SDK compares a whole object with its CRC, which takes less time than an MD5. S3 adds a CRC64NVME to objects that
/// are uploaded without a checksum (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_Checksum.html>). A CRC with a
/// hyphen is computed from those of the object's parts, and the SDK does not compare it.
fn check(found: &GetObjectOutput, is_whole: bool) -> Check {
    let is_plain = matches!(found.server_side_encryption, None | Some(ServerSideEncryption::Aes256));
    let crcs = [&found.checksum_crc64_nvme, &found.checksum_crc32_c, &found.checksum_crc32];
    let has_crc = crcs.into_iter().flatten().next().is_some_and(|crc| !crc.contains('-'));
    if is_whole && has_crc {
        Check::Source
    } else if is_plain && found.sse_customer_algorithm.is_none() {
        Check::Md5
    } else {
        Check::Nothing
    }
}

fn refused(error: &SdkError<GetObjectError>) -> GetError {
    let status = error.raw_response().map(|answer| answer.status().as_u16());
    let message = || DisplayErrorContext(error).to_string();
    match status {
        Some(412) => GetError::Changed,
        Some(404) => GetError::Gone,
        // S3 closes requests that take too long with 400 and 408
        // (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html).
        Some(400 | 403 | 405) => GetError::Denied(message()),
        Some(503) => GetError::Busy(message()),
        Some(_) | None => GetError::Broken(message()),
    }
}

/// The content of an answer. The SDK ends a stream in which nothing arrives.
pub(super) struct Content(ByteStream);

impl Body for Content {
    async fn next(&mut self) -> Option<Result<Bytes, GetError>> {
        let piece = self.0.next().await?;
        Some(piece.map_err(|error| GetError::Broken(DisplayErrorContext(&error).to_string())))
    }
}
