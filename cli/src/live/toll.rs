//! What a sweep took so far.

use jiff::Timestamp;
use spotsweep_records::trial::Trial;

use super::happening::{lost, ran_before};

/// What a sweep took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Toll {
    /// Containers that were started.
    pub(crate) attempts: usize,
    /// Attempts that ended with their instance.
    pub(crate) interruptions: usize,
    /// Attempts in another zone than the one before.
    pub(crate) zone_moves: usize,
    /// Between the end of one attempt and the start of the next one, those included that have yet to start.
    pub(crate) seconds_lost: f64,
}

impl Toll {
    /// Of these trials, until now.
    pub(super) fn of(trials: &[Trial], now: Timestamp) -> Self {
        let mut toll = Self::default();
        for trial in trials {
            toll.interruptions += trial.interruptions().count();
            for (number, attempt) in &trial.attempts {
                let Some(started) = attempt.started_at else { continue };
                toll.attempts += 1;
                let Some(before) = ran_before(trial, *number) else { continue };
                toll.seconds_lost += lost(before, started);
                let zones = before.zone.as_ref().zip(attempt.zone.as_ref());
                toll.zone_moves += usize::from(zones.is_some_and(|(from, to)| from != to));
            }
            let last = ran_before(trial, u32::MAX).filter(|_| !trial.is_over());
            toll.seconds_lost += last.map_or(0.0, |last| lost(last, now));
        }
        toll
    }
}
