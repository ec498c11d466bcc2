//! Converts points to features for the kernel, and features to valid points.

use crate::space::{Dimension, Point, Space};

/// The features of a point: for each dimension its position from 0 to 1, or the number of its choice.
pub(super) type Features = [f64];

/// The number of steps up to which all are tried. A dimension with more steps is treated as a line.
pub(super) const FEW_STEPS: usize = 16;

/// The way in which a dimension is compared and moved along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A line.
    Line,
    /// A line with few places.
    Few,
    /// A choice, whose values are equal or different.
    Choice,
}

impl Kind {
    /// Returns the squared distance of two places.
    pub(super) fn squared(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Line | Self::Few => (left - right) * (left - right),
            Self::Choice => f64::from(left != right),
        }
    }
}

pub(super) fn kinds(space: &Space) -> Vec<Kind> {
    let kind = |dimension: &Dimension| match dimension {
        Dimension::Real => Kind::Line,
        Dimension::Steps { positions } if positions.len() <= FEW_STEPS => Kind::Few,
        Dimension::Steps { .. } => Kind::Line,
        Dimension::Choices { .. } => Kind::Choice,
    };
    space.dimensions.iter().map(kind).collect()
}

/// Returns a point's features. An absent parameter is in the middle of its line, or a choice of its own.
pub(super) fn features(space: &Space, point: &Point) -> Vec<f64> {
    let feature = |(at, dimension): (usize, &Dimension)| match (dimension, point.get(at).copied().flatten()) {
        (Dimension::Real, place) => place.unwrap_or(0.5).clamp(0.0, 1.0),
        (Dimension::Steps { positions }, Some(index)) => positions.get(index as usize).copied().unwrap_or(0.5),
        (Dimension::Steps { .. }, None) => 0.5,
        (Dimension::Choices { .. }, Some(index)) => index,
        (Dimension::Choices { .. }, None) => -1.0,
    };
    space.dimensions.iter().enumerate().map(feature).collect()
}

/// Returns the nearest valid point: rounded, and without the parameters that its conditions exclude.
pub(super) fn point(space: &Space, features: &Features) -> Point {
    let place = |(dimension, feature): (&Dimension, &f64)| match dimension {
        Dimension::Real => feature.clamp(0.0, 1.0),
        Dimension::Steps { positions } => nearest(positions, *feature) as f64,
        Dimension::Choices { count } => feature.clamp(0.0, count.saturating_sub(1) as f64).floor(),
    };
    let whole = space.dimensions.iter().zip(features).map(|pair| Some(place(pair))).collect();
    without_absent(space, whole)
}

/// Returns a point from as many numbers from 0 to 1.
pub(super) fn drawn(space: &Space, numbers: &[f64]) -> Point {
    let place = |(dimension, number): (&Dimension, &f64)| match dimension {
        Dimension::Real => *number,
        Dimension::Steps { positions } => nearest(positions, widened(positions, *number)) as f64,
        Dimension::Choices { count } => (number * *count as f64).floor().clamp(0.0, count.saturating_sub(1) as f64),
    };
    let whole = space.dimensions.iter().zip(numbers).map(|pair| Some(place(pair))).collect();
    without_absent(space, whole)
}

/// Stretches a number from 0 to 1, so that the outermost steps have as wide a surrounding as the others.
fn widened(positions: &[f64], number: f64) -> f64 {
    let count = positions.len();
    if count < 2 {
        return number;
    }
    let low = 1.5 * positions[0] - 0.5 * positions[1];
    let high = 1.5 * positions[count - 1] - 0.5 * positions[count - 2];
    low + number * (high - low)
}

fn nearest(positions: &[f64], place: f64) -> usize {
    let above = positions.partition_point(|position| *position < place);
    match (above.checked_sub(1), positions.get(above)) {
        (Some(below), Some(position)) if place - positions[below] > position - place => above,
        (Some(below), _) => below,
        (None, _) => 0,
    }
}

/// Removes the parameters that the conditions exclude. It repeats this once for each dimension, because a parent may be
/// conditional itself and come later.
pub(super) fn without_absent(space: &Space, mut point: Point) -> Point {
    for _ in 0..space.dimensions.len() {
        let mut has_changed = false;
        for condition in &space.conditions {
            let holds = point
                .get(condition.parent)
                .copied()
                .flatten()
                .is_some_and(|index| condition.levels.contains(&(index as usize)));
            if !holds && point.get_mut(condition.dimension).and_then(Option::take).is_some() {
                has_changed = true;
            }
        }
        if !has_changed {
            break;
        }
    }
    point
}
