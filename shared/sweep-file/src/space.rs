//! The space that `parameters` spans: its dimensions, and which of its points are trials.
//!
//! Every point has a number, and the number alone determines the point. So trials stream in any order with constant
//! memory. The number of a grid point is read as digits; the number of a random point selects a stream of the
//! generator.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::distribution::{Distribution, count};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Dimension {
    /// The parameter's name, after the names of the groups around it.
    pub(crate) path: Vec<String>,
    pub(crate) values: Values,
    /// The conditions that must all hold for the parameter to exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) when: Vec<Condition>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Values {
    /// Countable values, in a grid or at random.
    Counted(Distribution),
    /// A grid's `q_uniform`: `start + i * step`, as numpy's `arange` computes it.
    Range { start: f64, step: f64, count: u64, whole: bool },
    /// Real numbers, at random.
    Real(Distribution),
}

/// A condition on the value of another dimension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Condition {
    pub(crate) dimension: usize,
    /// The sorted indexes of the values that the dimension may have.
    pub(crate) indexes: Vec<u64>,
}

/// A point's coordinate in one dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Coordinate {
    Index(u64),
    Probability(f64),
    /// The parameter does not exist, because one of its conditions does not hold.
    Absent,
}

impl Condition {
    fn holds(&self, point: &[Coordinate]) -> bool {
        match point.get(self.dimension) {
            Some(Coordinate::Index(index)) => self.indexes.binary_search(index).is_ok(),
            Some(Coordinate::Probability(_) | Coordinate::Absent) | None => false,
        }
    }
}

impl Values {
    /// Returns the number of values; `None` for real numbers without a step.
    pub(crate) fn count(&self) -> Option<u64> {
        match self {
            Self::Counted(Distribution::Constant(_)) => Some(1),
            Self::Counted(Distribution::Choice { values, .. }) => Some(values.len() as u64),
            Self::Counted(Distribution::Integers { min, max }) => Some(count(*min, *max)),
            Self::Range { count, .. } => Some(*count),
            Self::Counted(Distribution::Real { .. }) => None,
            Self::Real(distribution) => distribution.steps(),
        }
    }

    fn value(&self, coordinate: Coordinate) -> Option<Value> {
        match (self, coordinate) {
            (_, Coordinate::Absent) => None,
            (Self::Counted(distribution), Coordinate::Index(index)) => distribution.at(index),
            (Self::Range { start, step, whole, .. }, Coordinate::Index(index)) => {
                let value = start + index as f64 * step;
                Some(if *whole { Value::from(value as i64) } else { Value::from(value) })
            }
            (Self::Counted(distribution) | Self::Real(distribution), Coordinate::Probability(probability)) => {
                Some(distribution.quantile(probability))
            }
            (Self::Real(distribution), Coordinate::Index(index)) => distribution.at(index),
            (Self::Range { .. }, Coordinate::Probability(_)) => None,
        }
    }
}

/// All dimensions, in the order in which trials list them: by code point at each level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Space {
    pub(crate) dimensions: Vec<Dimension>,
    /// Conditional dimensions, each after those that its conditions refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditional: Vec<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) excluded: Vec<Vec<Condition>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) first: Vec<Vec<Condition>>,
}

impl Space {
    /// Returns the number of grid points; `None` if 64 bits cannot number them.
    pub(crate) fn grid_points(&self) -> Option<u64> {
        self.dimensions.iter().try_fold(1_u64, |product, dimension| product.checked_mul(dimension.values.count()?))
    }

    /// Returns the grid point with a number, whose lowest digit is the last dimension. `None` if the point is not a
    /// trial.
    pub(crate) fn grid_point(&self, number: u64) -> Option<Vec<Coordinate>> {
        let mut point = vec![Coordinate::Absent; self.dimensions.len()];
        let mut rest = number;
        for (coordinate, dimension) in point.iter_mut().zip(&self.dimensions).rev() {
            let count = dimension.values.count().unwrap_or(1).max(1);
            *coordinate = Coordinate::Index(rest % count);
            rest /= count;
        }
        for &dimension in &self.conditional {
            if self.applies(dimension, &point) {
                continue;
            }
            // Points that differ only in absent parameters are one trial, represented by the first values.
            if !matches!(point[dimension], Coordinate::Index(0)) {
                return None;
            }
            point[dimension] = Coordinate::Absent;
        }
        (!self.is_excluded(&point)).then_some(point)
    }

    /// Returns how many of the first `points` grid points are trials.
    pub(crate) fn grid_trials(&self, points: u64) -> u64 {
        (0..points).filter(|number| self.grid_point(*number).is_some()).count() as u64
    }

    /// Returns the random point with a number; `None` if it is excluded.
    pub(crate) fn random_point(&self, seed: [u8; 32], number: u64) -> Option<Vec<Coordinate>> {
        let mut generator = ChaCha8Rng::from_seed(seed);
        generator.set_stream(number);
        let mut point: Vec<Coordinate> = Vec::with_capacity(self.dimensions.len());
        for dimension in &self.dimensions {
            point.push(match &dimension.values {
                Values::Counted(Distribution::Constant(_)) => Coordinate::Index(0),
                Values::Counted(distribution) => {
                    distribution.index(probability(&mut generator)).map_or(Coordinate::Absent, Coordinate::Index)
                }
                Values::Real(_) | Values::Range { .. } => Coordinate::Probability(probability(&mut generator)),
            });
        }
        self.settle(&mut point);
        (!self.is_excluded(&point)).then_some(point)
    }

    /// Removes the parameters whose conditions do not hold.
    pub(crate) fn settle(&self, point: &mut [Coordinate]) {
        for &dimension in &self.conditional {
            if !self.applies(dimension, point) {
                point[dimension] = Coordinate::Absent;
            }
        }
    }

    fn applies(&self, dimension: usize, point: &[Coordinate]) -> bool {
        self.dimensions[dimension].when.iter().all(|condition| condition.holds(point))
    }

    pub(crate) fn is_excluded(&self, point: &[Coordinate]) -> bool {
        self.excluded.iter().any(|pattern| matches(pattern, point))
    }

    /// Returns the index of the first `first` pattern that the point matches, or their number if there is none.
    pub(crate) fn rank(&self, point: &[Coordinate]) -> usize {
        self.first.iter().position(|pattern| matches(pattern, point)).unwrap_or(self.first.len())
    }

    pub(crate) fn parameters(&self, point: &[Coordinate]) -> Map<String, Value> {
        let mut parameters = Map::new();
        for (dimension, coordinate) in self.dimensions.iter().zip(point) {
            if let Some(value) = dimension.values.value(*coordinate) {
                insert(&mut parameters, &dimension.path, value);
            }
        }
        parameters
    }
}

fn matches(pattern: &[Condition], point: &[Coordinate]) -> bool {
    pattern.iter().all(|condition| condition.holds(point))
}

fn insert(parameters: &mut Map<String, Value>, path: &[String], value: Value) {
    match path {
        [] => {}
        [name] => {
            parameters.insert(name.clone(), value);
        }
        [group, rest @ ..] => {
            let inner = parameters.entry(group.clone()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// Returns a number strictly between 0 and 1. It uses 52 bits, because with 53 the largest would be rounded to 1.
fn probability(generator: &mut ChaCha8Rng) -> f64 {
    ((generator.next_u64() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
}
