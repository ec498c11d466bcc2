//! One S3 object written piece by piece: a plain put while it fits one part, else multipart.

use aws_sdk_s3::Client;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};

use super::BoxError;

/// Bytes of one part; S3 wants at least 5 MiB for each but the last.
const PART_BYTES: usize = 8 << 20;

pub(super) struct Writer<'a> {
    client: &'a Client,
    bucket: &'a str,
    key: String,
    content_type: &'static str,
    buffer: Vec<u8>,
    upload_id: Option<String>,
    parts: Vec<CompletedPart>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(client: &'a Client, bucket: &'a str, key: String, content_type: &'static str) -> Self {
        Self { client, bucket, key, content_type, buffer: Vec::new(), upload_id: None, parts: Vec::new() }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), BoxError> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PART_BYTES { self.send_part().await } else { Ok(()) }
    }

    /// Ends the object. An upload that is never ended is removed by the bucket's lifecycle rule.
    pub(super) async fn finish(mut self) -> Result<(), BoxError> {
        if self.upload_id.is_none() {
            let put = self.client.put_object().bucket(self.bucket).key(&self.key).content_type(self.content_type);
            put.body(self.buffer.into()).send().await?;
            return Ok(());
        }
        if !self.buffer.is_empty() {
            self.send_part().await?;
        }
        let parts = CompletedMultipartUpload::builder().set_parts(Some(self.parts)).build();
        self.client
            .complete_multipart_upload()
            .bucket(self.bucket)
            .key(&self.key)
            .set_upload_id(self.upload_id)
            .multipart_upload(parts)
            .send()
            .await?;
        Ok(())
    }

    async fn send_part(&mut self) -> Result<(), BoxError> {
        if self.upload_id.is_none() {
            let create = self.client.create_multipart_upload().bucket(self.bucket).key(&self.key);
            self.upload_id = create.content_type(self.content_type).send().await?.upload_id;
        }
        let number = i32::try_from(self.parts.len())? + 1;
        let part = self
            .client
            .upload_part()
            .bucket(self.bucket)
            .key(&self.key)
            .set_upload_id(self.upload_id.clone())
            .part_number(number)
            .body(std::mem::take(&mut self.buffer).into())
            .send()
            .await?;
        self.parts.push(CompletedPart::builder().part_number(number).set_e_tag(part.e_tag).build());
        Ok(())
    }
}
