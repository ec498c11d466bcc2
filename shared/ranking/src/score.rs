//! What one trial has of the metric that ranks, and which of two trials is better.

use std::cmp::Ordering;

use spotsweep_records::sweep::{Over, Ranking};
use spotsweep_records::trial::{Standing, Trial};

/// What a trial has of the metric that ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Score {
    /// The value that counts.
    Value(f64),
    /// The newest value is NaN or infinite.
    Diverged,
    /// It has not printed the metric.
    Missing,
}

/// What `trial` has of the metric.
pub fn score(by: &Ranking, trial: &Trial) -> Score {
    match trial.metrics.get(&by.name) {
        None => Score::Missing,
        Some(metric) if !metric.last.is_finite() => Score::Diverged,
        Some(metric) => Score::Value(match by.over {
            Over::Last => metric.last,
            Over::Best if by.maximize => metric.max,
            Over::Best => metric.min,
        }),
    }
}

/// The trial's result: the value by which it has a rank. Only a trial that succeeded has one.
pub fn ranked_value(by: &Ranking, trial: &Trial) -> Option<f64> {
    match score(by, trial) {
        Score::Value(value) if trial.standing() == Standing::Succeeded => Some(value),
        Score::Value(_) | Score::Diverged | Score::Missing => None,
    }
}

/// Trials from best to worst: those with a rank, those that succeeded and diverged, all others that have the metric,
/// and at last those without it. Equal ones by index.
pub(super) fn order(by: Option<&Ranking>, left: &Trial, right: &Trial) -> Ordering {
    let ((group, value), (other_group, other_value)) = (place(by, left), place(by, right));
    group.cmp(&other_group).then(value.total_cmp(&other_value)).then(left.index.cmp(&right.index))
}

/// The group that a trial is in, and its value there, smaller ones first.
fn place(by: Option<&Ranking>, trial: &Trial) -> (u8, f64) {
    let score = by.map_or(Score::Missing, |by| score(by, trial));
    let ascending = |value: f64| by.map_or(value, |by| by.cost(value));
    match (score, trial.standing() == Standing::Succeeded) {
        (Score::Value(value), true) => (0, ascending(value)),
        (Score::Diverged, true) => (1, 0.0),
        (Score::Value(value), false) => (2, ascending(value)),
        (Score::Diverged, false) => (3, 0.0),
        (Score::Missing, true) => (4, 0.0),
        (Score::Missing, false) => (5, 0.0),
    }
}
