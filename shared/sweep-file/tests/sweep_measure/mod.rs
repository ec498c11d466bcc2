//! What a test has cost.

use std::time::Duration;

/// The most memory this process has had, in KiB; `None` where the system does not tell.
pub(crate) fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Unoptimised code is some twenty times slower than what is deployed.
pub(crate) fn scaled(limit: Duration) -> Duration {
    if cfg!(debug_assertions) { limit * 30 } else { limit }
}
