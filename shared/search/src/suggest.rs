//! Which parameters to try next.

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
    /// Its parameters.
    pub point: Point,
    /// What it has reported at rungs.
    #[serde(default)]
    pub rungs: Curve,
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
        #[serde(with = "spotsweep_protocol::number")]
        mean: f64,
        /// Its standard deviation.
        #[serde(with = "spotsweep_protocol::number")]
        deviation: f64,
    },
}

/// So many outcomes, before a model of them says more than an even cover of the space.
const INITIAL: usize = 6;

/// The last few trials before a new one are looked for (see [`unknown_before`]). Each one costs a search.
const MOST_UNKNOWN: usize = 3;

/// Suggests the parameters of the trial `index`. The same inputs give the same suggestion, whatever the order of the
/// trials.
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

/// The last few trials before `index` that are not among the others. They may be claimed at this moment, so each one
/// counts as pending at the point that it gets if it knows as much.
fn unknown_before(index: u32, others: &[&Trial]) -> Vec<u32> {
    let is_unknown = |before: &u32| others.binary_search_by_key(before, |trial| trial.index).is_err();
    let mut unknown: Vec<u32> = (0..index).rev().filter(is_unknown).take(MOST_UNKNOWN).collect();
    unknown.reverse();
    unknown
}

/// What the next suggestion follows from.
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
            let model = model.believing(space, point);
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
