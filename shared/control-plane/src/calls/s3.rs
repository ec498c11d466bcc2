//! Amazon S3.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;

use super::CallError;

/// The code of a refusal where the object, or the version of it, is gone, or a delete marker is in its place.
pub const NO_SUCH_KEY: &str = "NoSuchKey";

/// GetObject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetObject {
    /// Bucket name.
    pub bucket: String,
    /// Key.
    pub key: String,
    /// Of a versioned bucket; the newest version where it is absent.
    pub version: Option<String>,
    /// `bytes=…`, for a part of it.
    pub range: Option<String>,
}

impl GetObject {
    /// All of an object.
    pub fn of(bucket: impl Into<String>, key: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), key: key.into(), version: None, range: None }
    }
}

/// An object whose bytes are on their way.
#[derive(Debug)]
pub struct Object<B> {
    /// Bytes.
    pub length: u64,
    /// What its writer says of it.
    pub metadata: BTreeMap<String, String>,
    /// The bytes.
    pub body: B,
}

/// Bytes on their way.
pub trait Body: Send {
    /// Takes them all in.
    fn bytes(self) -> impl Future<Output = Result<Vec<u8>, CallError>> + Send;
}

/// Where an object is put, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Bucket name.
    pub bucket: String,
    /// Key.
    pub key: String,
    /// MIME type.
    pub content_type: &'static str,
}

/// A part of an object that is put in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// From 1.
    pub number: i32,
    /// S3's word for its bytes.
    pub etag: Option<String>,
}

/// S3, as the control plane uses it.
pub trait S3: Debug + Send + Sync {
    /// Bytes on their way.
    type Body: Body;

    /// Gets an object, or a part of it.
    fn get_object(&self, wanted: GetObject) -> impl Future<Output = Result<Object<Self::Body>, CallError>> + Send;

    /// Puts an object.
    fn put_object(&self, place: Place, body: Vec<u8>) -> impl Future<Output = Result<(), CallError>> + Send;

    /// Begins an object that is put in parts: the id of the upload.
    fn create_multipart_upload(&self, place: Place) -> impl Future<Output = Result<String, CallError>> + Send;

    /// Puts a part.
    fn upload_part(
        &self,
        place: &Place,
        upload: &str,
        number: i32,
        body: Vec<u8>,
    ) -> impl Future<Output = Result<Part, CallError>> + Send;

    /// Makes an object of its parts.
    fn complete_multipart_upload(
        &self,
        place: Place,
        upload: String,
        parts: Vec<Part>,
    ) -> impl Future<Output = Result<(), CallError>> + Send;
}
