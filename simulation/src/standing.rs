//! A clock for invocations that take no time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use spotsweep_control_plane::calls::Wait;

/// Number of waits of an invocation. Nothing changes while the clock stands, so more waits would only repeat the same
/// calls.
const WAITS: u32 = 3;

/// A clock that stands while an invocation runs. The first waits end at once, so that the code after a wait runs. Then
/// the invocation has no time left to wait.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    waits: AtomicU32,
}

impl Wait for Standing {
    async fn wait(&self, _time: Duration) -> bool {
        self.waits.fetch_add(1, Ordering::Relaxed) < WAITS
    }
}
