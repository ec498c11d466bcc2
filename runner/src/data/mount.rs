//! Shows a data set to the container, and hides the cache from it.

use std::io;
use std::path::Path;

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};
use spotsweep_beneath::Folder;

use crate::log::say;

/// The flags that a new mount inherits. A user namespace may not clear them (mount_namespaces(7)).
const INHERITED: [(StatVfsMountFlags, MountFlags); 6] = [
    (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
    (StatVfsMountFlags::NODEV, MountFlags::NODEV),
    (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
    (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
    (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
    (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
];

/// Mounts `tree` read-only at `folder`, which is below `root`.
pub(super) fn show(tree: &Path, root: &Path, folder: &Path) -> io::Result<()> {
    let name = folder.strip_prefix(root).map_err(io::Error::other)?;
    Folder::made(root)?.make_folder(name)?;
    match mount_bind(tree, folder) {
        Err(Errno::PERM) => {
            say(
                "without privileges data sets cannot be mounted: a link leads to them, and the training can change them",
            );
            return link(tree, folder);
        }
        bound => bound?,
    }
    // The first mount ignores all flags but MS_BIND (mount(2)).
    let held = statvfs(folder)?.f_flag;
    let inherited = INHERITED.into_iter().filter(|(flag, _)| held.contains(*flag)).map(|(_, flag)| flag);
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount_remount(folder, inherited.fold(flags, |all, flag| all | flag), "")?)
}

/// Mounts an empty folder over the cache.
pub(super) fn hide(cache: &Path) -> io::Result<()> {
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    match mount("tmpfs", cache, "tmpfs", flags, Some(c"size=4k,mode=0700")) {
        Err(Errno::PERM) => Ok(()),
        mounted => Ok(mounted?),
    }
}

/// Puts a link in the place of the folder.
#[expect(clippy::disallowed_methods, reason = "no training runs yet that could change the folder")]
fn link(tree: &Path, folder: &Path) -> io::Result<()> {
    std::fs::remove_dir(folder)?;
    std::os::unix::fs::symlink(tree, folder)
}
