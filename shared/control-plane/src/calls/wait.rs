//! Time for a command to wait in.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

/// Waits. No command reads a clock.
pub trait Wait: Debug + Send + Sync {
    /// Waits for so long. Answers whether there was time: an invocation that has to end sooner does not wait.
    fn wait(&self, time: Duration) -> impl Future<Output = bool> + Send;
}

impl<W: Wait> Wait for &W {
    fn wait(&self, time: Duration) -> impl Future<Output = bool> + Send {
        (**self).wait(time)
    }
}
