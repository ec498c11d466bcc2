//! Runs blocking calls, and describes their errors.

use std::io;
use std::path::Path;

pub(super) fn cannot(what: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}

/// Runs a blocking function, such as reading many files, outside of the runtime's threads.
pub(super) async fn beside<T: Send + 'static>(
    what: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(what).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}
