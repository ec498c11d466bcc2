//! Finds the point with the largest expected benefit: it draws many candidates, and climbs from the best ones.

use super::acquisition::Acquisition;
use super::encoding::{self, Kind};
use super::known::Known;
use super::minimize::minimize;
use super::model::Model;
use super::random::Random;
use crate::space::{Dimension, Point, Space};

/// The number of candidates from the whole space.
const CANDIDATES: usize = 1000;

/// The number of candidates near the best trials.
const NEIGHBOURS: usize = 200;

/// The number of candidates from which the search climbs.
const SEARCHES: usize = 6;

/// The most steps along lines at a time.
const STEPS: usize = 30;

/// The number of rounds of steps along lines and through choices.
const ROUNDS: usize = 3;

/// Returns the best new point.
pub(super) fn best(space: &Space, model: &Model, known: &Known, index: u32, random: &mut Random) -> Option<Point> {
    let acquisition = &model.acquisition(index);
    let mut found: Vec<(f64, Vec<f64>)> = candidates(space, model, random)
        .into_iter()
        .filter(|point| !known.has(point))
        .map(|point| encoding::features(space, &point))
        .map(|features| (acquisition.value(&features), features))
        .collect();
    found.sort_by(|left, right| right.0.total_cmp(&left.0));
    let starts: Vec<Vec<f64>> = found.iter().take(SEARCHES).map(|(_, features)| features.clone()).collect();
    for start in starts.into_iter().chain(model.leaders.iter().take(2).cloned()) {
        let mut climb =
            Climb { space, acquisition, kinds: encoding::kinds(space), value: f64::NEG_INFINITY, here: start };
        climb.run();
        let point = encoding::point(space, &climb.here);
        if !known.has(&point) {
            found.push((climb.value, climb.here));
        }
    }
    let best = found.into_iter().max_by(|left, right| left.0.total_cmp(&right.0))?;
    Some(encoding::point(space, &best.1))
}

fn candidates(space: &Space, model: &Model, random: &mut Random) -> Vec<Point> {
    let dimensions = space.dimensions.len();
    let mut all: Vec<Point> = (0..CANDIDATES).map(|_| encoding::drawn(space, &random.units(dimensions))).collect();
    for _ in 0..NEIGHBOURS {
        let centre = &model.leaders[random.below(model.leaders.len())];
        all.push(encoding::point(space, &near(space, centre, random)));
    }
    all
}

/// Returns a leader's place with a few dimensions moved, by a little or a lot.
fn near(space: &Space, centre: &[f64], random: &mut Random) -> Vec<f64> {
    let mut moved = centre.to_vec();
    let reach = [0.2, 0.05, 0.01][random.below(3)];
    let share = 3.0 / centre.len() as f64;
    let first = random.below(centre.len());
    for (at, dimension) in space.dimensions.iter().enumerate() {
        if at != first && random.unit() > share {
            continue;
        }
        moved[at] = match dimension {
            Dimension::Choices { count } => random.below(*count) as f64,
            Dimension::Real | Dimension::Steps { .. } => (centre[at] + reach * random.normal()).clamp(0.0, 1.0),
        };
    }
    moved
}

struct Climb<'m> {
    space: &'m Space,
    acquisition: &'m Acquisition<'m>,
    kinds: Vec<Kind>,
    value: f64,
    here: Vec<f64>,
}

impl Climb<'_> {
    fn run(&mut self) {
        self.value = self.acquisition.value(&self.here);
        for _ in 0..ROUNDS {
            let before = self.value;
            self.along_lines();
            self.through_choices();
            if self.value <= before + 1e-6 {
                break;
            }
        }
    }

    /// Moves to a place's nearest point if it is better.
    fn try_place(&mut self, place: &[f64]) {
        let other = encoding::features(self.space, &encoding::point(self.space, place));
        let value = self.acquisition.value(&other);
        if value > self.value {
            (self.here, self.value) = (other, value);
        }
    }

    /// Optimises all lines at once. Each is divided by its length scale, so that the slopes are similar.
    fn along_lines(&mut self) {
        let point = encoding::point(self.space, &self.here);
        let lines: Vec<usize> =
            (0..self.here.len()).filter(|at| self.kinds[*at] == Kind::Line && point[*at].is_some()).collect();
        if lines.is_empty() {
            return;
        }
        let weights = self.acquisition.process.weights();
        let spans: Vec<f64> = lines.iter().map(|at| weights[*at].sqrt().recip()).collect();
        let bounds: Vec<(f64, f64)> = spans.iter().map(|span| (0.0, span.recip())).collect();
        let start: Vec<f64> = lines.iter().zip(&spans).map(|(at, span)| self.here[*at] / span).collect();
        let whole = |place: &[f64]| {
            let mut whole = self.here.clone();
            for ((at, span), place) in lines.iter().zip(&spans).zip(place) {
                whole[*at] = (place * span).clamp(0.0, 1.0);
            }
            whole
        };
        let (place, _) = minimize(&start, &bounds, STEPS, |place| {
            let (value, gradient) = self.acquisition.value_with_gradient(&whole(place));
            (-value, lines.iter().zip(&spans).map(|(at, span)| -gradient[*at] * span).collect())
        });
        let place = whole(&place);
        self.try_place(&place);
    }

    /// Tries all values of one dimension after the other.
    fn through_choices(&mut self) {
        for (at, dimension) in self.space.dimensions.iter().enumerate() {
            let places: Vec<f64> = match dimension {
                Dimension::Choices { count } => (0..*count).map(|choice| choice as f64).collect(),
                Dimension::Steps { positions } if self.kinds[at] == Kind::Few => positions.clone(),
                Dimension::Steps { .. } | Dimension::Real => continue,
            };
            for place in places {
                if encoding::point(self.space, &self.here)[at].is_none() {
                    break;
                }
                let mut other = self.here.clone();
                other[at] = place;
                self.try_place(&other);
            }
        }
    }
}
