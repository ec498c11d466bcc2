//! Measures the time and memory of a test.

use std::time::Duration;

/// Returns the peak memory of this process in KiB; `None` if the system does not report it.
pub(crate) fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the CPU time of this thread so far (proc(5), schedstat), which other programs on a busy machine do not
/// change.
pub(crate) fn computed() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts the time of a thread");
    let nanoseconds = stat.split_whitespace().next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.expect("the first number is nanoseconds"))
}

/// Scales a limit for unoptimised code, which is about twenty times slower than the deployed code.
pub(crate) fn scaled(limit: Duration) -> Duration {
    if cfg!(debug_assertions) { limit * 30 } else { limit }
}
