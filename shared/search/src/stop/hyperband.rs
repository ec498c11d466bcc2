//! W&B's hyperband: bands, and the cut at a band.

use super::{MOST_RUNGS, RUNG_LIMIT};

/// The number of bands that W&B makes from `min_iter`, because the end of the training is not known.
const FROM_MIN: usize = 100;

/// Returns the bands `first · eta^k` from the first one on, each rounded down. `eta` is above 1.
///
/// Equal bands count once, and bands from [`RUNG_LIMIT`] on are left out.
pub fn bands_from(first: u64, eta: f64) -> Vec<u64> {
    let steps = std::iter::successors(Some(first as f64), |band| Some(band * eta));
    distinct(steps.take(FROM_MIN).take_while(|band| *band < RUNG_LIMIT as f64).map(|band| band as u64).collect())
}

/// Returns the bands from the end down, `last / eta^k` for k from 1 to `brackets`, each rounded down and at least 1.
///
/// Equal bands count once, and bands from [`RUNG_LIMIT`] on are left out. `None` for more than [`MOST_RUNGS`].
pub fn bands_to(last: f64, brackets: u64, eta: f64) -> Option<Vec<u64>> {
    let steps = std::iter::successors(Some(last / eta), |band| Some(band / eta));
    let wanted = usize::try_from(brackets).unwrap_or(usize::MAX);
    let bands: Vec<f64> = steps.take(wanted.min(MOST_RUNGS + 1)).take_while(|band| *band >= 1.0).collect();
    let within = bands.iter().filter(|band| **band < RUNG_LIMIT as f64).map(|band| *band as u64);
    (bands.len() <= MOST_RUNGS).then(|| distinct(within.collect()))
}

fn distinct(mut bands: Vec<u64>) -> Vec<u64> {
    bands.sort_unstable();
    bands.dedup();
    bands
}

/// Returns the cut among ascending values. The order of the operations is W&B's, so that 1/3 of 3 is 1 and 1/49 of 49
/// is 0.
pub(super) fn cut(values: &[f64], eta: f64) -> Option<f64> {
    let share = 1.0 / eta;
    let index = (share * values.len() as f64) as usize;
    values.get(index.min(values.len().saturating_sub(1))).copied()
}
