//! S3's calls on the objects in memory.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use spotsweep_control_plane::calls::{Body, CallError, GetObject, NO_SUCH_KEY, Object, Part, Place, S3, Wait};

use super::Cloud;
use super::client::Client;

/// The bytes of an object.
pub(super) struct Bytes(Vec<u8>);

impl Body for Bytes {
    async fn bytes(self) -> Result<Vec<u8>, CallError> {
        Ok(self.0)
    }
}

impl<W: Wait> S3 for Client<'_, W> {
    type Body = Bytes;

    async fn get_object(&self, wanted: GetObject) -> Result<Object<Bytes>, CallError> {
        let read = self.on("GetObject", Some(&wanted.key), || self.cloud.read(&wanted.key, wanted.range.as_deref()));
        let body = read.await??;
        let length = u64::try_from(body.len()).unwrap_or(u64::MAX);
        Ok(Object { length, metadata: BTreeMap::new(), body: Bytes(body) })
    }

    async fn put_object(&self, place: Place, body: Vec<u8>) -> Result<(), CallError> {
        self.on("PutObject", Some(&place.key), || self.cloud.put(&place.key, body)).await
    }

    async fn create_multipart_upload(&self, place: Place) -> Result<String, CallError> {
        let begun = || self.cloud.uploads.fetch_add(1, Ordering::Relaxed).to_string();
        self.on("CreateMultipartUpload", Some(&place.key), begun).await
    }

    async fn upload_part(&self, place: &Place, upload: &str, number: i32, body: Vec<u8>) -> Result<Part, CallError> {
        let put = || self.cloud.put(&part_key(upload, number), body);
        self.on("UploadPart", Some(&place.key), put).await?;
        Ok(Part { number, etag: None })
    }

    async fn complete_multipart_upload(&self, place: Place, upload: String, parts: Vec<Part>) -> Result<(), CallError> {
        let join = || {
            let parts = parts.iter().filter_map(|part| self.cloud.take(&part_key(&upload, part.number)));
            let object: Vec<u8> = parts.flatten().collect();
            self.cloud.put(&place.key, object);
        };
        self.on("CompleteMultipartUpload", Some(&place.key), join).await
    }
}

/// No object has such a key.
fn part_key(upload: &str, number: i32) -> String {
    format!("upload {upload}, part {number}")
}

impl Cloud {
    fn read(&self, key: &str, range: Option<&str>) -> Result<Vec<u8>, CallError> {
        let refused = |status, code: &str| Err(CallError::answered(status, code.to_owned(), key.to_owned()));
        if self.unreadable.load(Ordering::Relaxed) {
            return refused(403, "AccessDenied");
        }
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(object) = objects.get(key) else { return refused(404, NO_SUCH_KEY) };
        let wanted = range.map_or(Some(object.as_slice()), |range| part(object, range));
        wanted.map_or_else(|| refused(416, "InvalidRange"), |bytes| Ok(bytes.to_vec()))
    }
}

/// The bytes of a range: `bytes=<first>-<last>`, or `bytes=-<how many>` of the end.
fn part<'a>(object: &'a [u8], range: &str) -> Option<&'a [u8]> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let last: usize = last.parse().ok()?;
    match first {
        "" => object.get(object.len().saturating_sub(last)..),
        first => object.get(first.parse().ok()?..=last.min(object.len().checked_sub(1)?)),
    }
    .filter(|bytes| !bytes.is_empty())
}
