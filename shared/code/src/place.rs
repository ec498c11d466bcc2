//! Puts files into a folder that a training can write, in place of whatever it has put there.

use std::fs::Permissions;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use spotsweep_beneath::{Folder, Kind, is_odd};

use crate::content::Content;
use crate::error::UnpackError;
use crate::names::TEMPORARY;
use crate::reader::{Entry, Reader};

/// The permissions that this user needs in a folder to write there.
const OWN: u32 = 0o700;
/// The most folders that are moved aside from one path.
const MOST_MOVED: u32 = 1_000;

#[derive(Debug)]
pub(crate) struct Place {
    folder: Folder,
    /// The folder that the last file was put into.
    ready: PathBuf,
    pub(crate) moved: Vec<(String, String)>,
}

impl Place {
    pub(crate) fn new(into: &Path) -> Result<Self, UnpackError> {
        let failed = |source| UnpackError::Write { path: into.display().to_string(), source };
        let folder = Folder::made(into).map_err(failed)?;
        open_up(&folder).map_err(failed)?;
        Ok(Self { folder, ready: PathBuf::new(), moved: Vec::new() })
    }

    /// Writes a file or link under a temporary name, and renames it.
    pub(crate) fn put<R: Read>(&mut self, entry: &Entry, reader: &mut Reader<R>) -> Result<(), UnpackError> {
        let path = Path::new(&entry.path);
        let failed = |source| UnpackError::Write { path: entry.path.clone(), source };
        let temporary = Path::new(TEMPORARY);
        self.make_way(path.parent().unwrap_or(Path::new(""))).map_err(failed)?;
        self.move_folder(temporary).map_err(failed)?;
        match &entry.content {
            Content::File { executable, .. } => {
                let mut file = self.folder.create(temporary).map_err(failed)?;
                reader.content(|part| file.write_all(part).map_err(failed))?;
                let mode = if *executable { 0o755 } else { 0o644 };
                file.set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
            }
            Content::Link { target } => {
                self.folder.symbolic_link(temporary, Path::new(target)).map_err(failed)?;
            }
        }
        self.move_folder(path).map_err(failed)?;
        self.folder.rename(temporary, path).map_err(failed)
    }

    /// Makes each folder on the way to `path`, in place of what else is there.
    fn make_way(&mut self, path: &Path) -> io::Result<()> {
        if path == self.ready {
            return Ok(());
        }
        let mut folders: Vec<&Path> = path.ancestors().filter(|folder| !folder.as_os_str().is_empty()).collect();
        folders.reverse();
        for path in folders {
            match self.kind(path)? {
                None => {}
                Some(Kind::Folder) => {
                    if self.folder.folder(path).and_then(|folder| open_up(&folder)).is_ok() {
                        continue;
                    }
                    self.move_aside(path)?;
                }
                Some(Kind::File | Kind::Link | Kind::Other) => self.folder.remove_file(path)?,
            }
            open_up(&self.folder.make_folder(path)?)?;
        }
        path.clone_into(&mut self.ready);
        Ok(())
    }

    fn move_folder(&mut self, path: &Path) -> io::Result<()> {
        if self.kind(path)? == Some(Kind::Folder) { self.move_aside(path) } else { Ok(()) }
    }

    /// Renames what is at `path`. Nothing is removed with what it contains, as it may be all that a training has.
    fn move_aside(&mut self, path: &Path) -> io::Result<()> {
        for number in 1..=MOST_MOVED {
            let mut aside = path.as_os_str().to_owned();
            aside.push(format!(".moved-{number}"));
            if self.kind(Path::new(&aside))?.is_none() {
                self.folder.rename(path, Path::new(&aside))?;
                self.moved.push((path.display().to_string(), aside.display().to_string()));
                return Ok(());
            }
        }
        Err(io::Error::other("a folder is in its place, and 1 000 such folders are next to it already: remove some"))
    }

    fn kind(&self, path: &Path) -> io::Result<Option<Kind>> {
        match self.folder.status(path) {
            Ok(status) => Ok(Some(status.kind)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_odd(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Lets this user write in a folder of its own.
fn open_up(folder: &Folder) -> io::Result<()> {
    let mode = folder.own_status()?.mode;
    if mode & OWN == OWN { Ok(()) } else { folder.set_mode(mode | OWN) }
}
