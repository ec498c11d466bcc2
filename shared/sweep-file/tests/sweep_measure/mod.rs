//! What a test has cost.

use std::time::Duration;

/// The most memory this process has had, in KiB; `None` where the system does not tell.
pub(crate) fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The CPU time of this thread so far (proc(5), schedstat): what other programs take on a busy machine does not count.
pub(crate) fn computed() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts the time of a thread");
    let nanoseconds = stat.split_whitespace().next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.expect("the first number is nanoseconds"))
}

/// Unoptimised code is some twenty times slower than what is deployed.
pub(crate) fn scaled(limit: Duration) -> Duration {
    if cfg!(debug_assertions) { limit * 30 } else { limit }
}
