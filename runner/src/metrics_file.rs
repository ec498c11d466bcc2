//! The file that the training may append metrics to.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use spotsweep_beneath::{Folder, Status, is_odd};

use crate::log::say;
use crate::user::User;

/// The most bytes of one read.
const CHUNK: u64 = 256 * 1024;

/// Reads the new part of the file. The training owns the file and its folder, so it may replace the file with anything.
#[derive(Debug)]
pub(crate) struct MetricsFile {
    /// A folder whose path only the runner can change.
    base: PathBuf,
    /// The file's path below it.
    name: PathBuf,
    /// The user that the training runs as; `None` for the runner's own user.
    user: Option<User>,
    /// Bytes read so far.
    offset: u64,
    has_complained: bool,
}

impl MetricsFile {
    /// The file `name` below `base`, to which a training as `user` appends.
    pub(crate) fn new(base: PathBuf, name: PathBuf, user: Option<User>) -> Self {
        Self { base, name, user, offset: 0, has_complained: false }
    }

    /// The next piece. Empty if there is nothing new, or no file that the training may read. A file that has become
    /// shorter is read from its beginning.
    pub(crate) fn read(&mut self) -> Vec<u8> {
        match self.open().and_then(|file| self.read_from(file)) {
            Ok(bytes) => bytes,
            Err(error) => {
                if is_odd(&error) && !std::mem::replace(&mut self.has_complained, true) {
                    say("the file of metrics is passed over: it is a link, a pipe, a device, or not the training's");
                }
                Vec::new()
            }
        }
    }

    fn open(&self) -> io::Result<File> {
        Folder::trusted(&self.base)?.open(&self.name)
    }

    fn read_from(&mut self, mut file: File) -> io::Result<Vec<u8>> {
        let status = Status::of(&file)?;
        if self.user.as_ref().is_some_and(|user| !user.can_read(&status)) {
            return Err(spotsweep_beneath::odd(&self.name));
        }
        if status.bytes < self.offset {
            self.offset = 0;
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        self.offset += file.take(CHUNK).read_to_end(&mut bytes)? as u64;
        Ok(bytes)
    }
}
