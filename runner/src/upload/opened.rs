//! A file that is being uploaded.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use aws_sdk_s3::primitives::{ByteStream, ByteStreamError, Length};
use spotsweep_beneath::Status;

use super::scan::{Found, Stamp};
use crate::storage::Storage;

/// Stays open until all of it is uploaded. So the bytes are those of the file that was found, even if another one
/// replaces it.
#[derive(Debug)]
pub(super) struct Opened {
    file: File,
    pub(super) stamp: Stamp,
}

impl Opened {
    /// Opens the file that was `found`; `None` if its path leads to another file now.
    pub(super) fn open(storage: &Storage, found: &Found) -> io::Result<Option<Self>> {
        let file = storage.open_file(&storage.open()?, &found.path)?;
        let status = Status::of(&file)?;
        let is_same = Stamp::of(&status) == found.stamp && storage.is_the_trainings(&status);
        Ok(is_same.then_some(Self { file, stamp: found.stamp }))
    }

    /// A range of the file's bytes. The SDK opens the file again for each try, by the name that the kernel gives to the
    /// open file (proc(5), `/proc/pid/fd`).
    pub(super) async fn body(&self, offset: u64, bytes: u64) -> Result<ByteStream, ByteStreamError> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        ByteStream::read_from().path(path).offset(offset).length(Length::Exact(bytes)).build().await
    }

    /// Whether the file is unchanged: parts of two states must not become one object.
    pub(super) fn is_unchanged(&self) -> bool {
        Status::of(&self.file).is_ok_and(|now| Stamp::of(&now) == self.stamp)
    }
}
