//! Checks paths that only the runner can change.

use std::io;
use std::path::Path;

use rustix::process::geteuid;

use crate::folder::Folder;

const OTHERS_WRITE: u32 = 0o022;
/// The permission bit that allows only the owner of a name to remove or rename it (`S_ISVTX`, inode(7)).
const STICKY: u32 = 0o1000;

/// Whether only root and the own user can change what the path of a folder leads to. Each folder on the way belongs to
/// them, and others can at most add names of their own in it.
///
/// # Errors
/// If there is no such folder.
pub fn is_protected(path: &Path) -> io::Result<bool> {
    let own = geteuid().as_raw();
    let path = path.canonicalize()?;
    for folder in path.ancestors() {
        let found = Folder::trusted(folder)?.own_status()?;
        let is_ours = found.owner.uid == own || found.owner.uid == 0;
        if !is_ours || (found.mode & OTHERS_WRITE != 0 && found.mode & STICKY == 0) {
            return Ok(false);
        }
    }
    Ok(true)
}
