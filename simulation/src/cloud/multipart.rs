//! S3's multipart uploads: S3's refusals, and what an upload leaves behind if it is never completed.
//!
//! Codes and their statuses: <https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html> and
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPart.html>. Limits:
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::RangeInclusive;

use spotsweep_control_plane::calls::{CallError, Part};

/// Least size of each part but the last.
pub const LEAST_BYTES: usize = 5 << 20;

const PART_NUMBERS: RangeInclusive<i32> = 1..=10_000;

/// The uploads of one account.
#[derive(Debug, Default)]
pub struct Uploads {
    /// Uploads that are neither completed nor aborted.
    open: BTreeMap<String, Upload>,
    completed: BTreeSet<String>,
    begun: u64,
}

#[derive(Debug)]
struct Upload {
    key: String,
    /// ETag and bytes, by number.
    parts: BTreeMap<i32, (String, Vec<u8>)>,
}

impl Uploads {
    /// Begins an upload and returns its id.
    pub fn begin(&mut self, key: &str) -> String {
        let id = format!("upload-{}", self.begun);
        self.begun += 1;
        self.open.insert(id.clone(), Upload { key: key.to_owned(), parts: BTreeMap::new() });
        id
    }

    /// Stores a part and returns its ETag. A part with the same number is replaced.
    ///
    /// # Errors
    /// If there is no such upload, or the number is not one of a part.
    pub fn put(&mut self, key: &str, id: &str, number: i32, body: Vec<u8>) -> Result<String, CallError> {
        if !PART_NUMBERS.contains(&number) {
            return Err(refused(400, "InvalidArgument"));
        }
        let upload = self.open.get_mut(id).filter(|upload| upload.key == key).ok_or_else(no_such_upload)?;
        let etag = etag(&body);
        upload.parts.insert(number, (etag.clone(), body));
        Ok(etag)
    }

    /// Joins these parts to an object; `None` if an earlier call has joined them.
    ///
    /// S3 answers a repeated call like the first one (<https://github.com/adobe/S3Mock/issues/2586> and
    /// <https://github.com/minio/minio/issues/13318> have tried that). Its documentation also permits `NoSuchUpload`,
    /// as the upload has been completed. Here every second upload answers that.
    ///
    /// # Errors
    /// S3's refusal of the parts or of the upload.
    pub fn complete(&mut self, key: &str, id: &str, parts: &[Part]) -> Result<Option<Vec<u8>>, CallError> {
        let Some(upload) = self.open.get(id).filter(|upload| upload.key == key) else {
            return if self.completed.contains(id) { Ok(None) } else { Err(no_such_upload()) };
        };
        let object = upload.joined(parts)?;
        self.open.remove(id);
        if self.begun.is_multiple_of(2) {
            self.completed.insert(id.to_owned());
        }
        Ok(Some(object))
    }
}

impl Upload {
    fn joined(&self, parts: &[Part]) -> Result<Vec<u8>, CallError> {
        if parts.is_empty() {
            return Err(refused(400, "MalformedXML"));
        }
        if !parts.is_sorted_by(|one, next| one.number < next.number) {
            return Err(refused(400, "InvalidPartOrder"));
        }
        let mut object = Vec::new();
        for (place, part) in parts.iter().enumerate() {
            let found = self.parts.get(&part.number).filter(|(etag, _)| part.etag.as_ref() == Some(etag));
            let (_, body) = found.ok_or_else(|| refused(400, "InvalidPart"))?;
            if body.len() < LEAST_BYTES && place + 1 < parts.len() {
                return Err(refused(400, "EntityTooSmall"));
            }
            object.extend_from_slice(body);
        }
        Ok(object)
    }
}

/// The ETag of these bytes.
pub(super) fn etag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

fn no_such_upload() -> CallError {
    refused(404, "NoSuchUpload")
}

fn refused(status: u16, code: &str) -> CallError {
    CallError::answered(status, code.to_owned(), "of a multipart upload".to_owned())
}
