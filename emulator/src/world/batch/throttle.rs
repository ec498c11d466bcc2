//! SubmitJob's rate limit: 50 calls a second per account (facts 18).

use jiff::Timestamp;

const PER_SECOND: i64 = 50;
const MILLIS_PER_TOKEN: i64 = 1000 / PER_SECOND;

/// Holds up to a second's worth of calls.
#[derive(Debug, Default)]
pub(super) struct TokenBucket {
    /// Calls made against a bucket that would be full at `full_at`.
    full_at_millis: i64,
}

impl TokenBucket {
    /// Takes a token; `false` when there is none.
    pub(super) fn take(&mut self, now: Timestamp) -> bool {
        let now = now.as_millisecond();
        let full_at = self.full_at_millis.max(now) + MILLIS_PER_TOKEN;
        let granted = full_at - now <= PER_SECOND * MILLIS_PER_TOKEN;
        if granted {
            self.full_at_millis = full_at;
        }
        granted
    }
}
