//! S3 objects, read and put whole.

use crate::calls::{Body as _, CallError, GetObject, Place, S3};

pub(super) const JSON: &str = "application/json";

/// The bytes of an object, or of the part of it that is wanted.
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
