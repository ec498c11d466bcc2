//! The point with the most to expect.

use std::collections::BTreeSet;

use super::acquisition::Acquisition;
use super::encoding::{self, Kind};
use super::gp::{self, Data, Process};
use super::minimize::minimize;
use super::outcomes::{Outcome, Scale};
use super::random::Random;
use super::{Basis, Options, Suggestion, Trial};
use crate::space::{Dimension, Point, Space};

/// Points that have been suggested before.
#[derive(Debug)]
pub(super) struct Known(BTreeSet<Vec<Option<u64>>>);

impl Known {
    pub(super) fn new(trials: &[&Trial]) -> Self {
        Self(trials.iter().map(|trial| bits(&trial.point)).collect())
    }

    fn has(&self, point: &Point) -> bool {
        self.0.contains(&bits(point))
    }

    /// The point, or one that has not been suggested where there is such.
    pub(super) fn fresh(&self, space: &Space, point: Point, random: &mut Random) -> Point {
        if !self.has(&point) {
            return point;
        }
        for _ in 0..200 {
            let numbers: Vec<f64> = space.dimensions.iter().map(|_| random.unit()).collect();
            let other = encoding::drawn(space, numbers);
            if !self.has(&other) {
                return other;
            }
        }
        point
    }
}

fn bits(point: &Point) -> Vec<Option<u64>> {
    point.iter().map(|place| place.map(f64::to_bits)).collect()
}

pub(super) fn modelled(
    space: &Space,
    trials: &[&Trial],
    outcomes: &[Option<Outcome>],
    known: &Known,
    random: &mut Random,
    options: &Options,
) -> Option<Suggestion> {
    let costs: Vec<f64> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Some(Outcome::Cost { cost, .. }) => Some(*cost),
            _ => None,
        })
        .collect();
    let scale = Scale::new(&costs, options)?;
    let mut data = Data { kinds: encoding::kinds(space), points: vec![], outcomes: vec![], doubts: vec![] };
    let mut pending = Vec::new();
    for (trial, outcome) in trials.iter().zip(outcomes) {
        let features = encoding::features(space, &trial.point);
        let (scaled, doubt) = match outcome {
            None => {
                pending.push(features);
                continue;
            }
            Some(Outcome::Bad) => (scale.worst(), 0.0),
            Some(Outcome::Cost { cost, doubt }) => {
                let doubt =
                    if options.doubt > 0.0 && *doubt > 0.0 { options.doubt } else { scale.scaled_variance(*doubt) };
                (scale.scaled(*cost), doubt.min(1.0))
            }
        };
        data.points.push(features);
        data.outcomes.push(scaled);
        data.doubts.push(doubt);
    }
    let best = data.outcomes.iter().zip(&data.doubts).filter(|(_, doubt)| **doubt == 0.0);
    let best = best.map(|(outcome, _)| *outcome).fold(f64::INFINITY, f64::min);
    let best = if best.is_finite() { best } else { data.outcomes.iter().copied().fold(f64::INFINITY, f64::min) };
    let kernel = gp::fit(&data, options);
    let known_points = data.points.clone();
    let mut order: Vec<usize> = (0..known_points.len()).collect();
    order.sort_by(|left, right| data.outcomes[*left].total_cmp(&data.outcomes[*right]));
    let process = Process::new(kernel, data)?.believing(pending)?;
    let haste = super::pace::haste(space, trials, options.haste);
    let acquisition = Acquisition { process, best, haste };
    let mut candidates: Vec<(f64, Vec<f64>)> = Vec::new();
    let mut add = |features: Vec<f64>| {
        let point = encoding::point(space, &features);
        if !known.has(&point) {
            let features = encoding::features(space, &point);
            candidates.push((acquisition.value(&features), features));
        }
    };
    for _ in 0..options.candidates {
        let numbers: Vec<f64> = space.dimensions.iter().map(|_| random.unit()).collect();
        add(encoding::features(space, &encoding::drawn(space, numbers)));
    }
    for _ in 0..options.around {
        let centre = &known_points[order[random.below(order.len().min(5))]];
        let reach = [0.2, 0.05, 0.01][random.below(3)];
        add(near(space, centre, reach, random));
    }
    candidates.sort_by(|left, right| right.0.total_cmp(&left.0));
    let mut starts: Vec<Vec<f64>> = candidates.iter().take(options.searches).map(|c| c.1.clone()).collect();
    starts.extend(order.iter().take(2).map(|at| known_points[*at].clone()));
    for start in starts {
        let (value, features) = climb(space, &acquisition, start, options);
        candidates.push((value, features));
    }
    candidates.sort_by(|left, right| right.0.total_cmp(&left.0));
    let (_, features) = candidates.into_iter().find(|(_, features)| !known.has(&encoding::point(space, features)))?;
    let prediction = acquisition.process.predict(&features);
    let deviation = prediction.variance.sqrt();
    let (low, high) = (scale.cost(prediction.mean - deviation), scale.cost(prediction.mean + deviation));
    let basis = Basis::Model { mean: scale.cost(prediction.mean), deviation: (high - low) / 2.0 };
    Some(Suggestion { point: encoding::point(space, &features), basis })
}

fn near(space: &Space, centre: &[f64], reach: f64, random: &mut Random) -> Vec<f64> {
    let mut moved = centre.to_vec();
    let share = 1.0_f64.min(3.0 / centre.len().max(1) as f64);
    let forced = random.below(centre.len());
    for (at, dimension) in space.dimensions.iter().enumerate() {
        if at != forced && random.unit() > share {
            continue;
        }
        moved[at] = match dimension {
            Dimension::Choices { count } => random.below(*count) as f64,
            _ => (centre[at] + reach * random.normal()).clamp(0.0, 1.0),
        };
    }
    moved
}

fn climb(space: &Space, acquisition: &Acquisition, start: Vec<f64>, options: &Options) -> (f64, Vec<f64>) {
    let kinds = encoding::kinds(space);
    let snap = |features: &[f64]| encoding::features(space, &encoding::point(space, features));
    let mut here = start;
    let mut value = acquisition.value(&here);
    for _ in 0..3 {
        let before = value;
        let point = encoding::point(space, &here);
        let spans: Vec<f64> = acquisition.process.weights().iter().map(|weight| weight.sqrt().recip()).collect();
        let bounds: Vec<(f64, f64)> = (0..here.len())
            .map(|at| match kinds[at] == Kind::Line && point[at].is_some() {
                true => (0.0, 1.0 / spans[at]),
                false => (here[at] / spans[at], here[at] / spans[at]),
            })
            .collect();
        if bounds.iter().any(|(least, most)| least < most) {
            let scaled: Vec<f64> = here.iter().zip(&spans).map(|(at, span)| at / span).collect();
            let fixed = here.clone();
            let (found, _) = minimize(&scaled, &bounds, options.search_steps, |place| {
                let place: Vec<f64> = (0..place.len())
                    .map(|at| if bounds[at].0 < bounds[at].1 { place[at] * spans[at] } else { fixed[at] })
                    .collect();
                let (value, gradient) = acquisition.value_with_gradient(&place);
                (-value, gradient.iter().zip(&spans).map(|(slope, span)| -slope * span).collect())
            });
            let moved: Vec<f64> = (0..found.len())
                .map(|at| if bounds[at].0 < bounds[at].1 { found[at] * spans[at] } else { fixed[at] })
                .collect();
            let moved = snap(&moved);
            let reached = acquisition.value(&moved);
            if reached > value {
                (here, value) = (moved, reached);
            }
        }
        for (at, dimension) in space.dimensions.iter().enumerate() {
            let places: Vec<f64> = match dimension {
                Dimension::Choices { count } => (0..*count).map(|choice| choice as f64).collect(),
                Dimension::Steps { positions } if kinds[at] == Kind::Few => positions.clone(),
                _ => continue,
            };
            if encoding::point(space, &here)[at].is_none() {
                continue;
            }
            for place in places {
                let mut other = here.clone();
                other[at] = place;
                let other = snap(&other);
                let reached = acquisition.value(&other);
                if reached > value {
                    (here, value) = (other, reached);
                }
            }
        }
        if value <= before + 1e-6 {
            break;
        }
    }
    (value, here)
}
