//! Minimises a smooth function in a box: L-BFGS, without the dimensions that a bound holds.

use super::linear::dot;

/// The number of past steps that shape the next one.
const MEMORY: usize = 8;

/// The share of the predicted decrease that a step has to reach.
const SUFFICIENT: f64 = 1e-4;

/// Minimises `function` from `start`. The function returns its value and its gradient.
pub(super) fn minimize(
    start: &[f64],
    bounds: &[(f64, f64)],
    most_steps: usize,
    mut function: impl FnMut(&[f64]) -> (f64, Vec<f64>),
) -> (Vec<f64>, f64) {
    let mut place = clamped(start, bounds);
    let (mut value, mut gradient) = function(&place);
    let mut past: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    for _ in 0..most_steps {
        let is_free: Vec<bool> = (0..place.len()).map(|at| !is_held(place[at], gradient[at], bounds[at])).collect();
        let mut direction = direction(&gradient, &past, &is_free);
        if dot(&direction, &gradient) >= 0.0 {
            past.clear();
            direction = steepest(&gradient, &is_free);
        }
        let Some(next) = search(&place, value, &gradient, &direction, bounds, past.is_empty(), &mut function) else {
            if past.is_empty() {
                break;
            }
            past.clear();
            continue;
        };
        let moved = difference(&next.place, &place);
        let turned = difference(&next.gradient, &gradient);
        let decrease = value - next.value;
        (place, value, gradient) = (next.place, next.value, next.gradient);
        if dot(&moved, &turned) > 1e-12 * dot(&turned, &turned) {
            past.push((moved, turned));
            if past.len() > MEMORY {
                past.remove(0);
            }
        }
        if decrease <= 1e-7 * (1.0 + value.abs()) {
            break;
        }
    }
    (place, value)
}

struct Step {
    place: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// Halves the step until the function decreases enough.
fn search(
    place: &[f64],
    value: f64,
    gradient: &[f64],
    direction: &[f64],
    bounds: &[(f64, f64)],
    is_first: bool,
    function: &mut impl FnMut(&[f64]) -> (f64, Vec<f64>),
) -> Option<Step> {
    let length = dot(direction, direction).sqrt();
    let mut size = if is_first { (0.3 / length.max(1e-12)).min(1.0) } else { 1.0 };
    for _ in 0..12 {
        let moved: Vec<f64> = place.iter().zip(direction).map(|(at, towards)| at + size * towards).collect();
        let next = clamped(&moved, bounds);
        let expected = dot(gradient, &difference(&next, place));
        if expected >= 0.0 {
            return None;
        }
        let (reached, slope) = function(&next);
        if reached <= value + SUFFICIENT * expected {
            return Some(Step { place: next, value: reached, gradient: slope });
        }
        size *= if reached.is_finite() { 0.4 } else { 0.1 };
    }
    None
}

fn direction(gradient: &[f64], past: &[(Vec<f64>, Vec<f64>)], is_free: &[bool]) -> Vec<f64> {
    let mut direction = steepest(gradient, is_free);
    let mut shares = Vec::with_capacity(past.len());
    for (moved, turned) in past.iter().rev() {
        let share = dot(moved, &direction) / dot(moved, turned);
        direction.iter_mut().zip(turned).for_each(|(at, turned)| *at -= share * turned);
        shares.push(share);
    }
    if let Some((moved, turned)) = past.last() {
        let scale = dot(moved, turned) / dot(turned, turned);
        direction.iter_mut().for_each(|at| *at *= scale);
    }
    for ((moved, turned), share) in past.iter().zip(shares.into_iter().rev()) {
        let back = dot(turned, &direction) / dot(moved, turned);
        direction.iter_mut().zip(moved).for_each(|(at, moved)| *at += (share - back) * moved);
    }
    direction.iter_mut().zip(is_free).filter(|(_, is_free)| !**is_free).for_each(|(at, _)| *at = 0.0);
    direction
}

fn steepest(gradient: &[f64], is_free: &[bool]) -> Vec<f64> {
    gradient.iter().zip(is_free).map(|(slope, is_free)| if *is_free { -slope } else { 0.0 }).collect()
}

/// Whether the position is at a bound and the descent leads out of the box.
fn is_held(at: f64, slope: f64, (least, most): (f64, f64)) -> bool {
    (at <= least && slope > 0.0) || (at >= most && slope < 0.0)
}

fn clamped(place: &[f64], bounds: &[(f64, f64)]) -> Vec<f64> {
    place.iter().zip(bounds).map(|(at, (least, most))| at.clamp(*least, *most)).collect()
}

fn difference(left: &[f64], right: &[f64]) -> Vec<f64> {
    left.iter().zip(right).map(|(left, right)| left - right).collect()
}
