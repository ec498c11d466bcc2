//! Fills the container's root folder with the machine's files, and makes it `/`.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::mount::{UnmountFlags, mount_bind, mount_bind_recursive, unmount};
use rustix::process::{chdir, pivot_root};

use super::namespace::Rights;
use super::{ContainerError, HOME, Setup, failed, layer, within};

/// The top folders that belong to the container, whatever the machine has there.
const OWN: [&str; 2] = ["dltraining", "storage"];
const TEMPORARY: &str = "tmp";
/// The mode of a home.
const PRIVATE: u32 = 0o700;

/// Fills the root with the entries at the machine's top, and makes the home.
pub(super) fn fill(setup: &Setup, rights: Rights) -> Result<(), ContainerError> {
    let entries = fs::read_dir("/").and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(failed(|| "list /".to_owned()))?;
    // The entry that contains the root comes first. Later it would be mounted with everything that has been mounted in
    // the root.
    entries.sort_by_key(|entry| !setup.root.starts_with(entry.path()));
    let home = Path::new(HOME);
    for entry in entries.iter().filter(|entry| !OWN.iter().any(|own| entry.file_name() == *own) && entry.path() != home)
    {
        let shown = show(entry, setup, rights);
        shown.map_err(failed(|| format!("show {} to the container", entry.path().display())))?;
    }
    let home = within(&setup.root, home);
    let made = fs::create_dir(&home).and_then(|()| fs::set_permissions(&home, Permissions::from_mode(PRIVATE)));
    made.map_err(failed(|| format!("make {}", home.display())))
}

/// Shows an entry of the machine under the same path below the root.
fn show(entry: &DirEntry, setup: &Setup, rights: Rights) -> io::Result<()> {
    let (from, to, kind) = (entry.path(), setup.root.join(entry.file_name()), entry.file_type()?);
    if kind.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if !kind.is_dir() {
        fs::write(&to, "")?;
        return Ok(mount_bind(from, to)?);
    }
    fs::create_dir(&to)?;
    if entry.file_name() == OsStr::new(TEMPORARY) {
        return layer::show_temporary(&from, &to, &setup.changes, rights);
    }
    Ok(mount_bind_recursive(from, to)?)
}

/// Shows the emulator's folder unchanged, even if it is below `/tmp`.
pub(super) fn show_work_dir(setup: &Setup) -> Result<(), ContainerError> {
    let at = within(&setup.root, &setup.work_dir);
    let shown = fs::create_dir_all(&at).and_then(|()| Ok(mount_bind(&setup.work_dir, &at)?));
    shown.map_err(failed(|| format!("show {} to the container", setup.work_dir.display())))
}

/// Shows the instance's block devices in place of the kernel's. sysfs does not take files, and its loop devices have no
/// serial number.
pub(super) fn show_block_devices(setup: &Setup) -> Result<(), ContainerError> {
    let Some(devices) = &setup.block_devices else { return Ok(()) };
    let at = within(&setup.root, Path::new("/sys/class/block"));
    mount_bind(devices, at).map_err(failed(|| format!("show {} to the container", devices.display())))
}

/// Makes `root` the process's `/`, unmounts everything else, and changes to `folder`.
pub(super) fn become_root(root: &Path, folder: &Path) -> Result<(), ContainerError> {
    let changed = || {
        // A new root has to be a mount point.
        mount_bind_recursive(root, root)?;
        chdir(root)?;
        // The old root is mounted over the new one, and is then unmounted (pivot_root(2), "pivot_root(".", ".")").
        pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        chdir(folder)
    };
    changed().map_err(failed(|| format!("change the root to {}", root.display())))
}
