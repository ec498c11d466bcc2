//! Shows folders whose changes do not reach the machine, by overlayfs or as copies.

use std::ffi::CString;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{MountFlags, mount, mount_bind, mount_bind_recursive};

use super::namespace::Rights;

/// The mode of overlayfs's folder `work/work`, which is made with none. Without this mode only root could remove it.
const REMOVABLE: u32 = 0o700;

/// Shows the image's folder at `at`. If overlayfs cannot keep the changes in `changes`, it is copied.
pub(super) fn show_image(image: &Path, at: &Path, changes: &Path, rights: Rights) -> io::Result<()> {
    overlay(image, at, changes, rights).or_else(|error| {
        if changes.starts_with(image) {
            // The folder would be copied into itself.
            return Err(error);
        }
        let copy = changes.join("copy");
        fs::create_dir(&copy)?;
        let mut copying = Command::new("cp");
        let status = copying.args(["--archive", "--reflink=auto", "--"]).arg(image.join(".")).arg(&copy).status()?;
        if !status.success() {
            return Err(io::Error::other(format!("cp ended with {status}")));
        }
        Ok(mount_bind(&copy, at)?)
    })
}

/// Shows `/tmp` at `at`. If `changes` is below it, or on a file system that overlayfs cannot use, changes are kept in
/// memory. Without overlayfs, `/tmp` is the machine's.
pub(super) fn show_temporary(temporary: &Path, at: &Path, changes: &Path, rights: Rights) -> io::Result<()> {
    let in_memory = || {
        let memory = changes.join("memory");
        fs::create_dir(&memory)?;
        mount("tmpfs", &memory, "tmpfs", MountFlags::empty(), None)?;
        overlay(temporary, at, &memory, rights)
    };
    overlay(temporary, at, &changes.join("tmp"), rights)
        .or_else(|_| in_memory())
        .or_else(|_| Ok(mount_bind_recursive(temporary, at)?))
}

/// Shows `folder` at `at`, and keeps its changes in `changes`.
fn overlay(folder: &Path, at: &Path, changes: &Path, rights: Rights) -> io::Result<()> {
    let (upper, work) = (changes.join("upper"), changes.join("work"));
    fs::create_dir_all(&upper)?;
    fs::create_dir_all(&work)?;
    fs::set_permissions(&upper, fs::metadata(folder)?.permissions())?;
    let open = |path: &Path| open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let folders = [open(folder)?, open(&upper)?, open(&work)?];
    // The folders are given as files, because a comma or colon in a path has another meaning in the options.
    let [folder, upper_file, work_file] =
        folders.each_ref().map(|folder| format!("/proc/self/fd/{}", folder.as_raw_fd()));
    let attributes = match rights {
        Rights::OfTheMachine => "",
        Rights::OfAUserNamespace => ",userxattr",
    };
    let options = format!("lowerdir={folder},upperdir={upper_file},workdir={work_file}{attributes}");
    mount("overlay", at, "overlay", MountFlags::empty(), Some(CString::new(options)?.as_c_str()))?;
    fs::set_permissions(work.join("work"), Permissions::from_mode(REMOVABLE))
}
