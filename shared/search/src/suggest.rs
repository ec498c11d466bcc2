//! Suggests the parameters to try next.

mod acquisition;
mod climb;
mod encoding;
mod gp;
mod kernel;
mod known;
mod linear;
mod minimize;
mod model;
mod outcomes;
mod random;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::space::{Point, Space};

use known::Known;
use model::Model;
use random::Random;

/// A trial that has been suggested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its number in the sweep.
    pub index: u32,
    /// The trial's parameters.
    pub point: Point,
    /// The figures that it has reported at rungs.
    #[serde(default)]
    pub rungs: Curve,
    /// The end of the trial; absent while it is pending.
    #[serde(default)]
    pub end: Option<End>,
}

/// The end of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum End {
    /// The trial finished with a cost. A cost that is not finite means that it has diverged.
    Finished(f64),
    /// The trial was stopped early, with the rungs that it had reached.
    Stopped,
    /// The trial ended without a cost.
    Failed,
}

/// The suggestion of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suggestion {
    /// The parameters.
    pub point: Point,
    /// The basis of the choice.
    pub basis: Basis,
}

/// The basis of a suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Basis {
    /// One of the first points, which cover the space evenly.
    Initial,
    /// A random point, because no trial has had a usable result so far.
    Random,
    /// A point chosen by a model of the results so far.
    Model {
        /// The predicted cost.
        #[serde(with = "spotsweep_protocol::number")]
        mean: f64,
        /// The standard deviation of the predicted cost.
        #[serde(with = "spotsweep_protocol::number")]
        deviation: f64,
    },
}

/// The outcomes from which on a model is better than an even cover of the space.
const INITIAL: usize = 6;

/// The last trials before a new one that are computed if unknown (see [`unknown_before`]). Each costs a search.
const MOST_UNKNOWN: usize = 3;

/// Suggests the parameters of the trial `index`. The same inputs give the same suggestion, in any order of the trials.
pub fn suggest(space: &Space, trials: &[Trial], seed: [u8; 32], index: u32) -> Suggestion {
    let mut others: Vec<&Trial> = trials.iter().filter(|trial| trial.index != index).collect();
    others.sort_by_key(|trial| trial.index);
    if space.dimensions.is_empty() {
        return Suggestion { point: Point::new(), basis: Basis::Initial };
    }
    let mut state = State::new(space, &others, seed);
    for unknown in unknown_before(index, &others) {
        let point = state.next(space, seed, unknown).point;
        state = state.with(space, &point);
    }
    state.next(space, seed, index)
}

/// Returns the last few trials before `index` that are not among the others. They may be claimed at this moment. So
/// each counts as pending, at the point that would be suggested to it from the same trials.
fn unknown_before(index: u32, others: &[&Trial]) -> Vec<u32> {
    let is_unknown = |before: &u32| others.binary_search_by_key(before, |trial| trial.index).is_err();
    let mut unknown: Vec<u32> = (0..index).rev().filter(is_unknown).take(MOST_UNKNOWN).collect();
    unknown.reverse();
    unknown
}

/// The state from which the next suggestion is computed.
struct State {
    known: Known,
    basis: Ground,
}

enum Ground {
    Initial,
    Random,
    Model(Box<Model>),
}

impl State {
    fn new(space: &Space, others: &[&Trial], seed: [u8; 32]) -> Self {
        let outcomes = outcomes::outcomes(others);
        let basis = if outcomes.iter().flatten().count() < INITIAL {
            Ground::Initial
        } else {
            let model = Model::new(space, others, &outcomes, seed);
            model.map_or(Ground::Random, |model| Ground::Model(Box::new(model)))
        };
        Self { known: Known::new(others), basis }
    }

    fn with(mut self, space: &Space, point: &Point) -> Self {
        self.known.add(point);
        if let Ground::Model(model) = self.basis {
            let model = model.with_predicted(space, point);
            self.basis = model.map_or(Ground::Random, |model| Ground::Model(Box::new(model)));
        }
        self
    }

    fn next(&self, space: &Space, seed: [u8; 32], index: u32) -> Suggestion {
        let mut random = Random::new(seed, Some(index));
        let dimensions = space.dimensions.len();
        let even = || encoding::drawn(space, &random::even(seed, dimensions, index));
        match &self.basis {
            Ground::Model(model) => {
                let best = climb::best(space, model, &self.known, index, &mut random);
                let point = best.unwrap_or_else(|| self.known.fresh(space, even(), &mut random));
                let (mean, deviation) = model.prediction(&encoding::features(space, &point));
                Suggestion { point, basis: Basis::Model { mean, deviation } }
            }
            Ground::Random => {
                let point = encoding::drawn(space, &random.units(dimensions));
                Suggestion { point: self.known.fresh(space, point, &mut random), basis: Basis::Random }
            }
            Ground::Initial => {
                Suggestion { point: self.known.fresh(space, even(), &mut random), basis: Basis::Initial }
            }
        }
    }
}
