//! A trial's value of the metric that ranks, and the order of two trials.

use std::cmp::Ordering;

use spotsweep_records::sweep::{Over, Ranking};
use spotsweep_records::trial::{Standing, Trial};

/// A trial's value of the metric that ranks, or why it has none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Score {
    /// The value that counts.
    Value(f64),
    /// The newest value is NaN or infinite.
    Diverged,
    /// The trial has not reported the metric.
    Missing,
}

/// Returns the trial's value of the metric, or why it has none.
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

/// Returns the trial's result: the value by which it is ranked. Only a trial that succeeded has one.
pub fn ranked_value(by: &Ranking, trial: &Trial) -> Option<f64> {
    match score(by, trial) {
        Score::Value(value) if trial.standing() == Standing::Succeeded => Some(value),
        Score::Value(_) | Score::Diverged | Score::Missing => None,
    }
}

/// Orders trials from best to worst: those with a rank, then those that succeeded and diverged, then all others that
/// have the metric, and last those without it. Equal ones are ordered by index.
pub(super) fn order(by: Option<&Ranking>, left: &Trial, right: &Trial) -> Ordering {
    let ((group, value), (other_group, other_value)) = (place(by, left), place(by, right));
    group.cmp(&other_group).then(value.total_cmp(&other_value)).then(left.index.cmp(&right.index))
}

/// Returns the group of a trial, and its value within the group. Smaller ones come first.
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
