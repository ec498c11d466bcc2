//! The space of a sweep with `method: bayes`, between the sweep file and the search.
//!
//! A search sees a unit cube and no names: [`SearchSpace::space`]. What it suggests becomes a trial's parameters with
//! [`SearchSpace::parameters`]. The control plane keeps the space as JSON from the submission on.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spotsweep_search::space::{Condition, Dimension, Point, Space as Cube};

use super::distribution::Distribution;
use super::space::{Coordinate, Space, Values};

/// The form of the JSON. A reader refuses others.
const VERSION: u8 = 1;

/// Ordered values are steps up to this number, and real numbers beyond.
pub const MOST_STEPS: u64 = 1_000;

/// The parameters of a sweep whose trials are suggested one by one.
///
/// Parameters with one value only are no part of the search. Of an unlimited distribution (normal, log-normal) the
/// outermost thousandth at each end is left out.
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

/// What a parameter is to the search.
enum Kind<'v> {
    /// It has one value.
    Fixed,
    Steps(&'v Distribution, u64),
    Choices(&'v Distribution, u64),
    Real(&'v Distribution),
}

fn kind(values: &Values) -> Kind<'_> {
    let (Values::Counted(distribution) | Values::Real(distribution)) = values else {
        // A range is made for grids only.
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

    /// What each dimension is to the search.
    fn kinds(&self) -> Vec<Kind<'_>> {
        self.space.dimensions.iter().map(|dimension| kind(&dimension.values)).collect()
    }

    /// The space as a search sees it.
    ///
    /// A condition on a whole number with more than [`MOST_STEPS`] values is not among its conditions, so the search
    /// gives the conditional parameter a value in all trials. [`Self::parameters`] takes it out.
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

    /// What must hold for a parameter to exist, as far as the search can see it. A parameter with one value hands its
    /// own conditions on.
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

    /// The parameters of a trial at the point, or `None` if `exclude` has taken it out.
    ///
    /// All values are of their distributions: whole numbers within their limits, multiples of `q`, values of the list.
    /// Positions beyond 0 and 1 count as these, and a parameter that must exist and has no position gets its middle.
    pub fn parameters(&self, point: &Point) -> Option<Map<String, Value>> {
        let mut coordinates = vec![Coordinate::Index(0); self.space.dimensions.len()];
        for (place, (index, kind)) in searched(&self.kinds()).enumerate() {
            let position = point.get(place).copied().flatten().filter(|position| position.is_finite());
            coordinates[index] = coordinate(kind, position);
        }
        self.space.settle(&mut coordinates);
        (!self.space.is_excluded(&coordinates)).then(|| self.space.parameters(&coordinates))
    }

    /// The point of a trial's parameters: the inverse of [`Self::parameters`].
    ///
    /// A value that its distribution does not have counts as absent. What is absent is no part of the point if its
    /// conditions can take it out, and has its middle else.
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

    /// The point with the values that `first` has for the trial with an index, or the parameter set where sets are
    /// repeated. Of several values it is the first one.
    ///
    /// `exclude` may have taken out the result, and only the result: try the point itself then.
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

    /// The parameters that all trials have, with their one value.
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

/// The dimensions that the search has, with their number in the space.
fn searched<'k, 'v>(kinds: &'k [Kind<'v>]) -> impl Iterator<Item = (usize, &'k Kind<'v>)> {
    kinds.iter().enumerate().filter(|(_, kind)| !matches!(kind, Kind::Fixed))
}

fn coordinate(kind: &Kind<'_>, position: Option<f64>) -> Coordinate {
    let position = position.unwrap_or_else(|| middle(kind));
    match kind {
        Kind::Fixed => Coordinate::Index(0),
        Kind::Steps(_, count) | Kind::Choices(_, count) => Coordinate::Index((position.round() as u64).min(count - 1)),
        Kind::Real(distribution) => match distribution.index(position.clamp(0.0, 1.0)) {
            // As an index it can be compared in conditions.
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

/// The value at a path of names.
fn find<'p>(parameters: &'p Map<String, Value>, path: &[String]) -> Option<&'p Value> {
    let (name, rest) = path.split_first()?;
    let value = parameters.get(name)?;
    if rest.is_empty() { Some(value) } else { find(value.as_object()?, rest) }
}
