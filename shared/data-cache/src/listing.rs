//! The listing of a data set: a line of JSON for each object.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _};
use std::ops::ControlFlow;

use sha2::{Digest as _, Sha256};
use spotsweep_protocol::claim::{DataObject, DataSet, KeyCheck};
use spotsweep_protocol::words::hexadecimal;

use crate::archive::Kind;
use crate::error::DataError;

const READ: &str = "read the data set's listing";
/// What a file takes up besides its content: its inode and its name.
const FILE_BYTES: u64 = 1_024;
/// The unit in which ext4 and XFS give room to a file.
const BLOCK_BYTES: u64 = 4_096;
/// The reader's step.
const STEP_BYTES: usize = 64 << 10;

/// A listing that is the set's own.
#[derive(Debug)]
pub(crate) struct Checked {
    file: File,
    unpack: bool,
    /// The bytes that the set takes up on the disk while it is fetched. How much an archive has is not known before it
    /// is there: it is expected to have as much as it takes up itself. While it is unpacked both are on the disk.
    /// If that is not enough, room is made when it is missing.
    pub(crate) needed: u64,
}

/// Returns the bytes that a file of this size takes up.
pub(crate) fn on_disk(size: u64) -> u64 {
    size.next_multiple_of(BLOCK_BYTES).saturating_add(FILE_BYTES)
}

impl Checked {
    /// Checks a listing against what the set is pinned to. `unpacked_at_once` is the number of archives.
    pub(crate) fn new(mut file: File, set: &DataSet, unpacked_at_once: usize) -> Result<Self, DataError> {
        let (mut objects, mut bytes, mut needed) = (0, 0_u64, 0_u64);
        let (mut archives, mut largest) = (0_usize, 0);
        let mut hash = Sha256::new();
        each_object(
            &mut file,
            |line| hash.update(line),
            |object| {
                objects += 1;
                bytes = bytes.saturating_add(object.size);
                needed = needed.saturating_add(on_disk(object.size));
                if set.unpack && Kind::of(&object.key).is_some() {
                    archives += 1;
                    largest = object.size.max(largest);
                }
                Ok(ControlFlow::Continue(()))
            },
        )?;
        let found = hexadecimal(hash.finalize());
        let pinned = &set.listing;
        if found != pinned.sha256 {
            return Err(DataError::DamagedListing(format!("its SHA-256 is {found} instead of {}", pinned.sha256)));
        }
        if (objects, bytes) != (pinned.objects, pinned.bytes) {
            let (of_objects, of_bytes) = (pinned.objects, pinned.bytes);
            let why = format!("it has {objects} objects of {bytes} bytes instead of {of_objects} of {of_bytes}");
            return Err(DataError::DamagedListing(why));
        }
        let aside = (archives.min(unpacked_at_once) as u64).saturating_mul(largest);
        Ok(Self { file, unpack: set.unpack, needed: needed.saturating_add(aside) })
    }

    /// Passes each object to `take`, with the kind of archive as which it is unpacked, until that breaks.
    pub(crate) fn each(
        &mut self,
        mut take: impl FnMut(DataObject, Option<Kind>) -> Result<ControlFlow<()>, DataError>,
    ) -> Result<(), DataError> {
        let unpack = self.unpack;
        each_object(
            &mut self.file,
            |_| (),
            |object| {
                let kind = Kind::of(&object.key).filter(|_| unpack);
                take(object, kind)
            },
        )
    }
}

fn each_object(
    file: &mut File,
    mut see: impl FnMut(&[u8]),
    mut take: impl FnMut(DataObject) -> Result<ControlFlow<()>, DataError>,
) -> Result<(), DataError> {
    let failed = DataError::disk(READ);
    file.rewind().map_err(&failed)?;
    let mut reader = BufReader::with_capacity(STEP_BYTES, file);
    let (mut line, mut number, mut keys) = (Vec::new(), 0_u64, KeyCheck::default());
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(&failed)? == 0 {
            return Ok(());
        }
        see(&line);
        number += 1;
        let object: DataObject = serde_json::from_slice(&line)
            .map_err(|error| DataError::DamagedListing(format!("its line {number} is no object: {error}")))?;
        keys.add(&object.key)?;
        if take(object)?.is_break() {
            return Ok(());
        }
    }
}
