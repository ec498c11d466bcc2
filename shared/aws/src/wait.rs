//! How commands wait.

use std::time::Duration;

use spotsweep_control_plane::calls::Wait;

/// Waits on tokio's clock. Lambda ends an invocation that waits too long.
#[derive(Debug)]
pub(super) struct Timer;

impl Wait for Timer {
    async fn wait(&self, time: Duration) -> bool {
        tokio::time::sleep(time).await;
        true
    }
}
