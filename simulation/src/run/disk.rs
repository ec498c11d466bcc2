//! A simulated volume, as the seal reads and writes it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use spotsweep_checkpoint_formats::Content;
use spotsweep_seal::disk::{Disk, Stamp};
use spotsweep_world::ebs::{File, FileSystem, Opened};

use crate::injected_bug::InjectedBug;

/// The file system of a mounted volume at one moment.
pub(super) struct SimulatedDisk<'a> {
    files: RefCell<&'a mut FileSystem>,
    now_ns: i64,
    bug: Option<InjectedBug>,
}

impl<'a> SimulatedDisk<'a> {
    pub(super) fn new(files: &'a mut FileSystem, now_ns: i64, bug: Option<InjectedBug>) -> Self {
        Self { files: RefCell::new(files), now_ns, bug }
    }

    /// With the bug injected, sealed checkpoints get no kept copies.
    fn check_keeping(&self, to: &Path) -> io::Result<()> {
        let fails = self.bug == Some(InjectedBug::KeepNothing) && to.starts_with(".spotsweep/kept");
        if fails { Err(io::Error::other("nothing is kept")) } else { Ok(()) }
    }

    fn put(&self, file: &Path, content: &[u8], at_ns: i64) {
        let mut files = self.files.borrow_mut();
        files.open(name(file), Opened::Truncated, at_ns);
        files.write(name(file), 0, content, at_ns);
    }

    fn file(&self, path: &Path) -> io::Result<File> {
        let found = self.files.borrow().seen().files.get(name(path)).cloned();
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

fn stamp(file: &File) -> Stamp {
    Stamp { bytes: file.bytes.len() as u64, modified_ns: file.modified_ns, inode: file.inode }
}

fn found(is_there: bool) -> io::Result<()> {
    if is_there { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}

impl Disk for SimulatedDisk<'_> {
    fn files(&self, folder: &Path) -> io::Result<BTreeMap<String, Stamp>> {
        let files = self.files.borrow();
        let below = files.seen().files.iter().filter_map(|(path, file)| {
            let rest = Path::new(path).strip_prefix(folder).ok()?;
            Some((name(rest).to_owned(), stamp(file)))
        });
        Ok(below.collect())
    }

    /// Folders exist here only as prefixes of file names.
    fn empty_folders(&self, _folder: &Path) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn stamp(&self, file: &Path) -> io::Result<Stamp> {
        self.file(file).map(|file| stamp(&file))
    }

    fn open(&self, file: &Path) -> io::Result<Box<dyn Content>> {
        let mut file = self.file(file)?;
        file.has_hole &= self.bug != Some(InjectedBug::OverlookHoles);
        Ok(Box::new(Open(file)))
    }

    fn write(&self, file: &Path, content: &[u8]) -> io::Result<()> {
        self.put(file, content, self.now_ns);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        found(self.files.borrow_mut().rename(name(from), name(to)))
    }

    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_keeping(to)?;
        let from = self.file(from)?;
        self.put(to, &from.bytes, from.modified_ns);
        Ok(())
    }

    fn set_modified(&self, file: &Path, modified_ns: i64) -> io::Result<()> {
        found(self.files.borrow_mut().set_modified(name(file), modified_ns))
    }

    fn hard_link(&self, file: &Path, link: &Path) -> io::Result<()> {
        self.check_keeping(link)?;
        found(self.files.borrow_mut().hard_link(name(file), name(link)))
    }

    fn allocate(&self, _file: &Path, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self, _folder: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn total_bytes(&self, _folder: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn symbolic_links(&self, folder: &Path) -> io::Result<Vec<(PathBuf, PathBuf)>> {
        let files = self.files.borrow();
        let links = files.seen().links.iter().map(|(link, target)| (PathBuf::from(link), PathBuf::from(target)));
        Ok(links.filter(|(link, _)| link.parent() == Some(folder)).collect())
    }

    fn symbolic_link(&self, link: &Path, target: &Path) -> io::Result<()> {
        self.files.borrow_mut().symbolic_link(name(link), name(target));
        Ok(())
    }

    fn remove_file(&self, file: &Path) -> io::Result<()> {
        found(self.files.borrow_mut().remove(name(file)))
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        let files = self.files.borrow();
        let mut names = files.seen().files.keys().chain(files.seen().links.keys());
        let is_empty = !names.any(|path| Path::new(path).starts_with(folder));
        if is_empty { Ok(()) } else { Err(io::ErrorKind::DirectoryNotEmpty.into()) }
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    fn sync(&self, file: &Path) -> io::Result<()> {
        if self.bug != Some(InjectedBug::SealUnwritten) {
            self.files.borrow_mut().sync(name(file));
        }
        Ok(())
    }

    fn sync_all(&self, _folder: &Path) -> io::Result<()> {
        self.files.borrow_mut().sync_all();
        Ok(())
    }
}

/// A file that is read.
struct Open(File);

impl Content for Open {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.bytes.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.bytes.len());
        let rest = &self.0.bytes[start..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn has_hole(&self) -> bool {
        self.0.has_hole
    }
}
