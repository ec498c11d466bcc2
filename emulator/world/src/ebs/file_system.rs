//! The files of a volume in memory: as the instance that has mounted the volume reads them, and as they are on the
//! volume.
//!
//! Linux keeps written data in memory, and writes it out about half a minute later, or when a program demands it
//! (fsync(2), sync(2), umount(2)). If the instance is lost, the rest is lost too: see [`loss`].

mod loss;

use std::collections::BTreeMap;
use std::sync::Arc;

/// Linux writes out what has been in memory for this time (`vm.dirty_expire_centisecs`,
/// <https://docs.kernel.org/admin-guide/sysctl/vm.html>).
const WRITTEN_OUT_AFTER_NS: i64 = 30_000_000_000;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The inode's number. A file that replaces another one by a rename has another inode.
    pub inode: u64,
    /// When it was modified, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Its content.
    pub bytes: Arc<Vec<u8>>,
    /// Whether some of its blocks were never written. They read as zeros, and `SEEK_HOLE` finds them (lseek(2)).
    pub has_hole: bool,
    /// A number that changes with each truncation. After a change no block has the content from before.
    blocks: u64,
}

/// The names of files and links with their contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// The files by path.
    pub files: BTreeMap<String, File>,
    /// The targets of symbolic links by path.
    pub links: BTreeMap<String, String>,
}

/// How an existing file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// Its content is removed first (`O_TRUNC`).
    Truncated,
    /// Its content stays, and is overwritten.
    Kept,
}

/// The files of one volume.
#[derive(Debug, Clone, Default)]
pub struct FileSystem {
    seen: View,
    written: View,
    /// The contents before a later write in place, by inode. They may be on the volume, although nothing demanded it.
    passed: BTreeMap<u64, File>,
    /// The last number that was given to an inode or to blocks.
    numbers: u64,
}

impl FileSystem {
    /// Makes a file system with these files, all of them written out.
    pub fn of(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let mut made = Self::default();
        for (path, bytes) in files {
            made.write(&path, 0, &bytes, 0);
        }
        made.sync_all();
        made
    }

    /// Returns the files as the instance reads them.
    pub fn seen(&self) -> &View {
        &self.seen
    }

    /// Returns the files that are certainly on the volume.
    pub fn written(&self) -> &View {
        &self.written
    }

    /// Returns the content of a file as the instance reads it.
    pub fn content(&self, path: &str) -> Option<&[u8]> {
        self.seen.files.get(path).map(|file| file.bytes.as_slice())
    }

    /// Returns the bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.seen.files.values().map(|file| file.bytes.len() as u64).sum()
    }

    /// Opens a file for writing, and creates it if it does not exist.
    pub fn open(&mut self, path: &str, opened: Opened, now_ns: i64) {
        let number = self.next_number();
        let made =
            || File { inode: number, modified_ns: now_ns, bytes: Arc::default(), has_hole: false, blocks: number };
        let file = self.seen.files.entry(path.to_owned()).or_insert_with(made);
        if opened == Opened::Truncated && file.inode != number {
            let emptied = File { modified_ns: now_ns, bytes: Arc::default(), has_hole: false, blocks: number, ..*file };
            self.put(&emptied);
        }
    }

    /// Writes `bytes` at `offset` of a file, and creates it if it does not exist.
    pub fn write(&mut self, path: &str, offset: usize, bytes: &[u8], now_ns: i64) {
        self.open(path, Opened::Kept, now_ns);
        let Some(mut file) = self.seen.files.get(path).cloned() else { return };
        let is_old = now_ns.saturating_sub(file.modified_ns) >= WRITTEN_OUT_AFTER_NS;
        if is_old && offset + bytes.len() <= file.bytes.len() {
            self.passed.insert(file.inode, file.clone());
        }
        let content = Arc::make_mut(&mut file.bytes);
        content.resize(content.len().max(offset + bytes.len()), 0);
        content[offset..offset + bytes.len()].copy_from_slice(bytes);
        file.modified_ns = now_ns;
        self.put(&file);
    }

    /// Sets the time of a file's last modification. Returns whether the file exists.
    pub fn set_modified(&mut self, path: &str, modified_ns: i64) -> bool {
        let changed = self.seen.files.get(path).map(|file| File { modified_ns, ..file.clone() });
        changed.inspect(|changed| self.put(changed)).is_some()
    }

    /// Changes a file under all its names.
    fn put(&mut self, changed: &File) {
        for file in self.seen.files.values_mut().filter(|file| file.inode == changed.inode) {
            *file = changed.clone();
        }
    }

    /// Renames a file, or a folder with its files and links. Returns whether it exists.
    pub fn rename(&mut self, from: &str, to: &str) -> bool {
        let Some(file) = self.seen.files.remove(from) else { return self.rename_folder(from, to) };
        self.seen.links.remove(to);
        self.seen.files.insert(to.to_owned(), file);
        true
    }

    fn rename_folder(&mut self, from: &str, to: &str) -> bool {
        let within = format!("{from}/");
        let files = self.seen.files.extract_if(.., |path, _| path.starts_with(&within));
        let files: Vec<_> = files.map(|(path, file)| (path.replacen(from, to, 1), file)).collect();
        let links = self.seen.links.extract_if(.., |path, _| path.starts_with(&within));
        let links: Vec<_> = links.map(|(path, target)| (path.replacen(from, to, 1), target)).collect();
        let is_there = !files.is_empty();
        self.seen.files.extend(files);
        self.seen.links.extend(links);
        is_there
    }

    /// Gives a file another name. Returns whether the file exists and the name was free.
    pub fn hard_link(&mut self, file: &str, name: &str) -> bool {
        let found = self.seen.files.get(file).filter(|_| !self.seen.files.contains_key(name)).cloned();
        found.is_some_and(|found| self.seen.files.insert(name.to_owned(), found).is_none())
    }

    /// Makes a symbolic link, which replaces a file or link of that name.
    pub fn symbolic_link(&mut self, link: &str, target: &str) {
        self.seen.files.remove(link);
        self.seen.links.insert(link.to_owned(), target.to_owned());
    }

    /// Removes a file or a symbolic link. Returns whether it existed.
    pub fn remove(&mut self, path: &str) -> bool {
        self.seen.files.remove(path).is_some() || self.seen.links.remove(path).is_some()
    }

    /// Writes out a file and the names in its folder, as fsync(2) of both does. Of the other files in the folder only
    /// the names are then on the volume.
    pub fn sync(&mut self, path: &str) {
        let Some(synced) = self.seen.files.get(path).cloned() else { return };
        for file in self.written.files.values_mut().filter(|file| file.inode == synced.inode) {
            *file = synced.clone();
        }
        self.passed.remove(&synced.inode);
        let folder = folder(path).to_owned();
        self.written.files.retain(|path, _| self::folder(path) != folder || self.seen.files.contains_key(path));
        self.written.links.retain(|path, _| self::folder(path) != folder);
        for (path, file) in self.seen.files.iter().filter(|(path, _)| self::folder(path) == folder) {
            let is_same = self.written.files.get(path).is_some_and(|there| there.inode == file.inode);
            if !is_same && file.inode != synced.inode {
                let known = self.written.files.values().find(|there| there.inode == file.inode).cloned();
                let empty = || File { bytes: Arc::default(), has_hole: false, ..file.clone() };
                self.written.files.insert(path.clone(), known.unwrap_or_else(empty));
            }
        }
        let links = self.seen.links.iter().filter(|(path, _)| self::folder(path) == folder);
        self.written.links.extend(links.map(|(path, target)| (path.clone(), target.clone())));
        self.written.files.insert(path.to_owned(), synced);
    }

    /// Writes out everything, as syncfs(2) and umount(2) do.
    pub fn sync_all(&mut self) {
        self.written = self.seen.clone();
        self.passed.clear();
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}

/// Returns the path of the folder that contains a file's name.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
