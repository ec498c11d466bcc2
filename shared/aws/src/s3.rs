//! S3's calls over its SDK: it maps the fields of requests and answers.

use std::collections::BTreeMap;

use aws_config::SdkConfig;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::Builder;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use spotsweep_control_plane::calls::{
    Body, CallError, GetObject, ListObjects, ListedObject, NO_SUCH_KEY, Object, ObjectsPage, Part, Place, S3,
};
use spotsweep_control_plane::execute;
use spotsweep_control_plane::outcome::DataProblem;
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::Listing;
use spotsweep_sweep_file::DataSource;

use super::call_error::call_error;
use super::lazy::{Lazy, lazy};

/// The calls to S3 over its SDK.
#[derive(Debug)]
pub(super) struct S3Sdk(Lazy<Client>);

impl S3Sdk {
    pub(super) fn new(config: &SdkConfig) -> Self {
        Self(lazy(config, Client::new))
    }
}

pub(super) struct Stream(ByteStream);

impl Body for Stream {
    async fn bytes(self) -> Result<Vec<u8>, CallError> {
        let collected = self.0.collect().await.map_err(|error| CallError::Unclear(error.into()))?;
        Ok(collected.to_vec())
    }
}

impl S3 for S3Sdk {
    type Body = Stream;

    async fn get_object(&self, wanted: GetObject) -> Result<Object<Stream>, CallError> {
        let request = self.0.get_object().bucket(wanted.bucket).key(wanted.key).set_version_id(wanted.version);
        let found = request.set_range(wanted.range).send().await.map_err(|error| match is_gone(&error) {
            true => CallError::Refused { code: NO_SUCH_KEY.to_owned(), message: chain(&error) },
            false => call_error(error),
        })?;
        Ok(Object {
            length: found.content_length.and_then(|length| u64::try_from(length).ok()).unwrap_or(0),
            metadata: found.metadata.unwrap_or_default().into_iter().collect::<BTreeMap<_, _>>(),
            body: Stream(found.body),
        })
    }

    async fn list_objects(&self, wanted: ListObjects) -> Result<ObjectsPage, CallError> {
        let request = self.0.list_objects_v2().bucket(wanted.bucket).prefix(wanted.prefix);
        let request = request.set_delimiter(wanted.is_divided.then(|| "/".to_owned()));
        let request =
            request.set_start_after(wanted.after).set_max_keys(wanted.most).set_continuation_token(wanted.token);
        let found = request.send().await.map_err(call_error)?;
        let incomplete = || CallError::unclear("ListObjectsV2 answered with an object without key, size or ETag");
        let object = |object: aws_sdk_s3::types::Object| {
            let size = object.size.and_then(|size| u64::try_from(size).ok());
            let class = object.storage_class.map(|class| class.as_str().to_owned());
            let (key, size, etag) = (object.key?, size?, object.e_tag?);
            Some(ListedObject { key, size, etag, class })
        };
        let objects = found.contents.unwrap_or_default().into_iter().map(|found| object(found).ok_or_else(incomplete));
        let folders = found.common_prefixes.unwrap_or_default().into_iter().filter_map(|folder| folder.prefix);
        Ok(ObjectsPage {
            objects: objects.collect::<Result<_, _>>()?,
            folders: folders.collect(),
            next_token: found.next_continuation_token,
        })
    }

    async fn put_object(&self, place: Place, body: Vec<u8>) -> Result<(), CallError> {
        let request = self.0.put_object().bucket(place.bucket).key(place.key).content_type(place.content_type);
        request.body(body.into()).send().await.map_err(call_error)?;
        Ok(())
    }

    async fn create_multipart_upload(&self, place: Place) -> Result<String, CallError> {
        let request = self.0.create_multipart_upload().bucket(place.bucket).key(place.key);
        let begun = request.content_type(place.content_type).send().await.map_err(call_error)?;
        begun.upload_id.ok_or_else(|| CallError::unclear("CreateMultipartUpload answered without an upload id"))
    }

    async fn upload_part(&self, place: &Place, upload: &str, number: i32, body: Vec<u8>) -> Result<Part, CallError> {
        let request = self.0.upload_part().bucket(&place.bucket).key(&place.key).upload_id(upload);
        let put = request.part_number(number).body(body.into()).send().await.map_err(call_error)?;
        Ok(Part { number, etag: put.e_tag })
    }

    async fn complete_multipart_upload(&self, place: Place, upload: String, parts: Vec<Part>) -> Result<(), CallError> {
        let part = |part: Part| CompletedPart::builder().part_number(part.number).set_e_tag(part.etag).build();
        let parts = CompletedMultipartUpload::builder().set_parts(Some(parts.into_iter().map(part).collect())).build();
        let request = self.0.complete_multipart_upload().bucket(place.bucket).key(place.key).upload_id(upload);
        request.multipart_upload(parts).send().await.map_err(call_error)?;
        Ok(())
    }
}

/// Lists the objects of a data set, and returns what they are in figures.
///
/// # Errors
/// If S3 gives no clear answer. What is wrong with the data set is the inner error.
pub async fn measure(config: &SdkConfig, source: &DataSource) -> Result<Result<Listing, DataProblem>, CallError> {
    execute::measure(&S3Sdk::new(config), source).await
}

/// Whether the object or its version does not exist, or a delete marker is in its place.
pub fn is_gone(error: &SdkError<GetObjectError>) -> bool {
    let SdkError::ServiceError(service) = error else { return false };
    let code = service.err().code();
    service.err().is_no_such_key() || code == Some("NoSuchVersion") || service.raw().status().as_u16() == 405
}

/// Makes an S3 client. If the configuration has an endpoint, the bucket is in the path, because `bucket.127.0.0.1`
/// cannot be resolved.
pub fn path_style_s3(config: &SdkConfig) -> Client {
    let own_endpoint = config.endpoint_url().is_some();
    Client::from_conf(Builder::from(config).force_path_style(own_endpoint).build())
}
