//! S3's calls on the objects in memory.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use spotsweep_control_plane::calls::{
    Body, CallError, GetObject, ListObjects, ListedObject, NO_SUCH_KEY, Object, ObjectsPage, Part, Place, S3, Wait,
};

use super::client::Client;
use super::multipart::{Uploads, etag};
use super::{BUCKET, Cloud};

/// The most keys of a page. S3's own limit is 1 000.
const PAGE_KEYS: usize = 3;

/// A bucket that does not exist, and one in another region.
const MISSING_BUCKET: &str = "no-such-bucket";
const DISTANT_BUCKET: &str = "far-away";

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
        let read =
            self.on(("s3", "GetObject"), Some(&wanted.key), || self.cloud.read(&wanted.key, wanted.range.as_deref()));
        let body = read.await??;
        let length = u64::try_from(body.len()).unwrap_or(u64::MAX);
        Ok(Object { length, metadata: BTreeMap::new(), body: Bytes(body) })
    }

    async fn list_objects(&self, wanted: ListObjects) -> Result<ObjectsPage, CallError> {
        self.on(("s3", "ListObjectsV2"), None, || self.cloud.list(&wanted)).await?
    }

    async fn put_object(&self, place: Place, body: Vec<u8>) -> Result<(), CallError> {
        self.on(("s3", "PutObject"), Some(&place.key), || self.cloud.put(&place.key, body)).await
    }

    async fn create_multipart_upload(&self, place: Place) -> Result<String, CallError> {
        self.on(("s3", "CreateMultipartUpload"), Some(&place.key), || self.cloud.uploads().begin(&place.key)).await
    }

    async fn upload_part(&self, place: &Place, upload: &str, number: i32, body: Vec<u8>) -> Result<Part, CallError> {
        let put = || self.cloud.uploads().put(&place.key, upload, number, body);
        let etag = self.on(("s3", "UploadPart"), Some(&place.key), put).await??;
        Ok(Part { number, etag: Some(etag) })
    }

    async fn complete_multipart_upload(&self, place: Place, upload: String, parts: Vec<Part>) -> Result<(), CallError> {
        let once = || {
            self.on(("s3", "CompleteMultipartUpload"), Some(&place.key), || {
                self.cloud.join(&place.key, &upload, &parts)
            })
        };
        match once().await {
            Ok(answer) => answer,
            // The SDK repeats a call without an answer. Of S3's calls, only this one may then get a different answer.
            Err(_unanswered) => once().await?,
        }
    }
}

impl Cloud {
    fn uploads(&self) -> MutexGuard<'_, Uploads> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, key: &str, upload: &str, parts: &[Part]) -> Result<(), CallError> {
        if let Some(object) = self.uploads().complete(key, upload, parts)? {
            self.put(key, object);
        }
        Ok(())
    }

    /// A page of the deployment's bucket. Every other bucket denies it.
    fn list(&self, wanted: &ListObjects) -> Result<ObjectsPage, CallError> {
        let refused = |status, code: &str| Err(CallError::answered(status, code.to_owned(), wanted.bucket.clone()));
        match wanted.bucket.as_str() {
            BUCKET => {}
            MISSING_BUCKET => return refused(404, "NoSuchBucket"),
            DISTANT_BUCKET => return refused(301, "PermanentRedirect"),
            _of_others => return refused(403, "AccessDenied"),
        }
        let most = wanted.most.and_then(|most| usize::try_from(most).ok()).unwrap_or(PAGE_KEYS).min(PAGE_KEYS);
        let (objects, classes) = (self.objects(), self.classes.lock().unwrap_or_else(PoisonError::into_inner));
        let after = wanted.token.as_ref().or(wanted.after.as_ref()).map_or("", String::as_str);
        let mut page = ObjectsPage::default();
        let below = objects.range(wanted.prefix.clone()..).take_while(|(key, _)| key.starts_with(&wanted.prefix));
        let mut last = "";
        for (key, bytes) in below {
            let rest = &key[wanted.prefix.len()..];
            let folder = rest.find('/').filter(|_| wanted.is_divided).map(|slash| &key[..=wanted.prefix.len() + slash]);
            let listed = folder.unwrap_or(key);
            if listed <= after || listed == last {
                continue;
            }
            if page.objects.len() + page.folders.len() == most {
                page.next_token = Some(last.to_owned());
                break;
            }
            last = listed;
            match folder {
                Some(folder) => page.folders.push(folder.to_owned()),
                None => {
                    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                    let class = classes.get(key).map(ToString::to_string);
                    page.objects.push(ListedObject { key: key.clone(), size, etag: etag(bytes), class });
                }
            }
        }
        Ok(page)
    }

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

/// The bytes of a range: `bytes=<first>-<last>`, or `bytes=-<count>` from the end.
fn part<'a>(object: &'a [u8], range: &str) -> Option<&'a [u8]> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let last: usize = last.parse().ok()?;
    match first {
        "" => object.get(object.len().saturating_sub(last)..),
        first => object.get(first.parse().ok()?..=last.min(object.len().checked_sub(1)?)),
    }
    .filter(|bytes| !bytes.is_empty())
}
