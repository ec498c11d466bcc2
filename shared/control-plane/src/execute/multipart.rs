//! Writes one S3 object in pieces: with a plain put if it fits one part, else as a multipart upload.

use crate::calls::{CallError, Part, Place, S3};

/// Bytes of one part. S3 demands at least 5 MiB for each part except the last.
const PART_BYTES: usize = 8 << 20;

pub(super) struct Writer<'a, C> {
    s3: &'a C,
    place: Place,
    buffer: Vec<u8>,
    upload: Option<String>,
    parts: Vec<Part>,
}

impl<'a, C: S3> Writer<'a, C> {
    pub(super) fn new(s3: &'a C, place: Place) -> Self {
        Self { s3, place, buffer: Vec::new(), upload: None, parts: Vec::new() }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), CallError> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PART_BYTES { self.send_part().await } else { Ok(()) }
    }

    /// Completes the object. The bucket's lifecycle rule removes an upload that is never completed.
    pub(super) async fn finish(mut self) -> Result<(), CallError> {
        if self.upload.is_some() && !self.buffer.is_empty() {
            self.send_part().await?;
        }
        match self.upload {
            None => self.s3.put_object(self.place, self.buffer).await,
            Some(upload) => self.s3.complete_multipart_upload(self.place, upload, self.parts).await,
        }
    }

    async fn send_part(&mut self) -> Result<(), CallError> {
        let upload = match &self.upload {
            Some(upload) => upload,
            None => self.upload.insert(self.s3.create_multipart_upload(self.place.clone()).await?),
        };
        let number = i32::try_from(self.parts.len()).unwrap_or(i32::MAX).saturating_add(1);
        let body = std::mem::take(&mut self.buffer);
        self.parts.push(self.s3.upload_part(&self.place, upload, number, body).await?);
        Ok(())
    }
}
