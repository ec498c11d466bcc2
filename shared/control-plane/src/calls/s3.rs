//! Amazon S3.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;

use super::CallError;

/// The code of the refusal if the object or its version does not exist, or has a delete marker.
pub const NO_SUCH_KEY: &str = "NoSuchKey";

/// The parameters of GetObject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetObject {
    /// Bucket name.
    pub bucket: String,
    /// Key.
    pub key: String,
    /// The version in a versioned bucket. The newest version is read where it is absent.
    pub version: Option<String>,
    /// `bytes=…` for a part of the object.
    pub range: Option<String>,
}

impl GetObject {
    /// Requests a whole object.
    pub fn of(bucket: impl Into<String>, key: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), key: key.into(), version: None, range: None }
    }
}

/// An object whose bytes have not been read yet.
#[derive(Debug)]
pub struct Object<B> {
    /// Number of bytes.
    pub length: u64,
    /// The metadata that its writer has set.
    pub metadata: BTreeMap<String, String>,
    /// The bytes, to be read.
    pub body: B,
}

/// The bytes of an object, to be read.
pub trait Body: Send {
    /// Reads all bytes.
    fn bytes(self) -> impl Future<Output = Result<Vec<u8>, CallError>> + Send;
}

/// Where an object is put, and its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Bucket name.
    pub bucket: String,
    /// Key.
    pub key: String,
    /// MIME type.
    pub content_type: &'static str,
}

/// One part of a multipart upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The part's number, from 1.
    pub number: i32,
    /// S3's ETag of the part.
    pub etag: Option<String>,
}

/// The parameters of ListObjectsV2.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListObjects {
    /// Bucket name.
    pub bucket: String,
    /// What the keys begin with.
    pub prefix: String,
    /// Whether the objects of folders below the prefix are left out, and the folders are listed instead.
    pub is_divided: bool,
    /// The text after which the listing begins; no object needs to have this key
    /// (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>).
    pub after: Option<String>,
    /// The most keys of the page; S3's own limit is 1 000.
    pub most: Option<i32>,
    /// The token of the page before.
    pub token: Option<String>,
}

impl ListObjects {
    /// Requests all objects of a bucket.
    pub fn of(bucket: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), ..Self::default() }
    }
}

/// A page of ListObjectsV2.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectsPage {
    /// The objects, in the order of their keys.
    pub objects: Vec<ListedObject>,
    /// The prefixes of folders, each with its last slash.
    pub folders: Vec<String>,
    /// The token of the next page, if there is one.
    pub next_token: Option<String>,
}

/// An object as a listing describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// Key.
    pub key: String,
    /// Size in bytes.
    pub size: u64,
    /// ETag, with its quotes.
    pub etag: String,
    /// Storage class.
    pub class: Option<String>,
}

/// The calls to S3 that the control plane makes.
pub trait S3: Debug + Send + Sync {
    /// The bytes of an object that is read.
    type Body: Body;

    /// Gets an object, or a part of one.
    fn get_object(&self, wanted: GetObject) -> impl Future<Output = Result<Object<Self::Body>, CallError>> + Send;

    /// Lists objects, a page at a time.
    fn list_objects(&self, wanted: ListObjects) -> impl Future<Output = Result<ObjectsPage, CallError>> + Send;

    /// Puts an object.
    fn put_object(&self, place: Place, body: Vec<u8>) -> impl Future<Output = Result<(), CallError>> + Send;

    /// Begins a multipart upload, and returns its id.
    fn create_multipart_upload(&self, place: Place) -> impl Future<Output = Result<String, CallError>> + Send;

    /// Uploads one part.
    fn upload_part(
        &self,
        place: &Place,
        upload: &str,
        number: i32,
        body: Vec<u8>,
    ) -> impl Future<Output = Result<Part, CallError>> + Send;

    /// Completes a multipart upload from its parts.
    fn complete_multipart_upload(
        &self,
        place: Place,
        upload: String,
        parts: Vec<Part>,
    ) -> impl Future<Output = Result<(), CallError>> + Send;
}
