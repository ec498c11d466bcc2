//! The file of one object.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use md5::{Digest as _, Md5};
use spotsweep_protocol::claim::DataObject;
use spotsweep_protocol::words::hexadecimal;

use crate::archive::Kind;
use crate::error::DataError;
use crate::listing::on_disk;
use crate::site::Site;

const MAKE: &str = "make a file of the data set";
const READ: &str = "read a file of the data set";
/// The hexadecimal digits of an MD5.
const MD5_DIGITS: usize = 32;
/// The reader's step.
const STEP_BYTES: usize = 1 << 20;

/// An object, and the file that it becomes.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) site: Arc<Site>,
    /// The folder in which the object lies.
    pub(crate) folder: Arc<OwnedFd>,
    pub(crate) object: DataObject,
    /// The kind of archive as which the object is unpacked.
    pub(crate) archive: Option<Kind>,
    file: OnceLock<File>,
    /// The parts that have not arrived yet.
    missing_parts: AtomicU64,
}

impl Target {
    pub(crate) fn new(
        site: &Arc<Site>,
        folder: Arc<OwnedFd>,
        object: DataObject,
        archive: Option<Kind>,
        parts: u64,
    ) -> Self {
        let (file, missing_parts) = (OnceLock::new(), AtomicU64::new(parts));
        Self { site: Arc::clone(site), folder, object, archive, file, missing_parts }
    }

    /// Opens the file. Call it once before the parts of an object are written at once.
    pub(crate) fn open(&self) -> Result<&File, DataError> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let name = self.object.key.rsplit('/').next().unwrap_or_default();
        let made = if self.archive.is_some() {
            self.site.make_unnamed()
        } else {
            self.site.meter.keep(on_disk(self.object.size));
            self.site.make_file(&self.folder, OsStr::new(name))
        };
        let made = made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let why = "a file that comes out of an archive has the same name".to_owned();
                DataError::Archive { key: self.object.key.clone(), why }
            }
            _ => DataError::disk(MAKE)(error),
        })?;
        Ok(self.file.get_or_init(|| made))
    }

    /// Notes that a part has arrived. Returns whether it was the last one.
    pub(crate) fn has_all(&self) -> bool {
        self.missing_parts.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Returns the MD5 of the content, in hexadecimal, if the ETag looks like one.
    pub(crate) fn md5(&self) -> Option<&str> {
        let digits = self.object.etag.trim_matches('"');
        (digits.len() == MD5_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digits)
    }

    /// Compares the content's MD5.
    pub(crate) fn compare(&self, found: Md5) -> Result<(), DataError> {
        let found = hexadecimal(found.finalize());
        if self.md5().is_none_or(|expected| expected.eq_ignore_ascii_case(&found)) {
            return Ok(());
        }
        let why = format!("its MD5 is {found}, but its ETag is {}", self.object.etag);
        Err(DataError::Damaged { key: self.object.key.clone(), why })
    }

    /// Reads the file, and compares its MD5.
    pub(crate) fn compare_file(&self) -> Result<(), DataError> {
        let file = self.open()?;
        let (mut hash, mut at) = (Md5::new(), 0);
        let mut buffer = vec![0; STEP_BYTES];
        while at < self.object.size {
            let count = file.read_at(&mut buffer, at).map_err(DataError::disk(READ))?;
            if count == 0 {
                return Err(DataError::disk(READ)(io::ErrorKind::UnexpectedEof.into()));
            }
            hash.update(&buffer[..count]);
            at += count as u64;
            self.site.meter.sign();
        }
        self.compare(hash)
    }
}
