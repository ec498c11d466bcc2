//! The clock of invocations that take no time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use spotsweep_control_plane::calls::Wait;

/// Waits of an invocation. Nothing changes while the clock stands, so more of them would only repeat the same calls.
const WAITS: u32 = 3;

/// A clock that stands while an invocation runs. The first waits are over at once, so that what follows a wait is run.
/// Then the invocation has no time left to wait in.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    waits: AtomicU32,
}

impl Wait for Standing {
    async fn wait(&self, _time: Duration) -> bool {
        self.waits.fetch_add(1, Ordering::Relaxed) < WAITS
    }
}
