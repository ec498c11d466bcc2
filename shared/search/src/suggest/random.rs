//! Random numbers from a seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// The numbers of one suggestion.
#[derive(Debug)]
pub(super) struct Random(ChaCha8Rng);

impl Random {
    /// Returns the numbers of a trial, or without one those of the whole sweep.
    pub(super) fn new(seed: [u8; 32], trial: Option<u32>) -> Self {
        let mut generator = ChaCha8Rng::from_seed(seed);
        generator.set_stream(trial.map_or(0, |trial| u64::from(trial) + 1));
        Self(generator)
    }

    /// Returns the numbers for a model of `outcomes` outcomes.
    pub(super) fn of_model(seed: [u8; 32], outcomes: usize) -> Self {
        let mut generator = ChaCha8Rng::from_seed(seed);
        generator.set_stream((1 << 63) | outcomes as u64);
        Self(generator)
    }

    /// Returns a number from 0 to 1, without 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns several numbers from 0 to 1, without 1.
    pub(super) fn units(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.unit()).collect()
    }

    /// Returns a number below `count`.
    pub(super) fn below(&mut self, count: usize) -> usize {
        ((self.unit() * count as f64) as usize).min(count.saturating_sub(1))
    }

    /// Returns a number from the standard normal distribution.
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// Returns a point of an even cover of the unit cube: the additive sequence of the generalised golden ratio, shifted by
/// a seed.
pub(super) fn even(seed: [u8; 32], dimensions: usize, index: u32) -> Vec<f64> {
    // The ratio is the root above 1 of x^(d+1) = x + 1, found by iteration.
    let mut ratio = 1.5_f64;
    for _ in 0..60 {
        ratio = (1.0 + ratio).powf(1.0 / (dimensions as f64 + 1.0));
    }
    let mut shifts = Random::new(seed, None);
    (1..=dimensions)
        .map(|power| (shifts.unit() + ratio.powi(-(power as i32)) * (f64::from(index) + 1.0)).fract())
        .collect()
}
