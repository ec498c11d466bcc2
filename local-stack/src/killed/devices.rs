//! Removes loop devices and mounts of a run whose host was killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spotsweep_emulator::Process;
use tokio::time::{Instant, sleep};

use super::{PATIENCE, POLL};
use crate::leftovers::{loops, mounts};
use spotsweep_protocol::failure::Failure;

/// How often to look whether the devices are gone, before they are detached again.
const LOOKS_A_TRY: u32 = 10;

/// Number of the run's loop devices and mounts.
pub(super) fn count(run: &Path) -> usize {
    loops(run).len() + mounts(run).len()
}

/// Thaws the file systems of the run's volumes. The host freezes a file system while it copies the volume
/// (fsfreeze(8)). If the host is killed then, nothing else thaws it.
pub(super) fn thaw(run: &Path, processes: &[Process]) {
    let numbers: Vec<String> =
        loops(run).iter().filter_map(|device| fs::read_to_string(format!("{device}/dev")).ok()).collect();
    for process in processes {
        let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", process.pid)).unwrap_or_default();
        // In proc_pid_mountinfo(5) the third field is the device, and the fifth is the mount point.
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        for fields in
            fields.filter(|fields| fields.len() > 4 && numbers.iter().any(|number| number.trim() == fields[2]))
        {
            let point = PathBuf::from(format!("/proc/{}/root{}", process.pid, unescaped(fields[4])));
            tool("fsfreeze", &["--unfreeze".as_ref(), point.as_os_str()]);
        }
    }
}

/// Removes the mounts and devices that stay. Those of a job disappear a moment after its processes, so the first looks
/// only wait.
pub(super) async fn take_away(run: &Path) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    let mut looks = 0;
    while count(run) > 0 {
        let (points, devices) = (mounts(run), loops(run));
        if Instant::now() > deadline {
            let left = [points, devices].concat().join(", ");
            return Err(Failure::new(format!("a stack that was killed has left what cannot be taken away: {left}")));
        }
        looks += 1;
        if looks % LOOKS_A_TRY == 0 {
            // The kernel lists inner mounts after the outer ones.
            for point in points.iter().rev() {
                tool("umount", &["--lazy".as_ref(), unescaped(point).as_ref()]);
            }
            for name in devices.iter().filter_map(|device| device.rsplit('/').next()) {
                tool("losetup", &["--detach".as_ref(), format!("/dev/{name}").as_ref()]);
            }
        }
        sleep(POLL).await;
    }
    Ok(())
}

/// Decodes the escapes that the kernel's tables have for a mount point.
fn unescaped(point: &str) -> String {
    point.replace("\\040", " ")
}

/// Runs a program. Its result is ignored, because the caller looks at the devices afterwards.
fn tool(program: &str, arguments: &[&std::ffi::OsStr]) {
    let mut command = Command::new(program);
    let quiet = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    drop(quiet.status());
}
