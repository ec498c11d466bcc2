//! What a program that we have started has used so far, as /proc tells it.

use std::fs;
use std::time::Duration;

/// Clock ticks of /proc/PID/stat in a second: fixed in the kernel's interface.
const TICKS: u64 = 100;

/// Of all its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Time on a CPU, its own and the kernel's for it.
    pub cpu: Duration,
    /// The most memory that it had at once; 0 once it has ended.
    pub peak_rss_bytes: u64,
}

impl Usage {
    /// Of a live program, or of one that has ended and has not been waited for.
    ///
    /// # Panics
    /// Where there is no such program.
    pub fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the program is ours");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        let peak_rss_bytes = peak.and_then(|kib| kib.trim().parse::<u64>().ok()).map_or(0, |kib| kib * 1024);
        // To the nanosecond, but without threads that are gone; ticks are whole, and count all.
        let cpu = scheduled(pid).max(ticked(pid));
        Self { cpu, peak_rss_bytes }
    }
}

/// Sums what the scheduler gave to its live threads.
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
    // The name, in parentheses, may hold anything. The state behind it is field 3, the times are 14 and 15.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}
