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
const LEAST_BYTES: usize = 5 << 20;

const PART_NUMBERS: RangeInclusive<i32> = 1..=10_000;

/// The uploads of one account.
#[derive(Debug, Default)]
pub(super) struct Uploads {
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
    pub(super) fn begin(&mut self, key: &str) -> String {
        let id = format!("upload-{}", self.begun);
        self.begun += 1;
        self.open.insert(id.clone(), Upload { key: key.to_owned(), parts: BTreeMap::new() });
        id
    }

    /// Stores a part and returns its ETag. A part with the same number is replaced.
    pub(super) fn put(&mut self, key: &str, id: &str, number: i32, body: Vec<u8>) -> Result<String, CallError> {
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
    pub(super) fn complete(&mut self, key: &str, id: &str, parts: &[Part]) -> Result<Option<Vec<u8>>, CallError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "results/s/trials.jsonl";

    fn part(number: i32, etag: &str) -> Part {
        Part { number, etag: Some(etag.to_owned()) }
    }

    #[test]
    fn only_parts_that_were_put_make_an_object_in_their_order() {
        let mut uploads = Uploads::default();
        let id = uploads.begin(KEY);
        let whole = uploads.put(KEY, &id, 1, vec![1; LEAST_BYTES]).unwrap();
        let small = uploads.put(KEY, &id, 2, vec![2]).unwrap();
        let last = uploads.put(KEY, &id, 3, vec![3]).unwrap();
        let cases = [
            (vec![], "MalformedXML"),
            (vec![part(3, &last), part(1, &whole)], "InvalidPartOrder"),
            (vec![part(1, &whole), part(1, &whole)], "InvalidPartOrder"),
            (vec![part(1, &whole), part(4, &last)], "InvalidPart"),
            (vec![part(1, &whole), part(3, &small)], "InvalidPart"),
            (vec![part(1, &whole), Part { number: 3, etag: None }], "InvalidPart"),
            (vec![part(1, &whole), part(2, &small), part(3, &last)], "EntityTooSmall"),
        ];
        for (parts, code) in cases {
            assert_eq!(uploads.complete(KEY, &id, &parts).unwrap_err().refusal(), Some(code), "{parts:?}");
        }
        let parts = [part(1, &whole), part(3, &last)];
        let elsewhere = uploads.complete("another", &id, &parts).unwrap_err();
        assert_eq!(elsewhere.refusal(), Some("NoSuchUpload"));
        assert_eq!(uploads.complete(KEY, &id, &parts).unwrap().unwrap().len(), LEAST_BYTES + 1);
        assert_eq!(uploads.put(KEY, &id, 4, vec![4]).unwrap_err().refusal(), Some("NoSuchUpload"));
        assert_eq!(uploads.put(KEY, &id, 10_001, vec![]).unwrap_err().refusal(), Some("InvalidArgument"));
    }

    #[test]
    fn a_repeated_completion_makes_nothing_twice() {
        let mut uploads = Uploads::default();
        let answers = [(); 2].map(|()| {
            let id = uploads.begin(KEY);
            let etag = uploads.put(KEY, &id, 1, vec![1]).unwrap();
            let mut complete = || uploads.complete(KEY, &id, &[part(1, &etag)]);
            assert_eq!(complete().unwrap(), Some(vec![1]));
            complete()
        });
        let [forgotten, same] = answers;
        assert_eq!(forgotten.unwrap_err().refusal(), Some("NoSuchUpload"));
        assert_eq!(same.unwrap(), None);
    }
}
