//! The folder into which the clients fetch.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Objects;
use super::run_program;

/// What a file takes up besides its content, at most: the rest of its last page, its inode and its name.
const FILE_BYTES: u64 = 6_000;
/// What the runner leaves free, and more.
const SPARE_BYTES: u64 = 2 << 30;

/// An empty folder. What is in it is removed when it is dropped.
#[derive(Debug)]
pub struct Target {
    path: PathBuf,
    is_mounted: bool,
}

impl Target {
    /// Makes a folder in `parent`, or a file system in memory that has room for the objects.
    ///
    /// # Errors
    /// If the folder cannot be made, or `mount` fails, which needs root.
    pub fn make(parent: Option<&Path>, objects: &Objects) -> io::Result<Self> {
        let temporary = std::env::temp_dir();
        let path = parent.unwrap_or(&temporary).join(format!("data-fetch-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        let mut target = Self { path, is_mounted: false };
        if parent.is_none() {
            let size = objects.total() + objects.number * FILE_BYTES + SPARE_BYTES;
            let options = format!("size={size},mode=0755");
            let mut mount = Command::new("mount");
            run_program(mount.args(["-t", "tmpfs", "-o", &options, "data-fetch"]).arg(&target.path))?;
            target.is_mounted = true;
        }
        Ok(target)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let unmounted = if self.is_mounted { run_program(Command::new("umount").arg(&self.path)) } else { Ok(()) };
        if let Err(error) = unmounted.and_then(|()| std::fs::remove_dir_all(&self.path)) {
            eprintln!("{}: {error}", self.path.display());
        }
    }
}
