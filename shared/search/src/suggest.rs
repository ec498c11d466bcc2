//! Which parameters to try next.

mod acquisition;
mod encoding;
mod gp;
mod kernel;
mod linear;
mod minimize;
mod outcomes;
mod pace;
mod random;
mod search;

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::space::{Point, Space};

use outcomes::Outcome;
use random::Random;

/// A trial that has been suggested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its number in the sweep.
    pub index: u32,
    /// Its parameters.
    pub point: Point,
    /// What it has reported at rungs.
    #[serde(default)]
    pub rungs: Curve,
    /// Its training's seconds for each step.
    #[serde(default)]
    pub pace: Option<f64>,
    /// How it ended; nothing while it is pending.
    #[serde(default)]
    pub end: Option<End>,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum End {
    /// With a cost. One that is not finite has diverged.
    Finished(f64),
    /// Early, with what it had reached by then.
    Stopped,
    /// Without a cost.
    Failed,
}

/// What to try next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suggestion {
    /// The parameters.
    pub point: Point,
    /// Why.
    pub basis: Basis,
}

/// What a suggestion rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Basis {
    /// One of the first points, which cover the space evenly.
    Initial,
    /// No trial has had a usable result so far.
    Random,
    /// A model of the results so far.
    Model {
        /// The predicted cost.
        mean: f64,
        /// Its standard deviation.
        deviation: f64,
    },
}

/// Experiment.
#[doc(hidden)]
#[allow(missing_docs)]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    pub initial: usize,
    pub length: f64,
    pub grows: bool,
    pub length_spread: f64,
    pub variance: f64,
    pub variance_spread: f64,
    pub noise: f64,
    pub noise_spread: f64,
    pub least_noise: f64,
    pub mean_spread: f64,
    pub fits_mean: bool,
    pub fit_steps: usize,
    pub starts: Vec<f64>,
    pub kept: f64,
    pub doubt: f64,
    pub candidates: usize,
    pub around: usize,
    pub searches: usize,
    pub search_steps: usize,
    pub most_points: usize,
    pub haste: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            initial: 6,
            length: 0.5,
            grows: true,
            length_spread: 1.0,
            variance: 1.0,
            variance_spread: 1.0,
            noise: 1e-3,
            noise_spread: 1.5,
            least_noise: 1e-6,
            mean_spread: 1.0,
            fits_mean: true,
            fit_steps: 40,
            starts: vec![1.0],
            kept: 0.5,
            doubt: 0.0,
            candidates: 1000,
            around: 200,
            searches: 6,
            search_steps: 30,
            most_points: 250,
            haste: 0.0,
        }
    }
}

/// Suggests the parameters of the trial `index`. The same inputs give the same suggestion, whatever the order of the
/// trials.
pub fn suggest(space: &Space, trials: &[Trial], seed: [u8; 32], index: u32) -> Suggestion {
    suggest_with(space, trials, seed, index, &Options::default())
}

/// Experiment.
#[doc(hidden)]
pub fn suggest_with(space: &Space, trials: &[Trial], seed: [u8; 32], index: u32, options: &Options) -> Suggestion {
    let mut sorted: Vec<&Trial> = trials.iter().filter(|trial| trial.index != index).collect();
    sorted.sort_by_key(|trial| trial.index);
    let outcomes = outcomes::outcomes(&sorted);
    let usable = outcomes.iter().filter(|outcome| matches!(outcome, Some(Outcome::Cost { .. }))).count();
    let ended = outcomes.iter().flatten().count();
    let mut random = Random::new(seed, Some(index));
    let known = search::Known::new(&sorted);
    if ended < options.initial {
        let numbers = random::even(seed, space.dimensions.len(), index);
        let point = known.fresh(space, encoding::drawn(space, numbers), &mut random);
        return Suggestion { point, basis: Basis::Initial };
    }
    let modelled = (usable > 0).then(|| search::modelled(space, &sorted, &outcomes, &known, &mut random, options));
    modelled.flatten().unwrap_or_else(|| {
        let numbers: Vec<f64> = space.dimensions.iter().map(|_| random.unit()).collect();
        let point = known.fresh(space, encoding::drawn(space, numbers), &mut random);
        Suggestion { point, basis: Basis::Random }
    })
}
