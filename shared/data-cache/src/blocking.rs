//! Work that waits for the disk.

use std::io;

use tokio::task::spawn_blocking;

use crate::error::DataError;

/// Runs `work` in a thread for blocking work. If the caller is dropped, the work still goes on to its end.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DataError> + Send + 'static,
) -> Result<T, DataError> {
    spawn_blocking(work).await.map_err(|broken| DataError::disk("end a thread")(io::Error::from(broken)))?
}
