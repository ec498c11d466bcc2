//! Finds the device of an attached volume.
#![expect(
    clippy::disallowed_methods,
    reason = "/dev and /sys are the host's: a training has no capability to change them"
)]

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use spotsweep_protocol::claim::WorkspaceGrant;
use tokio::time::{Instant, sleep};

use crate::exit::Failure;
use crate::kernel;
use crate::log::say;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// The name of a volume that is a folder, on the local stack. udev gives EBS volumes links of this name, too (fact 27).
/// They may still lead to a device that is another volume by now (fact 59), so links to devices are not followed.
const BY_ID: &str = "disk/by-id/nvme-Amazon_Elastic_Block_Store_";
/// The kernel's own list of block devices; it is the same in every container.
const BLOCK_DEVICES: &str = "/sys/class/block";
/// The type that Xen's bus reports for a disk (`devtype` in `drivers/xen/xenbus/xenbus_probe.c` of Linux).
const XEN_DISK: &str = "vbd";

/// Where the bytes of a volume are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Device {
    /// A disk, by its device file.
    Block(PathBuf),
    /// A folder, on the local stack.
    Folder(PathBuf),
}

/// Waits for the granted volume's device, because an attachment is asynchronous.
pub(super) async fn wait(devices: &Path, grant: &WorkspaceGrant, deadline: Instant) -> Result<Device, Failure> {
    loop {
        if let Some(device) = find(devices, Path::new(BLOCK_DEVICES), grant) {
            return Ok(device);
        }
        if Instant::now() + PAUSE > deadline {
            return Err(Failure::Interrupted(format!(
                "{} is granted, but has not appeared in {}, with its serial number in {BLOCK_DEVICES}: the container must \
                 see the host's devices (run it privileged, or mount the host's /dev and say where with SPOTSWEEP_DEV)",
                grant.volume,
                devices.display()
            )));
        }
        sleep(PAUSE).await;
    }
}

fn find(devices: &Path, block_devices: &Path, grant: &WorkspaceGrant) -> Option<Device> {
    let serial = grant.volume.replace('-', "");
    by_serial(devices, block_devices, &serial)
        .or_else(|| folder(&devices.join(format!("{BY_ID}{serial}"))))
        .or_else(|| xen_names(&grant.device).find_map(|name| xen_disk(devices, block_devices, &name)))
}

/// The target of a link to a folder.
fn folder(link: &Path) -> Option<Device> {
    let path = link.canonicalize().ok().filter(|path| path.is_dir())?;
    Some(Device::Folder(path))
}

/// The disk that the kernel lists with the volume's serial number.
fn by_serial(devices: &Path, block_devices: &Path, serial: &str) -> Option<Device> {
    let names = fs::read_dir(block_devices).ok()?.flatten().map(|entry| entry.path());
    let listed = names.into_iter().find(|path| {
        // A partition has the same `device` as its disk, so it is excluded. A path without a number cannot be opened.
        is_marked(path, "device/serial", serial) && path.join("dev").exists() && !path.join("partition").exists()
    })?;
    file_of(devices, &listed)
}

/// The disk with the name that AttachVolume was given, on Xen. Disks have no serial number there; the name identifies
/// the attachment's slot.
fn xen_disk(devices: &Path, block_devices: &Path, name: &str) -> Option<Device> {
    let listed = block_devices.join(name);
    is_marked(&listed, "device/devtype", XEN_DISK).then(|| file_of(devices, &listed)).flatten()
}

fn is_marked(listed: &Path, file: &str, mark: &str) -> bool {
    kernel::text(listed.join(file)).is_ok_and(|found| found.trim() == mark)
}

/// The device file of a disk that the kernel lists. A missing file is made: without udev, as in a container whose
/// `/dev` was filled at its start, there is none. A file with another number belongs to a disk that had the name
/// before.
fn file_of(devices: &Path, listed: &Path) -> Option<Device> {
    let numbers = kernel::text(listed.join("dev")).ok()?;
    let (major, minor) = numbers.trim().split_once(':')?;
    let number = makedev(major.parse().ok()?, minor.parse().ok()?);
    let path = devices.join(listed.file_name()?);
    if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        mknodat(CWD, &path, FileType::BlockDevice, Mode::RUSR | Mode::WUSR, number).ok()?;
        say(&format!("made {} for the volume", path.display()));
    }
    let found = fs::metadata(&path).ok()?;
    let is_it = found.file_type().is_block_device() && found.rdev() == number;
    is_it.then(|| path.canonicalize().ok().map(Device::Block)).flatten()
}

/// On Xen, the name that was granted, and the kernel's own form of it:
/// <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/device_naming.html>.
fn xen_names(granted: &str) -> impl Iterator<Item = String> {
    let name = granted.trim_start_matches("/dev/").to_owned();
    let kernels = name.strip_prefix("sd").map(|letter| format!("xvd{letter}"));
    let plain = !name.is_empty() && !name.contains(['/', '.']);
    [Some(name), kernels].into_iter().flatten().filter(move |_| plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    fn grant(device: &str) -> WorkspaceGrant {
        WorkspaceGrant { volume: "vol-0abc".into(), device: device.into(), blank: false }
    }

    /// Writes the kernel's list of devices: their names, a file and its text, and their numbers.
    fn list(sys: &Path, devices: &[(&str, &str, &str, &str)]) {
        for (name, file, text, number) in devices {
            fs::create_dir_all(sys.join(name).join("device")).unwrap();
            fs::write(sys.join(name).join(file), format!("{text}  \n")).unwrap();
            if !number.is_empty() {
                fs::write(sys.join(name).join("dev"), format!("{number}\n")).unwrap();
            }
        }
    }

    #[test]
    fn a_folder_is_found_by_its_link_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (devices, sys) = (folder.path().join("dev"), folder.path().join("sys"));
        let by_id = devices.join("disk/by-id");
        fs::create_dir_all(&by_id).unwrap();
        fs::create_dir_all(folder.path().join("volume")).unwrap();
        let other = by_id.join("nvme-Amazon_Elastic_Block_Store_vol0abcd");
        symlink(folder.path().join("volume"), other).unwrap();
        // A folder is never taken by its Xen name, because it may be any folder.
        fs::create_dir_all(devices.join("sdf")).unwrap();
        assert_eq!(find(&devices, &sys, &grant("/dev/sdf")), None);
        let own = by_id.join("nvme-Amazon_Elastic_Block_Store_vol0abc");
        symlink("../../../nowhere", &own).unwrap();
        assert_eq!(find(&devices, &sys, &grant("")), None, "a link that leads nowhere yet");
        fs::remove_file(&own).unwrap();
        symlink("../../../volume", &own).unwrap();
        let volume = folder.path().join("volume").canonicalize().unwrap();
        assert_eq!(find(&devices, &sys, &grant("")), Some(Device::Folder(volume)));
    }

    /// Runs as root only, because other users cannot make device files. The numbers are those of loop devices, which do
    /// not have to exist.
    #[test]
    fn a_disk_is_the_one_that_has_the_volumes_serial_number() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (devices, sys) = (folder.path().join("dev"), folder.path().join("sys"));
        let by_id = devices.join("disk/by-id");
        fs::create_dir_all(&by_id).unwrap();
        let devices = devices.canonicalize().unwrap();
        let node = |name: &str, minor| {
            mknodat(CWD, devices.join(name), FileType::BlockDevice, Mode::RUSR, makedev(7, minor)).unwrap();
        };
        node("nvme1n1", 201);
        node("nvme2n1", 202);
        list(
            &sys,
            &[
                ("nvme1n1", "device/serial", "vol0def", "7:201"),
                ("nvme2n1", "device/serial", "vol0abc", "7:203"),
                // A partition, a path of a disk with several, and a volume whose id begins in the same way.
                ("nvme3n1p1", "device/serial", "vol0abc", "7:204"),
                ("nvme3c1n1", "device/serial", "vol0abc", ""),
                ("nvme4n1", "device/serial", "vol0abcd", "7:205"),
            ],
        );
        fs::write(sys.join("nvme3n1p1/partition"), "1\n").unwrap();
        // Both names lead to a device that is another volume by now.
        for link in ["disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0abc", "sdf"] {
            symlink(devices.join("nvme1n1"), devices.join(link)).unwrap();
        }
        assert_eq!(find(&devices, &sys, &grant("/dev/sdf")), None, "its device file is that of another disk yet");
        fs::remove_file(devices.join("nvme2n1")).unwrap();
        let found = find(&devices, &sys, &grant("/dev/sdf"));
        assert_eq!(found, Some(Device::Block(devices.join("nvme2n1"))), "the device file is made");
        assert_eq!(find(&devices, &sys, &grant("/dev/sdf")), found, "the second time it is there");
        fs::write(sys.join("nvme2n1/device/serial"), "vol0123\n").unwrap();
        assert_eq!(find(&devices, &sys, &grant("/dev/sdf")), None, "the disk is another volume");
    }

    #[test]
    fn only_a_xen_disk_is_found_by_its_name() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (devices, sys) = (folder.path().join("dev"), folder.path().join("sys"));
        fs::create_dir_all(&devices).unwrap();
        let devices = devices.canonicalize().unwrap();
        list(&sys, &[("sdf", "device/model", "Disk", "7:201")]);
        assert_eq!(find(&devices, &sys, &grant("/dev/sdf")), None, "a disk of another kind");
        list(&sys, &[("xvdf", "device/devtype", "vbd", "7:202"), ("xvdg", "device/devtype", "vbd", "7:203")]);
        let found = find(&devices, &sys, &grant("/dev/sdf"));
        assert_eq!(found, Some(Device::Block(devices.join("xvdf"))));
    }

    #[test]
    fn xen_names_are_names() {
        let names = |granted: &str| xen_names(granted).collect::<Vec<_>>();
        assert_eq!(names("/dev/sdf"), ["sdf", "xvdf"]);
        assert_eq!(names("/dev/xvdba"), ["xvdba"]);
        assert_eq!(names("/dev/../etc/passwd"), [""; 0]);
        assert_eq!(names(""), [""; 0]);
    }
}
