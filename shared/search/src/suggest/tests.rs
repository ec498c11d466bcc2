//! Compares derivatives with differences, and tests the arithmetic.

use super::acquisition::{Acquisition, log_improvement};
use super::encoding::Kind;
use super::gp::{self, Data, Prediction, Process};
use super::kernel::Kernel;
use super::linear::Square;
use super::minimize::minimize;
use super::random::Random;

const STEP: f64 = 1e-6;

fn data() -> Data {
    let mut random = Random::new([3; 32], None);
    let point = |random: &mut Random| vec![random.unit(), random.unit(), random.below(3) as f64];
    let points: Vec<Vec<f64>> = (0..11).map(|_| point(&mut random)).collect();
    let outcomes = points.iter().map(|point| (5.0 * point[0]).sin() + point[1] * point[2]).collect();
    let doubts = (0..11).map(|at| if at % 3 == 0 { 0.1 } else { 0.0 }).collect();
    Data { kinds: vec![Kind::Line, Kind::Few, Kind::Choice], points, outcomes, doubts }
}

fn kernel() -> Kernel {
    Kernel { weights: vec![4.0, 1.5, 0.7], variance: 1.3, noise: 0.01, mean: 0.2 }
}

/// Returns the slope at a place as the difference of two values.
fn slope(place: &[f64], at: usize, function: impl Fn(&[f64]) -> f64) -> f64 {
    let moved = |by: f64| {
        let mut place = place.to_vec();
        place[at] += by;
        function(&place)
    };
    (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
}

fn assert_close(left: f64, right: f64) {
    assert!((left - right).abs() <= 1e-4 * (1.0 + right.abs()), "{left} and {right}");
}

#[test]
fn the_fit_computes_its_slopes() {
    let data = data();
    let place = [-0.4, 0.3, 0.8, 0.2, -3.0, 0.4];
    let (_, gradient) = gp::loss(&place, &data, &gp::distances(&data));
    for (at, known) in gradient.iter().enumerate() {
        assert_close(*known, slope(&place, at, |place| gp::loss(place, &data, &gp::distances(&data)).0));
    }
}

#[test]
fn the_acquisition_computes_its_slopes() {
    let process = Process::new(kernel(), data()).expect("a covariance").with_predicted(vec![vec![0.4, 0.4, 1.0]]);
    let process = process.expect("a covariance");
    let acquisition = Acquisition { process: &process, best: -0.9, doubt: 0.02 };
    let place = [0.62, 0.35, 1.0];
    let (value, gradient) = acquisition.value_with_gradient(&place);
    assert_close(value, acquisition.value(&place));
    for (at, known) in gradient.iter().enumerate().take(2) {
        assert_close(*known, slope(&place, at, |place| acquisition.value(place)));
    }
}

#[test]
fn the_improvement_is_continuous_where_its_form_changes() {
    let at = |distance: f64| log_improvement(Prediction { mean: 0.0, variance: 1.0 }, distance);
    for ((near, mean, variance), (far, ..)) in [(at(-24.999), at(-25.001)), (at(-60.0), at(-60.001))] {
        assert!(near > far && (near - far) < 0.1, "{near} {far}");
        assert!(mean < 0.0 && variance > 0.0);
    }
    assert_close(at(0.0).0, (0.5 / std::f64::consts::PI).sqrt().ln());
}

#[test]
fn a_matrix_times_its_inverse_is_one() {
    let size = 19;
    let mut matrix = Square::new(size);
    for row in 0..size {
        for column in 0..size {
            let away = row.abs_diff(column) as f64;
            matrix.row_mut(row)[column] = (-away / 4.0).exp() + f64::from(row == column) * 0.1;
        }
    }
    let mut factor = matrix.clone();
    assert!(factor.factorize());
    let inverse = Square::inverse(&factor.inverse_columns());
    for row in 0..size {
        let product = matrix.times(inverse.row(row));
        for (column, value) in product.iter().enumerate() {
            assert!((value - f64::from(row == column)).abs() < 1e-9, "{row} {column} {value}");
        }
    }
    matrix.row_mut(3)[3] = -1.0;
    assert!(!matrix.factorize(), "not positive definite");
}

#[test]
fn a_valley_is_followed_to_its_end_or_to_the_bound() {
    let valley = |place: &[f64]| {
        let (left, right) = (1.0 - place[0], place[1] - place[0] * place[0]);
        let slopes = vec![-2.0 * left - 400.0 * right * place[0], 200.0 * right];
        (left * left + 100.0 * right * right, slopes)
    };
    let (place, value) = minimize(&[-1.2, 1.0], &[(-2.0, 2.0); 2], 200, valley);
    assert!(value < 1e-6, "{place:?} {value}");
    let (place, _) = minimize(&[-1.2, 0.2], &[(-2.0, 0.5), (-2.0, 2.0)], 200, valley);
    assert!((place[0] - 0.5).abs() < 1e-9 && (place[1] - 0.25).abs() < 1e-3, "{place:?}");
}
