#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]

mod archives;
mod listing;
mod properties;
mod secrets;
mod unpacking;

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Listing, Packed, Selection, UnpackError, Unpacked, list, pack, unpack};

/// Enough for every archive of these tests that is not too large on purpose.
const LIMIT: u64 = 64 << 20;

/// A temporary folder.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let bench = Self::new();
        for (path, text) in files {
            bench.write(path, text);
        }
        bench
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn at(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    fn mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn list(&self, include: &[&str], exclude: &[&str]) -> Listing {
        let owned = |patterns: &[&str]| patterns.iter().map(ToString::to_string).collect();
        list(self.path(), &Selection { include: owned(include), exclude: owned(exclude) }).unwrap()
    }

    fn names(&self, include: &[&str], exclude: &[&str]) -> Vec<String> {
        self.list(include, exclude).files.into_iter().map(|item| item.path).collect()
    }

    fn pack(&self) -> (Packed, Vec<u8>) {
        let mut archive = Vec::new();
        let packed = pack(self.path(), &self.list(&[], &[]), &mut archive).unwrap();
        (packed, archive)
    }

    fn unpack(&self, archive: &[u8], sha256: &str) -> Result<Unpacked, UnpackError> {
        unpack(Cursor::new(archive), sha256, self.path(), LIMIT)
    }

    /// Returns the kind, mode and content of each path, without the folders.
    fn tree(&self) -> BTreeMap<String, (u32, Vec<u8>)> {
        let mut tree = BTreeMap::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let found = path.symlink_metadata().unwrap();
                let name = path.strip_prefix(self.path()).unwrap().to_str().unwrap().to_owned();
                if found.is_dir() {
                    folders.push(path);
                } else if found.is_symlink() {
                    tree.insert(name, (0, fs::read_link(path).unwrap().into_os_string().into_encoded_bytes()));
                } else {
                    tree.insert(name, (found.permissions().mode() & 0o777, fs::read(path).unwrap()));
                }
            }
        }
        tree
    }
}
