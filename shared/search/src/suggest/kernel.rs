//! The covariance of two points: Matérn 5/2, with a length scale for each dimension.

use super::encoding::{Features, Kind};

/// The parameters of the kernel, which the fit finds.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    /// The inverse square of each length scale.
    pub(super) weights: Vec<f64>,
    /// The variance of the function.
    pub(super) variance: f64,
    /// The variance of the noise.
    pub(super) noise: f64,
    /// The mean of the function.
    pub(super) mean: f64,
}

impl Kernel {
    pub(super) fn covariance(&self, kinds: &[Kind], left: &Features, right: &Features) -> f64 {
        self.variance * correlation(self.distance(kinds, left, right)).0
    }

    /// Returns the weighted squared distance of two points.
    pub(super) fn distance(&self, kinds: &[Kind], left: &Features, right: &Features) -> f64 {
        let each = kinds.iter().zip(&self.weights).zip(left.iter().zip(right));
        each.map(|((kind, weight), (left, right))| weight * kind.squared(*left, *right)).sum()
    }
}

/// Returns the correlation for a squared distance, and its derivative with respect to the squared distance.
pub(super) fn correlation(squared: f64) -> (f64, f64) {
    let scaled = (5.0 * squared).sqrt();
    let fall = (-scaled).exp();
    ((1.0 + scaled + 5.0 / 3.0 * squared) * fall, -5.0 / 6.0 * (1.0 + scaled) * fall)
}
