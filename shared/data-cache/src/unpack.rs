//! Unpacks an archive into the folder in which it lies.

use std::ffi::OsStr;
use std::io::{self, BufReader, Read, Write as _};
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use tar::EntryType;
use zip::ZipArchive;

use crate::archive::{Frames, Kind};
use crate::blocking::blocking;
use crate::error::DataError;
use crate::listing::on_disk;
use crate::site::Folders;
use crate::target::Target;

const WRITE: &str = "write a file of an archive";
/// The longest path in bytes. Linux's `PATH_MAX` is 4096, and the data set's folder takes its part.
const LONGEST_PATH: usize = 3_800;
/// The longest name of a file in bytes: `NAME_MAX` of ext4 and XFS.
const LONGEST_NAME: usize = 255;
/// The steps in which archives are read, and files written.
const STEP_BYTES: usize = 128 << 10;
/// Room is asked for in such steps.
const ROOM_BYTES: u64 = 16 << 20;

/// Returns the number of archives that are unpacked at once: half of the cores are left for the requests.
pub(crate) fn at_once() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get).div_ceil(2)
}

/// Unpacks an object, if it is an archive. All its bytes must have arrived.
pub(crate) async fn unpack(target: Arc<Target>) -> Result<(), DataError> {
    let Some(kind) = target.archive else { return Ok(()) };
    // The semaphore is never closed.
    let _permit = target.site.unpacking.acquire().await.ok();
    let unpacked = Arc::clone(&target);
    blocking(move || unpack_here(&unpacked, kind)).await
}

/// Unpacks an archive in this thread.
pub(crate) fn unpack_here(target: &Target, kind: Kind) -> Result<(), DataError> {
    let reader = BufReader::with_capacity(STEP_BYTES, target.open()?);
    let folders = Folders::below(Arc::clone(&target.folder));
    let mut unpacking = Unpacking { target, folders, granted: 0, buffer: vec![0; STEP_BYTES] };
    match kind {
        Kind::Tar => unpacking.tar(reader),
        Kind::TarZst => unpacking.tar(Frames::new(reader)),
        Kind::Zip => unpacking.zip(reader),
    }
}

struct Unpacking<'a> {
    target: &'a Target,
    folders: Folders,
    /// The bytes that may be written before room is asked for again.
    granted: u64,
    buffer: Vec<u8>,
}

impl Unpacking<'_> {
    fn tar(&mut self, reader: impl Read) -> Result<(), DataError> {
        let mut archive = tar::Archive::new(reader);
        for entry in archive.entries().map_err(|error| self.damaged(&error))? {
            let mut entry = entry.map_err(|error| self.damaged(&error))?;
            let path = entry.path_bytes().into_owned();
            let (kind, size) = (entry.header().entry_type(), entry.size());
            match kind {
                EntryType::Directory => self.folder(&path)?,
                // In the oldest form of tar, a folder is a file of which the name ends with a slash.
                EntryType::Regular if size == 0 && path.ends_with(b"/") => self.folder(&path)?,
                EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                    self.file(&path, size, &mut entry)?;
                }
                // Says something about the whole archive, such as the commit of `git archive`.
                EntryType::XGlobalHeader => {}
                EntryType::Symlink => return Err(self.refused(&path, "is a symbolic link")),
                EntryType::Link => return Err(self.refused(&path, "is a hard link")),
                _ => return Err(self.refused(&path, "is neither a file nor a folder")),
            }
        }
        // What is behind the last entry has the checksum of a compressed archive.
        io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(|error| self.damaged(&error))?;
        Ok(())
    }

    fn zip(&mut self, reader: impl Read + io::Seek) -> Result<(), DataError> {
        let mut archive = ZipArchive::new(reader).map_err(|error| self.damaged(&error))?;
        for at in 0..archive.len() {
            let mut entry = archive.by_index(at).map_err(|error| self.damaged(&error))?;
            let path = entry.name().map_err(|error| self.damaged(&error))?.into_owned();
            let path = path.as_bytes();
            if entry.is_symlink() {
                return Err(self.refused(path, "is a symbolic link"));
            }
            if entry.is_dir() {
                self.folder(path)?;
            } else {
                self.file(path, entry.size(), &mut entry)?;
            }
        }
        Ok(())
    }

    fn folder(&mut self, path: &[u8]) -> Result<(), DataError> {
        let names = self.names(path)?;
        self.grant(0)?;
        self.folders.open(&self.target.site, names.into_iter()).map_err(|error| self.in_the_way(path, error)).map(drop)
    }

    fn file(&mut self, path: &[u8], size: u64, content: &mut impl Read) -> Result<(), DataError> {
        let mut names = self.names(path)?;
        let Some(name) = names.pop() else { return Err(self.refused(path, "has no name")) };
        self.grant(size)?;
        let site = &self.target.site;
        let made = self.folders.open(site, names.into_iter()).and_then(|folder| site.make_file(&folder, name));
        let mut file = made.map_err(|error| self.in_the_way(path, error))?;
        site.meter.keep(on_disk(size));
        let mut left = size;
        loop {
            let count = match content.read(&mut self.buffer) {
                Ok(0) if left == 0 => return Ok(()),
                Ok(0) => return Err(self.refused(path, "ends too early")),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.refused(path, &format!("is damaged: {error}"))),
            };
            let Some(rest) = left.checked_sub(count as u64) else {
                return Err(self.refused(path, "is longer than the archive says"));
            };
            left = rest;
            file.write_all(&self.buffer[..count]).map_err(DataError::disk(WRITE))?;
            site.meter.sign();
        }
    }

    /// Makes sure that there is room for a file of this size.
    fn grant(&mut self, size: u64) -> Result<(), DataError> {
        let bytes = on_disk(size);
        if self.granted < bytes {
            let more = bytes.max(ROOM_BYTES);
            let site = &self.target.site;
            site.place.make_room(more).map_err(|error| match error {
                DataError::DoesNotFit(mut shortage) => {
                    let kept = site.meter.on_disk();
                    shortage.needed = shortage.needed.saturating_add(kept);
                    shortage.free = shortage.free.saturating_add(kept);
                    DataError::DoesNotFit(shortage)
                }
                error => error,
            })?;
            self.granted = more;
        }
        self.granted -= bytes;
        Ok(())
    }

    /// Returns the names of a path that only leads downwards.
    fn names<'a>(&self, path: &'a [u8]) -> Result<Vec<&'a OsStr>, DataError> {
        let refused = |why| Err(self.refused(path, why));
        if path.starts_with(b"/") {
            return refused("has an absolute path");
        }
        if path.len() > LONGEST_PATH {
            return refused("has a path of more than 3 800 bytes");
        }
        let mut names = Vec::new();
        for name in path.split(|byte| *byte == b'/') {
            match name {
                b"" | b"." => {}
                b".." => return refused("leads out of the folder by `..`"),
                name if name.contains(&0) => return refused("has a zero byte in its name"),
                name if name.len() > LONGEST_NAME => return refused("has a name of more than 255 bytes"),
                name => names.push(OsStr::from_bytes(name)),
            }
        }
        Ok(names)
    }

    fn in_the_way(&self, path: &[u8], error: io::Error) -> DataError {
        match error.kind() {
            io::ErrorKind::AlreadyExists => self.refused(path, "is there twice, or has the name of another object"),
            io::ErrorKind::NotADirectory => self.refused(path, "is below a file"),
            _ => DataError::disk(WRITE)(error),
        }
    }

    fn refused(&self, path: &[u8], why: &str) -> DataError {
        let path = String::from_utf8_lossy(path);
        self.failed(format!("its entry `{}` {why}", path.escape_debug()))
    }

    fn damaged(&self, error: &dyn std::error::Error) -> DataError {
        self.failed(format!("it is damaged: {error}"))
    }

    fn failed(&self, why: String) -> DataError {
        DataError::Archive { key: self.target.object.key.clone(), why }
    }
}
