//! The tar of a listing, as a stream that reads the files when they are needed.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::slice::Iter;

use sha2::{Digest as _, Sha256};
use spotsweep_beneath::{Folder, Status};
use tar::{EntryType, Header};

use crate::content::Content;
use crate::error::PackError;
use crate::item::Item;
use crate::reader::{BLOCK, hex};

/// 1 January 1980, in seconds since 1970: the earliest time that a ZIP archive can have, which some tools need.
const TIME: u64 = 315_532_800;
/// Two blocks of zeros end a tar.
const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// [`Read`] gives the bytes of the tar. After an error it gives no more, and [`Self::finish`] returns the error: the
/// compressor panics on an error of its source.
pub(crate) struct Stream<'a> {
    folder: &'a Folder,
    items: Iter<'a, Item>,
    /// Headers and zeros, and how many of their bytes are read.
    ready: (Vec<u8>, usize),
    open: Option<Open<'a>>,
    is_ended: bool,
    hash: Sha256,
    bytes: u64,
    failure: Option<PackError>,
}

/// The file that is being read.
struct Open<'a> {
    file: File,
    item: &'a Item,
    left: u64,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(folder: &'a Folder, items: &'a [Item]) -> Self {
        let (ready, hash) = ((Vec::new(), 0), Sha256::new());
        Self { folder, items: items.iter(), ready, open: None, is_ended: false, hash, bytes: 0, failure: None }
    }

    /// Returns the SHA-256 and the length of the tar.
    pub(crate) fn finish(self) -> Result<(String, u64), PackError> {
        self.failure.map_or_else(|| Ok((hex(&self.hash.finalize()), self.bytes)), Err)
    }

    fn next_bytes(&mut self, buffer: &mut [u8]) -> Result<usize, PackError> {
        loop {
            let (ready, at) = &mut self.ready;
            if *at < ready.len() {
                let count = (&ready[*at..]).read(buffer).unwrap_or_default();
                *at += count;
                return Ok(count);
            }
            if let Some(open) = &mut self.open {
                if open.left > 0 {
                    return open.read(buffer);
                }
                open.check()?;
                let bytes = open.item.content.bytes();
                self.ready = (vec![0; (bytes.next_multiple_of(BLOCK as u64) - bytes) as usize], 0);
                self.open = None;
            } else if let Some(item) = self.items.next() {
                self.ready = (headers(item), 0);
                self.open = self.opened(item)?;
            } else if self.is_ended {
                return Ok(0);
            } else {
                self.ready = (END.to_vec(), 0);
                self.is_ended = true;
            }
        }
    }

    fn opened(&self, item: &'a Item) -> Result<Option<Open<'a>>, PackError> {
        let path = Path::new(&item.path);
        let failed = |source| PackError::Read { path: item.path.clone(), source };
        match &item.content {
            Content::Link { target } => {
                let found = self.folder.read_link(path).map_err(failed)?;
                if found.as_os_str() == target.as_str() { Ok(None) } else { Err(changed(item)) }
            }
            Content::File { bytes, .. } => {
                let open = Open { file: self.folder.open(path).map_err(failed)?, item, left: *bytes };
                open.check()?;
                Ok(Some(open))
            }
        }
    }
}

impl Open<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, PackError> {
        let most = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = self.file.read(&mut buffer[..most]);
        let count = read.map_err(|source| PackError::Read { path: self.item.path.clone(), source })?;
        if count == 0 {
            return Err(changed(self.item));
        }
        self.left -= count as u64;
        Ok(count)
    }

    /// Checks that the file is the listed one, before and after it is read.
    fn check(&self) -> Result<(), PackError> {
        let status = Status::of(&self.file);
        let status = status.map_err(|source| PackError::Read { path: self.item.path.clone(), source })?;
        if self.item.is(&status) { Ok(()) } else { Err(changed(self.item)) }
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.failure.is_some() || buffer.is_empty() {
            return Ok(0);
        }
        match self.next_bytes(buffer) {
            Ok(count) => {
                self.hash.update(&buffer[..count]);
                self.bytes += count as u64;
                Ok(count)
            }
            Err(failure) => {
                self.failure = Some(failure);
                Ok(0)
            }
        }
    }
}

fn changed(item: &Item) -> PackError {
    PackError::Changed { path: item.path.clone() }
}

/// Returns the header of an item, after those of names that are too long for it.
fn headers(item: &Item) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (kind, mode, target) = match &item.content {
        Content::File { executable, .. } => (EntryType::Regular, if *executable { 0o755 } else { 0o644 }, ""),
        Content::Link { target } => (EntryType::Symlink, 0o777, target.as_str()),
    };
    let mut header = header(kind, mode, item.content.bytes());
    if let Some(gnu) = header.as_gnu_mut() {
        for (name, place, long) in
            [(target, &mut gnu.linkname, EntryType::GNULongLink), (&item.path, &mut gnu.name, EntryType::GNULongName)]
        {
            if name.len() > place.len() {
                long_name(long, name, &mut bytes);
            }
            let count = name.len().min(place.len());
            place[..count].copy_from_slice(&name.as_bytes()[..count]);
        }
    }
    header.set_cksum();
    bytes.extend_from_slice(header.as_bytes());
    bytes
}

/// Adds an entry whose content is the name of the next one, with a zero behind it, as GNU tar does.
fn long_name(kind: EntryType, name: &str, bytes: &mut Vec<u8>) {
    let mut header = header(kind, 0o644, name.len() as u64 + 1);
    if let Some(gnu) = header.as_gnu_mut() {
        const NAME: &[u8] = b"././@LongLink";
        gnu.name[..NAME.len()].copy_from_slice(NAME);
    }
    header.set_cksum();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
}

fn header(kind: EntryType, mode: u32, bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(bytes);
    header.set_mtime(TIME);
    header.set_uid(0);
    header.set_gid(0);
    header
}
