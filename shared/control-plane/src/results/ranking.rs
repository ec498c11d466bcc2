//! Which trial is better: the one meaning of "best" for `status`, `watch`, the leaderboard, the report, `pull` and the
//! summary.
//!
//! Only a trial that succeeded with a finite value of the metric has a rank and can be the best. A trial whose newest
//! value is NaN or infinite has diverged, whatever it had before.

use std::cmp::Ordering;

use crate::sweep::{Over, Plan, Ranking};
use crate::trial::{Standing, Trial};

/// Ranks a sweep whose file names no metric: the first of these that any trial has reported.
/// The names are those of Keras, the last column says whether larger is better.
const ASSUMED_METRICS: [(&str, bool); 4] =
    [("val_accuracy", true), ("accuracy", true), ("val_loss", false), ("loss", false)];

/// The metric that ranks: the file's own, else one of the usual names.
pub fn ranking(plan: &Plan, trials: &[Trial]) -> Option<Ranking> {
    let reported = |name: &str| trials.iter().any(|trial| trial.metrics.contains_key(name));
    let assumed = || ASSUMED_METRICS.iter().find(|(name, _)| reported(name));
    let by = |(name, maximize): &(&str, bool)| Ranking {
        name: (*name).to_owned(),
        maximize: *maximize,
        over: Over::default(),
    };
    plan.metric.clone().or_else(|| assumed().map(by))
}

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

/// The value by which a trial has a rank.
pub fn ranked_value(by: &Ranking, trial: &Trial) -> Option<f64> {
    match score(by, trial) {
        Score::Value(value) if trial.standing() == Standing::Succeeded => Some(value),
        Score::Value(_) | Score::Diverged | Score::Missing => None,
    }
}

/// Whether the trial has a rank.
pub fn has_rank(by: Option<&Ranking>, trial: &Trial) -> bool {
    by.is_some_and(|by| ranked_value(by, trial).is_some())
}

/// The best trial and its value.
pub fn best<'a>(by: &Ranking, trials: &'a [Trial]) -> Option<(&'a Trial, f64)> {
    let first = trials.iter().min_by(|left, right| order(Some(by), left, right))?;
    Some((first, ranked_value(by, first)?))
}

/// Trials from best to worst: those with a rank, those that succeeded and diverged, all others that have the metric,
/// and at last those without it. Equal ones by index.
pub fn ranked<'a>(by: Option<&Ranking>, trials: &'a [Trial]) -> Vec<&'a Trial> {
    let mut ranked: Vec<&Trial> = trials.iter().collect();
    ranked.sort_by(|left, right| order(by, left, right));
    ranked
}

fn order(by: Option<&Ranking>, left: &Trial, right: &Trial) -> Ordering {
    let ((group, value), (other_group, other_value)) = (place(by, left), place(by, right));
    group.cmp(&other_group).then(value.total_cmp(&other_value)).then(left.index.cmp(&right.index))
}

/// The group that a trial is in, and its value there, smaller ones first.
fn place(by: Option<&Ranking>, trial: &Trial) -> (u8, f64) {
    let score = by.map_or(Score::Missing, |by| score(by, trial));
    let ascending = |value: f64| if by.is_some_and(|by| by.maximize) { -value } else { value };
    match (score, trial.standing() == Standing::Succeeded) {
        (Score::Value(value), true) => (0, ascending(value)),
        (Score::Diverged, true) => (1, 0.0),
        (Score::Value(value), false) => (2, ascending(value)),
        (Score::Diverged, false) => (3, 0.0),
        (Score::Missing, true) => (4, 0.0),
        (Score::Missing, false) => (5, 0.0),
    }
}

#[cfg(test)]
mod tests;
