//! How a command waits.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

/// Waits for a command, so that no command reads a clock.
pub trait Wait: Debug + Send + Sync {
    /// Waits for this time, and returns whether it has waited. An invocation that has to end sooner does not wait.
    fn wait(&self, time: Duration) -> impl Future<Output = bool> + Send;
}

impl<W: Wait> Wait for &W {
    fn wait(&self, time: Duration) -> impl Future<Output = bool> + Send {
        (**self).wait(time)
    }
}
