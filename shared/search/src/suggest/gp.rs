//! A Gaussian process: fitted to outcomes, asked for its prediction anywhere.

use super::Options;
use super::encoding::Kind;
use super::kernel::{Kernel, correlation};
use super::linear::{Square, dot};
use super::minimize::minimize;

/// What is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Data {
    pub(super) kinds: Vec<Kind>,
    /// Features, a row for each trial.
    pub(super) points: Vec<Vec<f64>>,
    /// One for each point.
    pub(super) outcomes: Vec<f64>,
    /// What is added to the variance of each point's noise.
    pub(super) doubts: Vec<f64>,
}

/// Fits the kernel: its most probable parameters given the outcomes.
pub(super) fn fit(data: &Data, options: &Options) -> Kernel {
    let dimensions = data.kinds.len();
    let distances = distances(data);
    let root = (dimensions as f64).sqrt();
    let middle = options.length * if options.grows { root } else { 1.0 };
    let mut bounds = vec![((0.02_f64).ln(), (100.0_f64).ln()); dimensions];
    bounds.extend([((1e-2_f64).ln(), (1e3_f64).ln()), (options.least_noise.ln(), (1.0_f64).ln()), (-3.0, 3.0)]);
    let mut best: Option<(Vec<f64>, f64)> = None;
    for scale in options.starts.iter() {
        let mut start = vec![(middle * scale).ln(); dimensions];
        start.extend([0.0, (1e-2_f64).ln(), 0.0]);
        let found =
            minimize(&start, &bounds, options.fit_steps, |place| loss(place, data, &distances, options, middle));
        if best.as_ref().is_none_or(|(_, value)| found.1 < *value) {
            best = Some(found);
        }
    }
    let place = best.map(|(place, _)| place).unwrap_or_default();
    kernel(&place, dimensions, options)
}

fn kernel(place: &[f64], dimensions: usize, options: &Options) -> Kernel {
    Kernel {
        weights: place[..dimensions].iter().map(|length| (-2.0 * length).exp()).collect(),
        variance: place[dimensions].exp(),
        noise: place[dimensions + 1].exp(),
        mean: if options.fits_mean { place[dimensions + 2] } else { 0.0 },
    }
}

/// For each pair of points, the later one's row first: the squared distance in each dimension.
fn distances(data: &Data) -> Vec<f64> {
    let dimensions = data.kinds.len();
    let mut all = Vec::with_capacity(data.points.len() * data.points.len() / 2 * dimensions);
    for (row, left) in data.points.iter().enumerate() {
        for right in &data.points[..row] {
            all.extend((0..dimensions).map(|at| data.kinds[at].squared(left[at], right[at])));
        }
    }
    all
}

/// The negative logarithm of the posterior probability, and its gradient.
fn loss(place: &[f64], data: &Data, distances: &[f64], options: &Options, middle: f64) -> (f64, Vec<f64>) {
    let dimensions = data.kinds.len();
    let kernel = kernel(place, dimensions, options);
    let size = data.points.len();
    let mut covariance = Square::new(size);
    let mut slopes = Vec::with_capacity(size * size / 2);
    let mut pairs = distances.chunks_exact(dimensions);
    for row in 0..size {
        let own = covariance.row_mut(row);
        for (value, pair) in own[..row].iter_mut().zip(&mut pairs) {
            let (correlation, slope) = correlation(dot(pair, &kernel.weights));
            *value = kernel.variance * correlation;
            slopes.push(kernel.variance * slope);
        }
        own[row] = kernel.variance + kernel.noise + data.doubts[row] + 1e-10;
    }
    if !covariance.factorize() {
        return (f64::INFINITY, vec![0.0; place.len()]);
    }
    let inverse = Square::inverse(&covariance.inverse_columns());
    let centred: Vec<f64> = data.outcomes.iter().map(|outcome| outcome - kernel.mean).collect();
    let alpha = inverse.times(&centred);
    let mut value = 0.5 * (dot(&centred, &alpha) + covariance.log_determinant());
    let mut gradient = vec![0.0; place.len()];
    let mut pairs = distances.chunks_exact(dimensions).zip(&slopes);
    let (mut trace, mut total) = (0.0, 0.0);
    for row in 0..size {
        let own = inverse.row(row);
        // The pairs come last: a zip takes one too many of what it asks first.
        for ((inverse, other), (pair, slope)) in own[..row].iter().zip(&alpha).zip(&mut pairs) {
            // Each pair stands twice in the matrix, which the half before the trace takes back.
            let weight = (inverse - alpha[row] * other) * slope;
            for (at, squared) in pair.iter().enumerate() {
                gradient[at] += weight * squared;
            }
        }
        let diagonal = own[row] - alpha[row] * alpha[row];
        trace += diagonal;
        total += diagonal * (kernel.noise + data.doubts[row]);
    }
    for (slope, weight) in gradient.iter_mut().zip(&kernel.weights) {
        *slope *= -2.0 * weight;
    }
    gradient[dimensions] = 0.5 * (size as f64 - dot(&centred, &alpha) - total);
    gradient[dimensions + 1] = 0.5 * trace * kernel.noise;
    gradient[dimensions + 2] = if options.fits_mean { -alpha.iter().sum::<f64>() } else { 0.0 };
    priors(place, dimensions, options, middle, &mut value, &mut gradient);
    (value, gradient)
}

fn priors(place: &[f64], dimensions: usize, options: &Options, middle: f64, value: &mut f64, gradient: &mut [f64]) {
    let mut normal = |at: usize, mean: f64, deviation: f64| {
        let away = (place[at] - mean) / deviation;
        *value += 0.5 * away * away;
        gradient[at] += away / deviation;
    };
    for at in 0..dimensions {
        normal(at, middle.ln(), options.length_spread);
    }
    normal(dimensions, options.variance.ln(), options.variance_spread);
    normal(dimensions + 1, options.noise.ln(), options.noise_spread);
    normal(dimensions + 2, 0.0, options.mean_spread);
}

/// A fitted process.
#[derive(Debug)]
pub(super) struct Process {
    kernel: Kernel,
    data: Data,
    inverse: Square,
    alpha: Vec<f64>,
}

/// A prediction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prediction {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Process {
    /// Conditions on what is known.
    pub(super) fn new(kernel: Kernel, data: Data) -> Option<Self> {
        let size = data.points.len();
        let mut covariance = Square::new(size);
        for row in 0..size {
            for column in 0..row {
                covariance.row_mut(row)[column] =
                    kernel.covariance(&data.kinds, &data.points[row], &data.points[column]);
            }
            covariance.row_mut(row)[row] = kernel.variance + kernel.noise + data.doubts[row] + 1e-10;
        }
        if !covariance.factorize() {
            return None;
        }
        let inverse = Square::inverse(&covariance.inverse_columns());
        let centred: Vec<f64> = data.outcomes.iter().map(|outcome| outcome - kernel.mean).collect();
        let alpha = inverse.times(&centred);
        Some(Self { kernel, data, inverse, alpha })
    }

    /// Believes that points end as predicted.
    pub(super) fn believing(self, points: Vec<Vec<f64>>) -> Option<Self> {
        if points.is_empty() {
            return Some(self);
        }
        let means: Vec<f64> = points.iter().map(|point| self.predict(point).mean).collect();
        let mut data = self.data;
        data.doubts.extend(points.iter().map(|_| 0.0));
        data.points.extend(points);
        data.outcomes.extend(means);
        Self::new(self.kernel, data)
    }

    /// The prediction at a point.
    pub(super) fn predict(&self, point: &[f64]) -> Prediction {
        let covariances: Vec<f64> =
            self.data.points.iter().map(|other| self.kernel.covariance(&self.data.kinds, point, other)).collect();
        self.prediction(&covariances, &self.inverse.times(&covariances))
    }

    fn prediction(&self, covariances: &[f64], solved: &[f64]) -> Prediction {
        let mean = self.kernel.mean + dot(covariances, &self.alpha);
        let variance = (self.kernel.variance - dot(covariances, solved)).max(1e-12);
        Prediction { mean, variance }
    }

    /// The prediction at a point, and the gradients of mean and variance along the lines.
    pub(super) fn predict_with_gradient(&self, point: &[f64]) -> (Prediction, Vec<f64>, Vec<f64>) {
        let kinds = &self.data.kinds;
        let (mut covariances, mut slopes) = (Vec::new(), Vec::new());
        for other in &self.data.points {
            let (correlation, slope) = correlation(self.kernel.distance(kinds, point, other));
            covariances.push(self.kernel.variance * correlation);
            slopes.push(self.kernel.variance * slope);
        }
        let solved = self.inverse.times(&covariances);
        let (mut means, mut variances) = (vec![0.0; point.len()], vec![0.0; point.len()]);
        for (row, other) in self.data.points.iter().enumerate() {
            for at in 0..point.len() {
                if kinds[at] == Kind::Choice {
                    continue;
                }
                let slope = 2.0 * slopes[row] * self.kernel.weights[at] * (point[at] - other[at]);
                means[at] += slope * self.alpha[row];
                variances[at] -= 2.0 * slope * solved[row];
            }
        }
        (self.prediction(&covariances, &solved), means, variances)
    }

    /// The inverse squares of the length scales.
    pub(super) fn weights(&self) -> &[f64] {
        &self.kernel.weights
    }
}
