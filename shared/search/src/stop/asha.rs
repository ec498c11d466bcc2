//! Asynchronous successive halving, equal to Ray's `AsyncHyperBandScheduler` with one bracket.

use super::{MOST_RUNGS, RUNG_LIMIT};

/// Returns the rungs `first · eta^k` up to `last`. `eta` is above 1. `None` for more than [`MOST_RUNGS`].
///
/// Each is rounded up, because Ray's rungs may be fractions: a trial reaches 4.5 at 5.
pub fn asha(first: u64, last: u64, eta: f64) -> Option<Vec<u64>> {
    let first = first as f64;
    let count = ((last as f64 / first).ln() / eta.ln() + 1.0).max(0.0) as usize;
    if count > MOST_RUNGS {
        return None;
    }
    let rungs = (0..count as i32).map(|power| (first * eta.powi(power)).ceil());
    let mut rungs: Vec<u64> = rungs.filter(|rung| *rung < RUNG_LIMIT as f64).map(|rung| rung as u64).collect();
    rungs.dedup();
    Some(rungs)
}

/// Returns the percentile of ascending values that the best `1/eta` reach, with linear interpolation.
pub(super) fn cut(values: &[f64], eta: f64) -> Option<f64> {
    percentile(values, 1.0 / eta)
}

/// Returns the value at `share` of the way from the first to the last.
pub(super) fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let position = share * last as f64;
    // For example, 1/49 of 49 is a value's own position except for rounding.
    let position = if (position - position.round()).abs() < 1e-9 { position.round() } else { position };
    let below = (position as usize).min(last);
    let (low, high) = (values[below], values[(below + 1).min(last)]);
    // Between equal values, rounding would change the sum, and all of them would stop.
    Some(if low == high { low } else { (low + (position - below as f64) * (high - low)).clamp(low, high) })
}
