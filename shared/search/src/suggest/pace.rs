//! How long trials take: a shorter one may be worth more than a slightly better one.

use super::Trial;
use super::encoding::{self, Kind};
use super::linear::{Square, dot};
use crate::space::Space;

/// The logarithm of the pace along each line, times how much it counts.
#[derive(Debug)]
pub(super) struct Haste {
    slopes: Vec<f64>,
}

impl Haste {
    #[cfg(test)]
    pub(super) fn new(slopes: Vec<f64>) -> Self {
        Self { slopes }
    }

    /// What a point loses.
    pub(super) fn at(&self, point: &[f64]) -> f64 {
        dot(&self.slopes, point)
    }

    /// Its derivatives.
    pub(super) fn slopes(&self) -> &[f64] {
        &self.slopes
    }
}

/// After so many trials, time counts half.
///
/// At first the improvement for each second is looked for: cheap trials teach as much. The more is known, the more the
/// improvement itself counts.
const HALF: f64 = 100.0;

/// So many paces are needed.
const FEWEST: usize = 4;

/// Fits a line to the logarithms of the paces.
pub(super) fn haste(space: &Space, trials: &[&Trial]) -> Haste {
    let kinds = encoding::kinds(space);
    let dimensions = kinds.len();
    let known: Vec<(Vec<f64>, f64)> = trials
        .iter()
        .filter_map(|trial| {
            let pace = trial.pace.filter(|pace| *pace > 0.0 && pace.is_finite())?;
            Some((encoding::features(space, &trial.point), pace.ln()))
        })
        .collect();
    let none = Haste { slopes: vec![0.0; dimensions] };
    if known.len() < FEWEST {
        return none;
    }
    let count = known.len() as f64;
    let weight = HALF / (HALF + count);
    let mean = known.iter().map(|(_, pace)| pace).sum::<f64>() / count;
    let place = |features: &[f64], at: usize| if kinds[at] == Kind::Choice { 0.0 } else { features[at] - 0.5 };
    let mut normal = Square::new(dimensions + 1);
    let mut right = vec![0.0; dimensions + 1];
    for (features, pace) in &known {
        let row: Vec<f64> = (0..dimensions).map(|at| place(features, at)).chain([1.0]).collect();
        for (at, value) in row.iter().enumerate() {
            right[at] += value * (pace - mean);
            normal.row_mut(at).iter_mut().zip(&row).for_each(|(sum, other)| *sum += value * other);
        }
    }
    for at in 0..=dimensions {
        normal.row_mut(at)[at] += 0.1;
    }
    if !normal.factorize() {
        return none;
    }
    let solved = Square::inverse(&normal.inverse_columns()).times(&right);
    Haste { slopes: solved[..dimensions].iter().map(|slope| weight * slope).collect() }
}
