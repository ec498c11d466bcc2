//! How many requests a fetch makes at once.

use rustix::process::{Resource, getrlimit};

/// The largest range, and the largest object that is asked for as a whole. AWS recommends ranges of 8 to 16 MB:
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance-guidelines.html>.
pub(crate) const RANGE_BYTES: u64 = 16 << 20;
/// The most requests at once.
const MOST_REQUESTS: usize = 512;

/// How a set is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The most requests at once. Each takes up to 512 KiB of memory, besides what its source takes.
    pub at_once: usize,
    /// The bytes that are asked for at once. The last request may exceed them.
    pub bytes_at_once: u64,
}

impl Default for Settings {
    /// Up to 512 requests: S3 takes 100 to 200 ms for a small object, and 5 500 requests a second for each partition of
    /// a bucket's keys (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html>). A request has
    /// a connection and a file, so there are fewer requests where the process may have few files open. Large objects are
    /// fetched in 32 to 64 ranges at once: two for each core.
    fn default() -> Self {
        let files = getrlimit(Resource::Nofile).current.and_then(|most| usize::try_from(most).ok());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let ranges = cores.saturating_mul(2).clamp(32, 64) as u64;
        Self {
            at_once: files.map_or(MOST_REQUESTS, |files| files / 3).clamp(64, MOST_REQUESTS),
            bytes_at_once: ranges * RANGE_BYTES,
        }
    }
}
