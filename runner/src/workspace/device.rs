//! The device under which an attached volume appears.
#![expect(
    clippy::disallowed_methods,
    reason = "/dev and /sys are the host's: a training has no capability to change them"
)]

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use spotsweep_protocol::claim::WorkspaceGrant;
use tokio::time::{Instant, sleep};

use crate::exit::Failure;
use crate::kernel;
use crate::log::say;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// How udev names an EBS volume on Nitro instances, the id following without its dash (fact 27).
const BY_ID: &str = "disk/by-id/nvme-Amazon_Elastic_Block_Store_";
/// The kernel's own list of block devices; the same in every container.
const BLOCK_DEVICES: &str = "/sys/class/block";

/// Where a volume's bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Device {
    /// On a machine with disks.
    Block(PathBuf),
    /// On the local stack the volume is a folder.
    Folder(PathBuf),
}

/// Waits for the granted volume's device, an attachment being asynchronous.
pub(super) async fn wait(devices: &Path, grant: &WorkspaceGrant, deadline: Instant) -> Result<Device, Failure> {
    loop {
        if let Some(device) = find(devices, Path::new(BLOCK_DEVICES), grant) {
            return Ok(device);
        }
        if Instant::now() + PAUSE > deadline {
            return Err(Failure::Interrupted(format!(
                "{} is granted, but has not appeared in {}: the container must see the host's devices (run it \
                 privileged, or mount the host's /dev and say where with SPOTSWEEP_DEV)",
                grant.volume,
                devices.display()
            )));
        }
        sleep(PAUSE).await;
    }
}

fn find(devices: &Path, block_devices: &Path, grant: &WorkspaceGrant) -> Option<Device> {
    let serial = grant.volume.replace('-', "");
    let by_id = devices.join(format!("{BY_ID}{serial}"));
    look(&by_id)
        .or_else(|| by_serial(devices, block_devices, &serial))
        .or_else(|| xen_names(&grant.device).find_map(|name| look(&devices.join(name)).filter(is_block)))
}

fn look(path: &Path) -> Option<Device> {
    let path = path.canonicalize().ok()?;
    let kind = fs::metadata(&path).ok()?.file_type();
    if kind.is_block_device() { Some(Device::Block(path)) } else { kind.is_dir().then_some(Device::Folder(path)) }
}

fn is_block(device: &Device) -> bool {
    matches!(device, Device::Block(_))
}

/// Without udev, as in a container whose `/dev` was filled at its start: the kernel lists the
/// volume by its serial number, and a missing device file can be made.
fn by_serial(devices: &Path, block_devices: &Path, serial: &str) -> Option<Device> {
    let names = fs::read_dir(block_devices).ok()?.flatten().map(|entry| entry.path());
    let listed = names.into_iter().find(|path| {
        let found = kernel::text(path.join("device/serial")).unwrap_or_default();
        // Partitions share their disk's `device`; a disk is what is not a partition.
        found.trim() == serial && !path.join("partition").exists()
    })?;
    let path = devices.join(listed.file_name()?);
    if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        let numbers = kernel::text(listed.join("dev")).ok()?;
        let (major, minor) = numbers.trim().split_once(':')?;
        let number = makedev(major.parse().ok()?, minor.parse().ok()?);
        match mknodat(CWD, &path, FileType::BlockDevice, Mode::RUSR | Mode::WUSR, number) {
            Ok(()) => say(&format!("made {} for the volume", path.display())),
            Err(_) => return None,
        }
    }
    look(&path)
}

/// Xen instances have the name that was granted, or the kernel's own form of it:
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

    #[test]
    fn a_volume_is_found_by_its_id_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (devices, sys) = (folder.path().join("dev"), folder.path().join("sys"));
        let by_id = devices.join("disk/by-id");
        fs::create_dir_all(&by_id).unwrap();
        fs::create_dir_all(folder.path().join("volume")).unwrap();
        let other = by_id.join("nvme-Amazon_Elastic_Block_Store_vol0abcd");
        symlink(folder.path().join("volume"), other).unwrap();
        // A folder is never taken by its Xen name: it may be anything.
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

    #[test]
    fn a_missing_device_file_is_made_from_what_the_kernel_lists() {
        let folder = tempfile::tempdir().unwrap();
        let (devices, sys) = (folder.path().join("dev"), folder.path().join("sys"));
        fs::create_dir_all(&devices).unwrap();
        for (name, serial) in [("nvme0n1", "vol0abcd"), ("nvme1n1p1", "vol0abc"), ("nvme1n1", "vol0abc")] {
            fs::create_dir_all(sys.join(name).join("device")).unwrap();
            fs::write(sys.join(name).join("device/serial"), format!("{serial}  \n")).unwrap();
            // The first loop device: every kernel that has loop devices knows it.
            fs::write(sys.join(name).join("dev"), "7:0\n").unwrap();
        }
        fs::write(sys.join("nvme1n1p1/partition"), "1\n").unwrap();
        let found = find(&devices, &sys, &grant("/dev/sdf"));
        if rustix::process::geteuid().is_root() {
            let path = devices.canonicalize().unwrap().join("nvme1n1");
            assert_eq!(found, Some(Device::Block(path)));
            assert_eq!(find(&devices, &sys, &grant("/dev/sdf")), found, "the second time it is there");
        } else {
            assert_eq!(found, None);
        }
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
