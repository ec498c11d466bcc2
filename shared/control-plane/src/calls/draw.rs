//! Secrets.

use std::fmt::Debug;
use std::io;

use spotsweep_protocol::secret::Secret;

/// Draws secrets: nothing random is decided.
pub trait Draw: Debug + Send + Sync {
    /// Another one each time.
    ///
    /// # Errors
    /// The machine has no random numbers.
    fn draw(&self) -> io::Result<Secret>;
}
