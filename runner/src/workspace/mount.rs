//! Mounts a device or links a folder, and undoes that.
#![expect(clippy::disallowed_methods, reason = "the mount point is in a folder of root's")]

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open, syncfs};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, unmount};
use tokio::time::sleep;

use super::WorkspaceError;
use crate::exit::Failure;

/// How often unmounting is tried, because a process that was killed a moment ago still holds its files.
const ROUNDS: u32 = 30;
const PAUSE: Duration = Duration::from_millis(100);

/// Mounts `device` on `point` and checks that it is mounted. Files that are written to a mount point without a mount
/// are on the instance's own disk, and lost (fact 20). After a crash the kernel replays the journal here.
pub(super) fn mount(device: &Path, point: &Path, file_system: &str) -> Result<(), Failure> {
    let prepared = |source| Failure::Prepare { path: point.into(), source };
    if fs::symlink_metadata(point).is_ok_and(|found| found.is_symlink()) {
        fs::remove_file(point).map_err(prepared)?;
    }
    // The image's files at this path are hidden, not lost.
    fs::create_dir_all(point).map_err(prepared)?;
    // The copy of an XFS volume has the same UUID, and both may be attached to one instance.
    let data = (file_system == "xfs").then_some(c"nouuid");
    rustix::mount::mount(device, point, file_system, MountFlags::NODEV | MountFlags::NOSUID, data)
        .map_err(|errno| WorkspaceError::Mount { device: device.into(), point: point.into(), source: errno.into() })?;
    match is_mounted(device, point) {
        Ok(true) => Ok(()),
        Ok(false) => Err(WorkspaceError::NotMounted(point.into()).into()),
        Err(source) => Err(prepared(source)),
    }
}

/// Whether the files at `point` are the device's.
fn is_mounted(device: &Path, point: &Path) -> io::Result<bool> {
    Ok(fs::metadata(point)?.dev() == fs::metadata(device)?.rdev())
}

/// Makes `point` a link to the volume's folder, on the local stack. Training data that is already there, as files of
/// the image, is never touched.
pub(super) fn link(folder: &Path, point: &Path) -> Result<(), Failure> {
    let prepared = |source| Failure::Prepare { path: point.into(), source };
    match fs::symlink_metadata(point) {
        Ok(found) if found.is_symlink() => fs::remove_file(point).map_err(prepared)?,
        Ok(_) => fs::remove_dir(point).map_err(|_| WorkspaceError::Occupied(point.into()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(prepared(error)),
    }
    if let Some(parent) = point.parent() {
        fs::create_dir_all(parent).map_err(prepared)?;
    }
    symlink(folder, point).map_err(prepared)
}

/// Removes the link to a volume's folder.
pub(super) fn unlink(point: &Path) -> io::Result<()> {
    fs::remove_file(point)
}

/// Writes out the file system of `point`.
pub(super) fn sync(point: &Path) -> io::Result<()> {
    Ok(syncfs(File::open(point)?)?)
}

/// Unmounts; false if it stays busy. It is an error if the file system is still mounted in another mount namespace. The
/// command may have had its own, which the kernel frees a moment after the command's last process.
pub(super) async fn leave(device: &Path, point: &Path) -> io::Result<bool> {
    for _ in 0..ROUNDS {
        match unmount(point, UnmountFlags::NOFOLLOW) {
            Ok(()) => return until_free(device).await.map(|()| true),
            Err(Errno::BUSY) => sleep(PAUSE).await,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(false)
}

/// Waits until no mount namespace has the device mounted. A mounted one cannot be opened exclusively (open(2),
/// `O_EXCL`).
async fn until_free(device: &Path) -> io::Result<()> {
    for _ in 0..ROUNDS {
        match open(device, OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::BUSY) => sleep(PAUSE).await,
            // A device that has disappeared is free as well.
            Ok(_) | Err(_) => return Ok(()),
        }
    }
    Err(io::Error::other(format!("{} is still mounted in another mount namespace", device.display())))
}

/// Unmounts once its last user has ended (`MNT_DETACH`); other processes do not find it any more.
pub(super) fn detach(point: &Path) -> io::Result<()> {
    Ok(unmount(point, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_link_takes_the_place_of_nothing_that_matters() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("volume")).unwrap();
        fs::create_dir_all(at("empty")).unwrap();
        fs::create_dir_all(at("full/datasets")).unwrap();
        symlink(at("gone"), at("stale")).unwrap();
        fs::write(at("file"), "").unwrap();
        for point in ["new/deep", "empty", "stale"] {
            link(&at("volume"), &at(point)).unwrap();
            assert_eq!(fs::read_link(at(point)).unwrap(), at("volume"), "{point}");
        }
        for point in ["full", "file"] {
            let problem = link(&at("volume"), &at(point)).unwrap_err().to_string();
            assert!(problem.contains("workspace"), "{problem}");
            assert!(!at(point).is_symlink());
        }
    }
}
