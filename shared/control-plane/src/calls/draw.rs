//! The source of secrets.

use std::fmt::Debug;
use std::io;

use spotsweep_protocol::secret::Secret;

/// Draws secrets. It is a call, because a decision must not depend on anything random.
pub trait Draw: Debug + Send + Sync {
    /// Returns another secret each time.
    ///
    /// # Errors
    /// Returns an error if the machine gives no random numbers.
    fn draw(&self) -> io::Result<Secret>;
}
