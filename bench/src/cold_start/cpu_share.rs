//! Limits a program to the CPU share that Lambda gives to a function of some memory, by the kernel's CFS bandwidth
//! control.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tokio::process::Command;

/// The MB of memory for which Lambda gives one vCPU (docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html).
const MB_PER_VCPU: f64 = 1769.0;
/// The period after which the group's time is refilled. With the kernel's default of 100 ms, a start that needs less
/// than 7 ms of CPU would not be limited at all.
const PERIOD_US: u32 = 20_000;

/// A control group. Dropping it removes it, so all processes in it must have ended.
#[derive(Debug)]
pub(super) struct CpuShare {
    folder: PathBuf,
}

impl CpuShare {
    /// Creates a group with the share of a function of `mb` MB.
    ///
    /// # Errors
    /// If no CPU controller is mounted, or this user may not use it.
    pub(super) fn of_memory(mb: f64) -> io::Result<Self> {
        let mounts = fs::read_to_string("/proc/mounts")?;
        let (root, version) = mounts.lines().find_map(controller).ok_or_else(|| io::Error::other("no cgroups"))?;
        let folder = root.join(format!("spotsweep-bench-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let share = Self { folder };
        let quota_us = (f64::from(PERIOD_US) * mb / MB_PER_VCPU).round();
        match version {
            Version::One => {
                share.set("cpu.cfs_period_us", &PERIOD_US.to_string())?;
                share.set("cpu.cfs_quota_us", &quota_us.to_string())?;
            }
            Version::Two => share.set("cpu.max", &format!("{quota_us} {PERIOD_US}"))?,
        }
        Ok(share)
    }

    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        fs::write(self.folder.join(file), value)
    }

    /// Returns a command that starts a program in the group: a shell joins the group and becomes the program.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo $$ >\"$0\" && exec \"$@\""]).arg(self.folder.join("cgroup.procs")).arg(program);
        command
    }
}

impl Drop for CpuShare {
    fn drop(&mut self) {
        // A group that remains uses no resources, so an error is dropped.
        let _ = fs::remove_dir(&self.folder);
    }
}

enum Version {
    One,
    Two,
}

/// Parses a line of /proc/mounts that is a CPU controller's.
fn controller(line: &str) -> Option<(PathBuf, Version)> {
    let mut fields = line.split(' ').skip(1);
    let (folder, kind, options) = (PathBuf::from(fields.next()?), fields.next()?, fields.next()?);
    let lists_cpu = |list: &str, separator: &[char]| list.split(separator).any(|name| name == "cpu");
    if kind == "cgroup" && lists_cpu(options, &[',']) {
        return Some((folder, Version::One));
    }
    let enabled = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
    (kind == "cgroup2" && lists_cpu(&enabled, &[' ', '\n'])).then_some((folder, Version::Two))
}
