//! Computes the expected benefit of a trial: the logarithm of the expected improvement.

use statrs::function::erf::erfc;

use super::gp::{Prediction, Process};

/// The distance below which the improvement is computed from its series, because the direct form loses digits.
const FAR: f64 = -25.0;

/// Returns the logarithm of the expected improvement, and its derivatives with respect to the mean and the variance.
pub(super) fn log_improvement(prediction: Prediction, best: f64) -> (f64, f64, f64) {
    let deviation = prediction.variance.sqrt();
    let distance = (best - prediction.mean) / deviation;
    let (log, ratio) = standard(distance);
    // With h(z) = φ(z) + z Φ(z): d log h = Φ/h dz, and log EI = log deviation + log h.
    let by_mean = -ratio / deviation;
    let by_variance = (1.0 - ratio * distance) / (2.0 * prediction.variance);
    (deviation.ln() + log, by_mean, by_variance)
}

/// Returns log h(z) and Φ(z)/h(z).
fn standard(distance: f64) -> (f64, f64) {
    let log_root = 0.5 * std::f64::consts::TAU.ln();
    if distance < FAR {
        let inverse = 1.0 / (distance * distance);
        let log = -0.5 * distance * distance - log_root + (inverse * (1.0 - 3.0 * inverse)).ln();
        return (log, -distance * (1.0 + 2.0 * inverse));
    }
    let density = (-0.5 * distance * distance - log_root).exp();
    let below = 0.5 * erfc(-distance * std::f64::consts::FRAC_1_SQRT_2);
    let improvement = density + distance * below;
    (improvement.ln(), below / improvement)
}

/// Returns the logarithm of a factor that is small where little is left to learn, and its derivative with respect to
/// the variance (the augmented improvement of Huang et al. 2006). Most trials of a sweep with early stopping end with
/// only an estimate, which has this doubt. Without the factor, the same well-known place would be suggested repeatedly.
fn log_novelty(variance: f64, doubt: f64) -> (f64, f64) {
    let whole = variance + doubt;
    let known = (doubt / whole).sqrt();
    let new = (1.0 - known).max(1e-9);
    (new.ln(), 0.5 * known / (whole * new))
}

/// A process, with the outcome that a new trial should improve on.
#[derive(Debug)]
pub(super) struct Acquisition<'m> {
    pub(super) process: &'m Process,
    pub(super) best: f64,
    /// The mean doubt of the known outcomes.
    pub(super) doubt: f64,
}

impl Acquisition<'_> {
    /// Returns the value at a point.
    pub(super) fn value(&self, point: &[f64]) -> f64 {
        let prediction = self.process.predict(point);
        let novelty = log_novelty(prediction.variance, self.doubt).0;
        log_improvement(prediction, self.best).0 + novelty
    }

    /// Returns the value at a point, with its gradient along the lines.
    pub(super) fn value_with_gradient(&self, point: &[f64]) -> (f64, Vec<f64>) {
        let (prediction, means, variances) = self.process.predict_with_gradient(point);
        let (improvement, by_mean, by_variance) = log_improvement(prediction, self.best);
        let (novelty, also_by_variance) = log_novelty(prediction.variance, self.doubt);
        let (value, by_variance) = (improvement + novelty, by_variance + also_by_variance);
        let gradient = means.iter().zip(&variances).map(|(mean, variance)| by_mean * mean + by_variance * variance);
        (value, gradient.collect())
    }
}
