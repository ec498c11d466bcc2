//! Reads and writes whole S3 objects.

use crate::calls::{Body as _, CallError, GetObject, Place, S3};

pub(super) const JSON: &str = "application/json";

/// Reads the bytes of an object, or the requested part of them.
pub(super) async fn read(s3: &impl S3, wanted: GetObject) -> Result<Vec<u8>, CallError> {
    s3.get_object(wanted).await?.body.bytes().await
}

pub(super) async fn put(
    s3: &impl S3,
    bucket: &str,
    key: String,
    body: Vec<u8>,
    content_type: &'static str,
) -> Result<(), CallError> {
    s3.put_object(Place { bucket: bucket.to_owned(), key, content_type }, body).await
}
