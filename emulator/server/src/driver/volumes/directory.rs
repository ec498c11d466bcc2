//! Volumes as folders, which need no mounts and no rights.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::blocking::{beside, cannot};
use super::tool;

/// The name of the workspace in a trial's root folder.
const MOUNT_POINT: &str = "dltraining";

pub(super) async fn make(path: &Path, from: Option<&Path>) -> Result<u64, String> {
    match from {
        None => tokio::fs::create_dir(path).await.map_err(|error| cannot("make", path, &error))?,
        Some(from) => copy_all(from, path).await?,
    }
    changed(path.to_owned(), None).await
}

pub(super) async fn copy(from: &Path, to: &Path, base: Option<PathBuf>) -> Result<u64, String> {
    copy_all(from, to).await?;
    changed(to.to_owned(), base).await
}

/// Copies bytes, times and permissions. It makes no hard links, because later writes would change both files.
async fn copy_all(from: &Path, to: &Path) -> Result<(), String> {
    let arguments = ["--archive".as_ref(), "--reflink=auto".as_ref(), "--".as_ref(), from.as_os_str(), to.as_os_str()];
    tool::run("cp", &arguments).await.map(|_| ())
}

/// Returns the link to the volume's folder that the runner "mounts".
pub(super) fn mount_point(volume: &Path, root: &Path) -> Option<PathBuf> {
    let point = root.join(MOUNT_POINT);
    let shown = point.is_symlink().then(|| point.canonicalize().ok()).flatten()?;
    (shown == volume.canonicalize().ok()?).then_some(point)
}

/// Returns the bytes of the files whose size or time differs from the base, or which the base does not have.
async fn changed(folder: PathBuf, base: Option<PathBuf>) -> Result<u64, String> {
    beside(move || sum_changed(&folder, base.as_deref())).await
}

fn sum_changed(folder: &Path, base: Option<&Path>) -> io::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (own, theirs) = (entry.metadata()?, base.map(|base| base.join(entry.file_name())));
        if own.is_dir() {
            sum += sum_changed(&entry.path(), theirs.as_deref())?;
            continue;
        }
        let theirs = theirs.and_then(|path| path.symlink_metadata().ok());
        let same = theirs.is_some_and(|theirs| {
            (own.len(), own.mtime(), own.mtime_nsec()) == (theirs.len(), theirs.mtime(), theirs.mtime_nsec())
        });
        if !same {
            sum += own.len();
        }
    }
    Ok(sum)
}
