//! What a child process has used so far, from /proc.

use std::fs;
use std::time::Duration;

/// Clock ticks in a second of /proc/PID/stat. The kernel's interface fixes the number.
const TICKS: u64 = 100;

/// What all threads of a process have used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user and kernel mode.
    pub cpu: Duration,
    /// Largest resident memory in bytes. It is 0 after the process has ended.
    pub peak_rss_bytes: u64,
}

impl Usage {
    /// Reads the usage of a process that is alive, or that has ended and has not been waited for.
    ///
    /// # Panics
    /// Panics if there is no such process.
    pub fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the program is ours");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        let peak_rss_bytes = peak.and_then(|kib| kib.trim().parse::<u64>().ok()).map_or(0, |kib| kib * 1024);
        // The scheduler's time is in nanoseconds, but lacks threads that have ended. Ticks are coarse, and count all
        // threads.
        let cpu = scheduled(pid).max(ticked(pid));
        Self { cpu, peak_rss_bytes }
    }
}

/// Sum of what the scheduler gave to the live threads.
fn scheduled(pid: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("the program is ours");
    let nanos = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// `utime` and `stime`, rounded down to ticks.
fn ticked(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the program is ours");
    // The name in parentheses may contain anything. After it, the state is field 3, and the times are fields 14 and 15.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}
