//! Suggested points: no point is tried twice while there are others.

use std::collections::BTreeSet;

use super::Trial;
use super::encoding;
use super::random::Random;
use crate::space::{Dimension, Point, Space};

#[derive(Debug)]
pub(super) struct Known(BTreeSet<Vec<Option<u64>>>);

impl Known {
    /// Returns the points of trials.
    pub(super) fn new(trials: &[&Trial]) -> Self {
        Self(trials.iter().map(|trial| bits(&trial.point)).collect())
    }

    pub(super) fn add(&mut self, point: &Point) {
        self.0.insert(bits(point));
    }

    pub(super) fn has(&self, point: &Point) -> bool {
        self.0.contains(&bits(point))
    }

    /// Returns the point, or another one if the set has it; the same point if there is no other.
    pub(super) fn fresh(&self, space: &Space, point: Point, random: &mut Random) -> Point {
        if !self.has(&point) {
            return point;
        }
        let mut drawn = (0..100).map(|_| encoding::drawn(space, &random.units(space.dimensions.len())));
        drawn.find(|other| !self.has(other)).or_else(|| self.first_other(space)).unwrap_or(point)
    }

    /// Counts through a space without real numbers to the first point that the set does not have.
    fn first_other(&self, space: &Space) -> Option<Point> {
        let counts = space.dimensions.iter().map(|dimension| match dimension {
            Dimension::Real => 1,
            Dimension::Steps { positions } => positions.len().max(1),
            Dimension::Choices { count } => (*count).max(1),
        });
        let counts: Vec<usize> = counts.collect();
        let mut places = vec![0; counts.len()];
        // Several numbers give the same point because of conditions, so the next new point may be far away.
        for _ in 0..LONGEST_COUNT {
            let whole = space.dimensions.iter().zip(&places).map(|(dimension, place)| match dimension {
                Dimension::Real => Some(0.5),
                _ => Some(*place as f64),
            });
            let point = encoding::without_absent(space, whole.collect());
            if !self.has(&point) {
                return Some(point);
            }
            let next = places.iter().zip(&counts).position(|(place, count)| place + 1 < *count)?;
            places[next] += 1;
            places[..next].fill(0);
        }
        None
    }
}

const LONGEST_COUNT: usize = 200_000;

fn bits(point: &Point) -> Vec<Option<u64>> {
    point.iter().map(|place| place.map(f64::to_bits)).collect()
}
