//! The median rule of Vizier, as Ray's `MedianStoppingRule` has it.
//!
//! Ray judges at every report. A decision costs a query here, so trials are judged at rungs. Ray's means leave out what
//! was reported before the first rung, and Vizier's do not; these are Vizier's.

use super::asha::percentile;
use super::{MOST_RUNGS, RUNG_LIMIT};

/// How much a trial has advanced when it is judged again, if no interval is set.
pub const MEDIAN_GROWTH: f64 = 1.5;

/// The rungs from `first` on: every `interval`, up to [`MOST_RUNGS`] of them, or each [`MEDIAN_GROWTH`] times the one
/// before, rounded up.
pub fn median(first: u64, interval: Option<u64>) -> Vec<u64> {
    let next = |rung: &u64| match interval {
        Some(interval) => rung.checked_add(interval.max(1)),
        None => Some((*rung as f64 * MEDIAN_GROWTH).ceil() as u64),
    };
    std::iter::successors(Some(first.max(1)), next).take(MOST_RUNGS).take_while(|rung| *rung < RUNG_LIMIT).collect()
}

/// The median of ascending values, if there are enough.
pub(super) fn cut(values: &[f64], least: usize) -> Option<f64> {
    if values.len() < least { None } else { percentile(values, 0.5) }
}
