//! Decides when, and how often, an event is delivered.

use std::time::Duration;

use crate::Injection;
use spotsweep_world::rng::Rng;

/// Random choices by the injection's seed.
pub(super) struct Plan {
    injection: Injection,
    rng: Rng,
}

impl Plan {
    pub(super) fn new(injection: Injection) -> Self {
        Plan { injection, rng: Rng::new(injection.seed) }
    }

    /// Returns the delays of an event's deliveries, shortest first: none for a lost event, two for a duplicate. Only
    /// EC2's events are best effort (fact 2); others are never lost.
    pub(super) fn delays(&mut self, source: &str) -> Vec<Duration> {
        let best_effort = source == "aws.ec2";
        if best_effort && self.hits(self.injection.lose_best_effort) {
            return Vec::new();
        }
        let copies = if self.hits(self.injection.duplicate) { 2 } else { 1 };
        let mut delays: Vec<Duration> = (0..copies).map(|_| self.delay()).collect();
        delays.sort();
        delays
    }

    fn delay(&mut self) -> Duration {
        let (shortest, longest) = self.injection.delay;
        let mut delay = shortest + longest.saturating_sub(shortest).mul_f64(self.rng.unit());
        if self.hits(self.injection.reorder) {
            delay += Injection::REORDER_WINDOW.mul_f64(self.rng.unit());
        }
        delay
    }

    fn hits(&mut self, share: f64) -> bool {
        share > 0.0 && self.rng.unit() < share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(injection: Injection, source: &str) -> Vec<Vec<Duration>> {
        let mut plan = Plan::new(injection);
        (0..1000).map(|_| plan.delays(source)).collect()
    }

    #[test]
    fn no_injection_means_once_and_at_once() {
        for source in ["aws.ec2", "aws.batch"] {
            let all = delays(Injection::default(), source);
            assert!(all.iter().all(|one| one == &[Duration::ZERO]));
        }
    }

    #[test]
    fn shares_are_kept_and_only_best_effort_events_are_lost() {
        let injection = Injection {
            duplicate: 0.3,
            delay: (Duration::from_millis(5), Duration::from_millis(9)),
            reorder: 0.2,
            lose_best_effort: 0.5,
            seed: 7,
        };
        let (batch, ec2) = (delays(injection, "aws.batch"), delays(injection, "aws.ec2"));
        assert_eq!(batch, delays(injection, "aws.batch"), "same seed, same plan");
        let count = |all: &[Vec<Duration>], copies| all.iter().filter(|one| one.len() == copies).count();
        assert_eq!(count(&batch, 0), 0);
        assert!((240..360).contains(&count(&batch, 2)), "{}", count(&batch, 2));
        assert!((430..570).contains(&count(&ec2, 0)), "{}", count(&ec2, 0));
        let (normal, held): (Vec<Duration>, Vec<Duration>) =
            batch.iter().flatten().copied().partition(|delay| *delay <= Duration::from_millis(9));
        assert!(normal.iter().all(|delay| *delay >= Duration::from_millis(5)));
        assert!((180..380).contains(&held.len()), "{}", held.len());
    }
}
