//! How often the runner repeats a request that was not answered.

use std::time::Duration;

/// First pause between two tries; doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Bounds of the pause that `trial-claim` asks for.
const WAITING_PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(60));

/// The tries of one request.
#[derive(Debug, Clone)]
pub struct Patience {
    longest: Duration,
    pause: Duration,
    failed_at: Option<Duration>,
}

impl Patience {
    /// Allows tries until so much time has passed since the first failure. A call that took long to fail is also
    /// repeated.
    pub fn new(longest: Duration) -> Self {
        Self { longest, pause: FIRST_PAUSE, failed_at: None }
    }

    /// Notes a failed try at this time of a monotonic clock, and returns the pause before the next one. `None` if
    /// there is no next one.
    pub fn failed(&mut self, at: Duration) -> Option<Duration> {
        let since = *self.failed_at.get_or_insert(at);
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        (at + pause < since + self.longest).then_some(pause)
    }
}

/// The pause before the runner repeats a request that `trial-claim` has answered with `Waiting`.
pub fn waiting_pause(retry_after_ms: u64) -> Duration {
    Duration::from_millis(retry_after_ms).clamp(WAITING_PAUSES.0, WAITING_PAUSES.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_the_patience_is_over() {
        let mut patience = Patience::new(Duration::from_secs(120));
        let (mut at, mut pauses) = (Duration::from_secs(70), Vec::new());
        while let Some(pause) = patience.failed(at) {
            pauses.push(pause.as_secs_f64());
            at += pause;
        }
        assert_eq!(pauses, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]);
        // The first try may take as long as it wants.
        assert!(Patience::new(Duration::from_secs(1)).failed(Duration::from_secs(70)).is_some());
    }
}
