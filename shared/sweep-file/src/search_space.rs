//! The space of a sweep with `method: bayes`, between the sweep file and the search.
//!
//! A search works on a unit cube without names: [`SearchSpace::space`]. [`SearchSpace::parameters`] makes a trial's
//! parameters from what it suggests. The control plane stores the space as JSON when the sweep is submitted.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spotsweep_search::space::{Condition, Dimension, Point, Space as Cube};

use super::distribution::Distribution;
use super::space::{Coordinate, Space, Values};

/// The version of the JSON. A reader refuses any other.
const VERSION: u8 = 1;

/// The most values of an ordered parameter that are steps of the search. A parameter with more is a real number to it.
pub const MOST_STEPS: u64 = 1_000;

/// The parameters of a sweep whose trials are suggested one by one.
///
/// Parameters with only one value are not searched. The outermost thousandth at each end of an unlimited distribution
/// (normal, log-normal) is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct SearchSpace {
    version: u8,
    space: Space,
}

/// A space before it is checked.
#[derive(Deserialize)]
struct Stored {
    version: u8,
    space: Space,
}

impl TryFrom<Stored> for SearchSpace {
    type Error = String;

    fn try_from(Stored { version, space }: Stored) -> Result<Self, String> {
        if version != VERSION {
            return Err(format!("a search space of version {version}, and {VERSION} is known"));
        }
        let of_dimensions = space.dimensions.iter().flat_map(|dimension| &dimension.when);
        let named = space.excluded.iter().chain(&space.first).flatten().chain(of_dimensions);
        let mut indexes = named.map(|condition| condition.dimension).chain(space.conditional.iter().copied());
        match indexes.find(|index| *index >= space.dimensions.len()) {
            Some(index) => Err(format!("a search space that has no parameter {index}")),
            None => Ok(Self { version, space }),
        }
    }
}

/// The role of a parameter in the search.
enum Kind<'v> {
    /// It has one value and is not searched.
    Fixed,
    Steps(&'v Distribution, u64),
    Choices(&'v Distribution, u64),
    Real(&'v Distribution),
}

fn kind(values: &Values) -> Kind<'_> {
    let (Values::Counted(distribution) | Values::Real(distribution)) = values else {
        // Only grids have ranges.
        return Kind::Fixed;
    };
    match values.count() {
        Some(0 | 1) => Kind::Fixed,
        Some(count) if !distribution.is_ordered() => Kind::Choices(distribution, count),
        Some(count) if count <= MOST_STEPS => Kind::Steps(distribution, count),
        Some(_) | None => Kind::Real(distribution),
    }
}

impl SearchSpace {
    pub(crate) fn new(space: Space) -> Self {
        Self { version: VERSION, space }
    }

    pub(crate) fn inner(&self) -> &Space {
        &self.space
    }

    /// Returns the role of each dimension in the search.
    fn kinds(&self) -> Vec<Kind<'_>> {
        self.space.dimensions.iter().map(|dimension| kind(&dimension.values)).collect()
    }

    /// Returns the space as a cube for a search.
    ///
    /// The cube has no conditions on a whole number with more than [`MOST_STEPS`] values. So the search gives the
    /// conditional parameter a value in all trials, and [`Self::parameters`] removes it.
    pub fn space(&self) -> Cube {
        let mut cube = Cube::default();
        let kinds = self.kinds();
        let mut places = vec![None; kinds.len()];
        for (index, kind) in searched(&kinds) {
            places[index] = Some(cube.dimensions.len());
            cube.dimensions.push(match kind {
                Kind::Steps(distribution, count) => {
                    Dimension::Steps { positions: (0..*count).map(|index| distribution.position(index)).collect() }
                }
                Kind::Choices(_, count) => Dimension::Choices { count: usize::try_from(*count).unwrap_or(usize::MAX) },
                Kind::Real(_) | Kind::Fixed => Dimension::Real,
            });
        }
        for (index, place) in places.iter().enumerate() {
            let Some(dimension) = *place else { continue };
            for (parent, levels) in self.conditions(&kinds, index) {
                cube.conditions.extend(places[parent].map(|parent| Condition { dimension, parent, levels }));
            }
        }
        cube
    }

    /// Returns the conditions of a parameter that the search can express. The conditions of a parent with one value are
    /// added in its place.
    fn conditions(&self, kinds: &[Kind<'_>], dimension: usize) -> Vec<(usize, Vec<usize>)> {
        let mut conditions = Vec::new();
        let (mut waiting, mut seen) = (vec![dimension], BTreeSet::from([dimension]));
        while let Some(dimension) = waiting.pop() {
            for condition in &self.space.dimensions[dimension].when {
                let parent = condition.dimension;
                match kinds[parent] {
                    Kind::Fixed if seen.insert(parent) => waiting.push(parent),
                    Kind::Fixed | Kind::Real(_) => {}
                    Kind::Steps(..) | Kind::Choices(..) => {
                        let levels = condition.indexes.iter().filter_map(|index| usize::try_from(*index).ok());
                        conditions.push((parent, levels.collect()));
                    }
                }
            }
        }
        conditions
    }

    /// Returns the parameters of a trial at the point, or `None` if `exclude` excludes it.
    ///
    /// All values belong to their distributions: whole numbers within their limits, multiples of `q`, values of the
    /// list. Positions below 0 and above 1 are clamped. A parameter that must exist but has no position gets its
    /// middle.
    pub fn parameters(&self, point: &Point) -> Option<Map<String, Value>> {
        let mut coordinates = vec![Coordinate::Index(0); self.space.dimensions.len()];
        for (place, (index, kind)) in searched(&self.kinds()).enumerate() {
            let position = point.get(place).copied().flatten().filter(|position| position.is_finite());
            coordinates[index] = coordinate(kind, position);
        }
        self.space.settle(&mut coordinates);
        (!self.space.is_excluded(&coordinates)).then(|| self.space.parameters(&coordinates))
    }

    /// Returns the point of a trial's parameters: the inverse of [`Self::parameters`].
    ///
    /// A value that its distribution does not have counts as absent. An absent parameter is left out of the point if
    /// its conditions can remove it; otherwise it gets its middle.
    pub fn point(&self, parameters: &Map<String, Value>) -> Point {
        let kinds = self.kinds();
        let mut places = vec![None; kinds.len()];
        let mut point: Point = Vec::new();
        for (index, kind) in searched(&kinds) {
            places[index] = Some(point.len());
            let value = find(parameters, &self.space.dimensions[index].path);
            point.push(value.and_then(|value| position(kind, value)));
        }
        for (index, kind) in searched(&kinds) {
            let Some(place) = places[index].filter(|place| point[*place].is_none()) else { continue };
            let holds = |(parent, levels): (usize, Vec<usize>)| {
                let level = places[parent].and_then(|parent| point[parent]);
                level.is_some_and(|level| levels.contains(&(level as usize)))
            };
            if self.conditions(&kinds, index).into_iter().all(holds) {
                point[place] = Some(middle(kind));
            }
        }
        point
    }

    /// Returns the point with the values that `first` has for the trial, or for the parameter set if sets are repeated.
    /// Of several values it takes the first.
    ///
    /// `exclude` may exclude the result although it does not exclude the point. Try the point itself then.
    pub fn pinned(&self, index: u64, point: &Point) -> Point {
        let pattern = usize::try_from(index).ok().and_then(|index| self.space.first.get(index));
        let mut pinned = point.clone();
        for (place, (dimension, kind)) in searched(&self.kinds()).enumerate() {
            let condition = pattern.into_iter().flatten().find(|condition| condition.dimension == dimension);
            let level = condition.and_then(|condition| condition.indexes.first().copied());
            if let (Some(level), Some(position)) = (level, pinned.get_mut(place)) {
                *position = Some(match kind {
                    Kind::Steps(..) | Kind::Choices(..) | Kind::Fixed => level as f64,
                    Kind::Real(distribution) => distribution.position(level),
                });
            }
        }
        pinned
    }

    /// Returns the parameters that have one value in all trials.
    pub fn constants(&self) -> Map<String, Value> {
        let of = |kind: &Kind<'_>| match kind {
            Kind::Fixed => Coordinate::Index(0),
            Kind::Steps(..) | Kind::Choices(..) | Kind::Real(_) => Coordinate::Absent,
        };
        let mut coordinates: Vec<Coordinate> = self.kinds().iter().map(of).collect();
        self.space.settle(&mut coordinates);
        self.space.parameters(&coordinates)
    }
}

/// Returns the searched dimensions with their numbers in the space.
fn searched<'k, 'v>(kinds: &'k [Kind<'v>]) -> impl Iterator<Item = (usize, &'k Kind<'v>)> {
    kinds.iter().enumerate().filter(|(_, kind)| !matches!(kind, Kind::Fixed))
}

fn coordinate(kind: &Kind<'_>, position: Option<f64>) -> Coordinate {
    let position = position.unwrap_or_else(|| middle(kind));
    match kind {
        Kind::Fixed => Coordinate::Index(0),
        Kind::Steps(_, count) | Kind::Choices(_, count) => Coordinate::Index((position.round() as u64).min(count - 1)),
        Kind::Real(distribution) => match distribution.index(position.clamp(0.0, 1.0)) {
            // Conditions can only compare indexes.
            Some(index) => Coordinate::Index(index),
            None => Coordinate::Probability(distribution.within(position)),
        },
    }
}

fn position(kind: &Kind<'_>, value: &Value) -> Option<f64> {
    match kind {
        Kind::Fixed => None,
        Kind::Steps(distribution, _) | Kind::Choices(distribution, _) => {
            distribution.index_of(value).map(|index| index as f64)
        }
        Kind::Real(distribution) => distribution.probability_of(value),
    }
}

fn middle(kind: &Kind<'_>) -> f64 {
    match kind {
        Kind::Fixed => 0.0,
        Kind::Steps(_, count) | Kind::Choices(_, count) => (count / 2) as f64,
        Kind::Real(_) => 0.5,
    }
}

/// Returns the value at a path of names.
fn find<'p>(parameters: &'p Map<String, Value>, path: &[String]) -> Option<&'p Value> {
    let (name, rest) = path.split_first()?;
    let value = parameters.get(name)?;
    if rest.is_empty() { Some(value) } else { find(value.as_object()?, rest) }
}
