//! A Gaussian process, which is fitted to outcomes and predicts the outcome of any point.

use super::encoding::Kind;
use super::kernel::{Kernel, correlation};
use super::linear::{Square, dot};
use super::minimize::minimize;

/// The known outcomes.
#[derive(Debug, Clone, Default)]
pub(super) struct Data {
    pub(super) kinds: Vec<Kind>,
    /// The features, a row for each trial.
    pub(super) points: Vec<Vec<f64>>,
    /// The outcome of each point.
    pub(super) outcomes: Vec<f64>,
    /// The additional variance of each point's noise.
    pub(super) doubts: Vec<f64>,
}

/// A normal distribution of a logarithm: its mean and its deviation.
type Prior = (f64, f64);

/// The prior of a length scale. It is multiplied by the root of the number of dimensions, because distances grow with
/// it.
const LENGTH: Prior = (0.4, 1.2);

const VARIANCE: Prior = (0.0, 1.0);

/// The prior of the noise's variance. Most trainings vary little when repeated, compared with the effect of parameters.
const NOISE: Prior = (-8.0, 2.0);

/// The bounds of the logarithms of each length scale, variance and noise, and of the mean.
const BOUNDS: [(f64, f64); 4] = [(-3.9, 4.6), (-4.6, 6.9), (-13.8, 0.0), (-3.0, 3.0)];

/// The steps after which the fit has converged.
const STEPS: usize = 40;

/// Fits the kernel: returns its most probable parameters given the outcomes.
pub(super) fn fit(data: &Data) -> Kernel {
    let dimensions = data.kinds.len();
    let distances = distances(data);
    let mut start = vec![length(dimensions).0; dimensions];
    start.extend([VARIANCE.0, -4.6, 0.0]);
    let mut bounds = vec![BOUNDS[0]; dimensions];
    bounds.extend(&BOUNDS[1..]);
    let (place, _) = minimize(&start, &bounds, STEPS, |place| loss(place, data, &distances));
    kernel(&place, dimensions)
}

fn length(dimensions: usize) -> Prior {
    (LENGTH.0 + 0.5 * (dimensions as f64).ln(), LENGTH.1)
}

fn kernel(place: &[f64], dimensions: usize) -> Kernel {
    Kernel {
        weights: place[..dimensions].iter().map(|length| (-2.0 * length).exp()).collect(),
        variance: place[dimensions].exp(),
        noise: place[dimensions + 1].exp(),
        mean: place[dimensions + 2],
    }
}

/// Returns the squared distance in each dimension for each pair of points, with the later point's row first.
pub(super) fn distances(data: &Data) -> Vec<f64> {
    let dimensions = data.kinds.len();
    let mut all = Vec::with_capacity(data.points.len() * data.points.len() / 2 * dimensions);
    for (row, left) in data.points.iter().enumerate() {
        for right in &data.points[..row] {
            all.extend((0..dimensions).map(|at| data.kinds[at].squared(left[at], right[at])));
        }
    }
    all
}

/// Returns the negative logarithm of the posterior probability, and its gradient.
pub(super) fn loss(place: &[f64], data: &Data, distances: &[f64]) -> (f64, Vec<f64>) {
    let dimensions = data.kinds.len();
    let kernel = kernel(place, dimensions);
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
        // The pairs come last in the zip, because a zip consumes one item too many of its first iterators.
        for ((inverse, other), (pair, slope)) in own[..row].iter().zip(&alpha).zip(&mut pairs) {
            // Each pair is in the matrix twice, which cancels the factor one half before the trace.
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
    gradient[dimensions + 2] = -alpha.iter().sum::<f64>();
    priors(place, dimensions, &mut value, &mut gradient);
    (value, gradient)
}

fn priors(place: &[f64], dimensions: usize, value: &mut f64, gradient: &mut [f64]) {
    let mut normal = |at: usize, (mean, deviation): Prior| {
        let away = (place[at] - mean) / deviation;
        *value += 0.5 * away * away;
        gradient[at] += away / deviation;
    };
    (0..dimensions).for_each(|at| normal(at, length(dimensions)));
    normal(dimensions, VARIANCE);
    normal(dimensions + 1, NOISE);
    normal(dimensions + 2, (0.0, 1.0));
}

/// A fitted process.
#[derive(Debug)]
pub(super) struct Process {
    kernel: Kernel,
    data: Data,
    inverse: Square,
    alpha: Vec<f64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Prediction {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Process {
    /// Conditions the process on the known outcomes. `None` if the matrix is not positive definite.
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

    /// Adds points as if they ended as predicted.
    pub(super) fn with_predicted(self, points: Vec<Vec<f64>>) -> Option<Self> {
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

    /// Returns the process's estimate of each outcome without its noise.
    pub(super) fn smoothed(&self) -> Vec<f64> {
        let noises = self.data.doubts.iter().map(|doubt| self.kernel.noise + doubt);
        self.data
            .outcomes
            .iter()
            .zip(noises.zip(&self.alpha))
            .map(|(outcome, (noise, alpha))| outcome - noise * alpha)
            .collect()
    }

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

    /// Returns the prediction at a point, and the gradients of mean and variance along the lines.
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

    /// Returns the inverse squares of the length scales.
    pub(super) fn weights(&self) -> &[f64] {
        &self.kernel.weights
    }
}
