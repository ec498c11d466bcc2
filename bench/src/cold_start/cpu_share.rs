//! The share of a processor that Lambda gives to a function of some memory, by the kernel's CFS bandwidth control.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tokio::process::Command;

/// MB of memory for which Lambda gives one vCPU (docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html).
const MB_PER_VCPU: f64 = 1769.0;
/// What the group is refilled after. With the kernel's default of 100 ms a start that needs less than 7 ms of CPU
/// would not be held back at all, and its share would say nothing.
const PERIOD_US: u32 = 20_000;

/// A control group. Dropping it removes it, so whatever was started in it has to be dead by then.
#[derive(Debug)]
pub(super) struct CpuShare {
    folder: PathBuf,
}

impl CpuShare {
    /// A group with the share of a function of so much memory.
    ///
    /// # Errors
    /// Where no CPU controller is mounted, or this user may not use it.
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

    /// Starts a program inside of the group: a shell joins it and becomes the program.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo $$ >\"$0\" && exec \"$@\""]).arg(self.folder.join("cgroup.procs")).arg(program);
        command
    }
}

impl Drop for CpuShare {
    fn drop(&mut self) {
        // Left behind it holds nothing and costs nothing.
        let _ = fs::remove_dir(&self.folder);
    }
}

enum Version {
    One,
    Two,
}

/// A line of /proc/mounts that is a CPU controller's.
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
