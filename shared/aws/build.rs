//! Warns before the AWS SDK is compiled on a machine that may have too little memory for it. Cargo prints the warning
//! and compiles nevertheless.

use std::fs;
use std::io::{self, Write};

/// The memory of two jobs while one of them compiles `aws-sdk-ec2`, with some to spare (docs/performance.md).
const NEEDED_BYTES: u64 = 10_000_000_000;

fn main() -> io::Result<()> {
    let mut cargo = io::stdout();
    writeln!(cargo, "cargo::rerun-if-changed=build.rs")?;
    if let Some(free) = free_bytes().filter(|free| *free < NEEDED_BYTES) {
        let gigabytes = free as f64 / 1e9;
        writeln!(
            cargo,
            "cargo::warning={gigabytes:.1} GB of memory are free, and compiling aws-sdk-ec2 alone takes up to 8 GB. \
             If the compiler is killed, build with one job: set CARGO_BUILD_JOBS=1 before the same command."
        )?;
    }
    Ok(())
}

/// Returns the free memory of this machine, or of the container that this runs in; `None` if Linux's files do not have
/// it.
fn free_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok()?;
    let line = machine.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let machine = line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024;
    let group = |file: &str| fs::read_to_string(format!("/sys/fs/cgroup/memory.{file}")).ok();
    let number = |file: &str| group(file)?.trim().parse::<u64>().ok();
    // Cached files count as used, but their memory can be freed.
    let cached = || group("stat")?.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok());
    let used = || Some(number("current")?.saturating_sub(cached().unwrap_or(0)));
    let group = number("max").zip(used()).map(|(most, used)| most.saturating_sub(used));
    Some(group.map_or(machine, |group| group.min(machine)))
}
