//! The objects of a data set in S3, read with the trial's own credentials.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::ops::Range;

use aws_sdk_s3::Client;
use aws_sdk_s3::error::{DisplayErrorContext, SdkError};
use aws_sdk_s3::operation::get_object::{GetObjectError, GetObjectOutput};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::ServerSideEncryption;
use bytes::Bytes;
use spotsweep_data_cache::{Answer, Body, GetError, Objects, Wanted};
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
        let found = request.set_range(range).send().await.map_err(|error| refused(&error))?;
        Ok(Answer { etag_is_md5: is_md5(&found), body: Content(found.body) })
    }
}

/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html>
fn is_md5(found: &GetObjectOutput) -> bool {
    let is_plain = matches!(found.server_side_encryption, None | Some(ServerSideEncryption::Aes256));
    is_plain && found.sse_customer_algorithm.is_none()
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
