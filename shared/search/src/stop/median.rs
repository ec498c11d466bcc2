//! The median rule of Vizier, as in Ray's `MedianStoppingRule`.
//!
//! Ray judges at every report. Here a judgement costs a query, so trials are judged at rungs. Ray's means leave out the
//! reports before the first rung. Vizier's do not, and neither do these.

use super::asha::percentile;
use super::{MOST_RUNGS, RUNG_LIMIT};

/// The factor by which a trial advances between two judgements, if no interval is set.
pub const MEDIAN_GROWTH: f64 = 1.5;

/// Returns the rungs from `first` on, up to [`MOST_RUNGS`]: every `interval`, or else each [`MEDIAN_GROWTH`] times the
/// one before, rounded up.
pub fn median(first: u64, interval: Option<u64>) -> Vec<u64> {
    let next = |rung: &u64| match interval {
        Some(interval) => rung.checked_add(interval.max(1)),
        None => Some((*rung as f64 * MEDIAN_GROWTH).ceil() as u64),
    };
    std::iter::successors(Some(first.max(1)), next).take(MOST_RUNGS).take_while(|rung| *rung < RUNG_LIMIT).collect()
}

/// Returns the median of ascending values, if there are at least `least`.
pub(super) fn cut(values: &[f64], least: usize) -> Option<f64> {
    if values.len() < least { None } else { percentile(values, 0.5) }
}
