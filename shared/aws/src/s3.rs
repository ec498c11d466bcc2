//! S3: what uploads, lines and results share.

use aws_config::SdkConfig;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::Builder;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::{GetObjectError, GetObjectOutput};

use super::BoxError;

/// Whether the object, or the version of it, is gone, or a delete marker stands in its place.
pub fn is_gone(error: &SdkError<GetObjectError>) -> bool {
    let SdkError::ServiceError(service) = error else { return false };
    let code = service.err().code();
    service.err().is_no_such_key() || code == Some("NoSuchVersion") || service.raw().status().as_u16() == 405
}

pub(super) async fn bytes(object: GetObjectOutput) -> Result<Vec<u8>, BoxError> {
    Ok(object.body.collect().await?.to_vec())
}

pub(super) async fn put(
    client: &Client,
    bucket: &str,
    key: String,
    body: Vec<u8>,
    content_type: &str,
) -> Result<(), BoxError> {
    client.put_object().bucket(bucket).key(key).content_type(content_type).body(body.into()).send().await?;
    Ok(())
}

/// S3 with the bucket in the path where there is an own endpoint: `bucket.127.0.0.1` resolves
/// nowhere.
pub fn path_style_s3(config: &SdkConfig) -> Client {
    let own_endpoint = config.endpoint_url().is_some();
    Client::from_conf(Builder::from(config).force_path_style(own_endpoint).build())
}
