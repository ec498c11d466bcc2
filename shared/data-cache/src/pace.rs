//! How long a runner waits.

use std::time::Duration;

/// The times of waiting. Tests have shorter ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// The pauses before a request is repeated.
    pub(crate) pauses: [Duration; 3],
    /// How often a runner looks whether a lock is free.
    pub(crate) poll: Duration,
    /// How often progress is reported.
    pub(crate) report: Duration,
    /// A fetch of which nothing is seen for so long has failed.
    pub(crate) standstill: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            pauses: [1, 5, 15].map(Duration::from_secs),
            poll: Duration::from_millis(200),
            report: Duration::from_secs(1),
            standstill: Duration::from_secs(60),
        }
    }
}
