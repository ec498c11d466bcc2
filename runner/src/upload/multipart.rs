//! Uploads large files in parts, each streamed from disk, so that the needed memory does not depend on the size.

use std::sync::Arc;

use aws_sdk_s3::Client;
use aws_sdk_s3::types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart};
use spotsweep_protocol::cause::chain;
use tokio::task::JoinSet;

use super::opened::Opened;
use super::{UploadError, say};

const MEBIBYTE: u64 = 1024 * 1024;
/// S3 requires at least 5 MiB (for all but the last part) and at most 10 000 parts:
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>.
const LEAST_PART_BYTES: u64 = 8 * MEBIBYTE;
const MOST_PARTS: u64 = 10_000;
const PARTS_AT_ONCE: usize = 4;

/// One multipart upload that is under way.
#[derive(Clone)]
struct Upload {
    s3: Client,
    bucket: String,
    key: String,
    id: String,
}

/// Uploads the file and returns S3's entity tag of it. On failure it aborts the upload, because stored parts cost
/// money.
pub(super) async fn put(
    s3: &Client,
    bucket: &str,
    key: &str,
    file: &Arc<Opened>,
) -> Result<Option<String>, UploadError> {
    let created = s3
        .create_multipart_upload()
        .bucket(bucket)
        .key(key)
        .checksum_algorithm(ChecksumAlgorithm::Crc32)
        .send()
        .await
        .map_err(|error| UploadError::send("starting the upload of", key, error))?;
    let upload = Upload {
        s3: s3.clone(),
        bucket: bucket.to_owned(),
        key: key.to_owned(),
        id: created.upload_id.unwrap_or_default(),
    };
    let sent = match upload.send_parts(file).await {
        Ok(parts) => upload.complete(parts).await,
        Err(error) => Err(error),
    };
    if sent.is_err() {
        upload.abort().await;
    }
    sent
}

impl Upload {
    async fn send_parts(&self, file: &Arc<Opened>) -> Result<Vec<CompletedPart>, UploadError> {
        let mut waiting = parts(file.stamp.bytes).into_iter();
        let mut underway = JoinSet::new();
        let mut sent = Vec::new();
        loop {
            while underway.len() < PARTS_AT_ONCE {
                let Some(part) = waiting.next() else { break };
                underway.spawn(self.clone().send_part(Arc::clone(file), part));
            }
            match underway.join_next().await {
                None => break,
                Some(part) => sent.push(part??),
            }
        }
        if !file.is_unchanged() {
            return Err(UploadError::Changed(self.key.clone()));
        }
        sent.sort_by_key(CompletedPart::part_number);
        Ok(sent)
    }

    async fn send_part(self, file: Arc<Opened>, part: Part) -> Result<CompletedPart, UploadError> {
        let body = file.body(part.offset, part.bytes).await;
        let body = body.map_err(|error| UploadError::send("reading", &self.key, error))?;
        let sent = self
            .s3
            .upload_part()
            .bucket(&self.bucket)
            .key(&self.key)
            .upload_id(&self.id)
            .part_number(part.number)
            .checksum_algorithm(ChecksumAlgorithm::Crc32)
            .body(body)
            .send()
            .await
            .map_err(|error| UploadError::send("uploading a part of", &self.key, error))?;
        Ok(CompletedPart::builder()
            .part_number(part.number)
            .set_e_tag(sent.e_tag)
            .set_checksum_crc32(sent.checksum_crc32)
            .build())
    }

    async fn complete(&self, parts: Vec<CompletedPart>) -> Result<Option<String>, UploadError> {
        self.s3
            .complete_multipart_upload()
            .bucket(&self.bucket)
            .key(&self.key)
            .upload_id(&self.id)
            .multipart_upload(CompletedMultipartUpload::builder().set_parts(Some(parts)).build())
            .send()
            .await
            .map(|completed| completed.e_tag)
            .map_err(|error| UploadError::send("completing the upload of", &self.key, error))
    }

    async fn abort(&self) {
        let call = self.s3.abort_multipart_upload();
        let aborted = call.bucket(&self.bucket).key(&self.key).upload_id(&self.id).send().await;
        if let Err(error) = aborted {
            let error = UploadError::send("giving up the parts of", &self.key, error);
            say(&chain(&error));
        }
    }
}

/// A range of the file's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    /// The part's number, from 1.
    number: i32,
    offset: u64,
    bytes: u64,
}

fn parts(file_bytes: u64) -> Vec<Part> {
    let part_bytes = file_bytes.div_ceil(MOST_PARTS).next_multiple_of(MEBIBYTE).max(LEAST_PART_BYTES);
    let offsets = (0..file_bytes.div_ceil(part_bytes)).map(|count| count * part_bytes);
    (1..)
        .zip(offsets)
        .map(|(number, offset)| Part { number, offset, bytes: part_bytes.min(file_bytes - offset) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_file_within_the_limits_of_s3() {
        for file_bytes in [16 * MEBIBYTE + 1, 24 * MEBIBYTE, 100_000 * MEBIBYTE - 3, 5 << 40] {
            let parts = parts(file_bytes);
            assert!(parts.len() as u64 <= MOST_PARTS, "{file_bytes}");
            let mut offset = 0;
            for (part, number) in parts.iter().zip(1..) {
                assert_eq!((part.number, part.offset), (number, offset), "{file_bytes}");
                offset += part.bytes;
            }
            assert_eq!(offset, file_bytes);
            let whole = &parts[..parts.len() - 1];
            assert!(whole.iter().all(|part| part.bytes >= LEAST_PART_BYTES), "{file_bytes}");
        }
    }
}
