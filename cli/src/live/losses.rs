//! Counts what interruptions have cost a sweep so far.

use jiff::Timestamp;
use spotsweep_records::trial::Trial;

use super::watch_event::{lost, ran_before};

/// Attempts, interruptions and lost time of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Losses {
    /// Containers that were started.
    pub(crate) attempts: usize,
    /// Attempts that ended with their instance.
    pub(crate) interruptions: usize,
    /// Attempts in another zone than the one before.
    pub(crate) zone_moves: usize,
    /// Seconds between the end of one attempt and the start of the next one, which may still have to start.
    pub(crate) seconds_lost: f64,
}

impl Losses {
    /// The sums for these trials, until now.
    pub(super) fn of(trials: &[Trial], now: Timestamp) -> Self {
        let mut losses = Self::default();
        for trial in trials {
            losses.interruptions += trial.interruptions().count();
            for (number, attempt) in &trial.attempts {
                let Some(started) = attempt.started_at else { continue };
                losses.attempts += 1;
                let Some(before) = ran_before(trial, *number) else { continue };
                losses.seconds_lost += lost(before, started);
                let zones = before.zone.as_ref().zip(attempt.zone.as_ref());
                losses.zone_moves += usize::from(zones.is_some_and(|(from, to)| from != to));
            }
            let last = ran_before(trial, u32::MAX).filter(|_| !trial.is_over());
            losses.seconds_lost += last.map_or(0.0, |last| lost(last, now));
        }
        losses
    }
}
