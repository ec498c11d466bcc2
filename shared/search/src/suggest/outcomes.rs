//! Converts each trial's result into one number, on a scale that the model can use.

use std::collections::BTreeSet;

use statrs::distribution::{ContinuousCDF as _, Normal};

use super::{End, Trial};
use crate::curve::Curve;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Outcome {
    /// A cost, with its variance if it is an estimate.
    Cost { cost: f64, doubt: f64 },
    /// The trial failed or diverged, which counts as the worst cost.
    Bad,
}

impl Outcome {
    /// Returns its cost, if it is usable.
    pub(super) fn cost(&self) -> Option<f64> {
        match self {
            Self::Cost { cost, .. } => Some(*cost),
            Self::Bad => None,
        }
    }
}

/// Returns the outcomes of trials; `None` for those without information so far.
pub(super) fn outcomes(trials: &[&Trial]) -> Vec<Option<Outcome>> {
    let forecast = Forecast::new(trials);
    trials
        .iter()
        .map(|trial| match trial.end {
            Some(End::Finished(cost)) if cost.is_finite() => Some(Outcome::Cost { cost: bounded(cost), doubt: 0.0 }),
            Some(End::Finished(_) | End::Failed) => Some(Outcome::Bad),
            Some(End::Stopped) | None => forecast.cost(&trial.rungs).map(|(cost, doubt)| Outcome::Cost { cost, doubt }),
        })
        .collect()
}

/// Predicts the final cost of trials that have not finished: a line leads from each rung to the next one, and from the
/// last one to the end. A line is fitted to the trials that have both.
#[derive(Debug)]
struct Forecast(Vec<(u64, Line)>);

#[derive(Debug, Clone, Copy)]
struct Line {
    from: f64,
    to: f64,
    slope: f64,
    /// The variance about the line.
    doubt: f64,
}

impl Forecast {
    fn new(trials: &[&Trial]) -> Self {
        let steps: BTreeSet<u64> = trials.iter().flat_map(|trial| trial.rungs.keys().copied()).collect();
        let steps: Vec<u64> = steps.into_iter().collect();
        let line = |(at, step): (usize, &u64)| {
            let next = steps.get(at + 1);
            let pair = |trial: &&Trial| {
                let from = bounded(trial.rungs.get(step)?.best);
                let to = match (next, trial.end) {
                    (Some(next), _) => bounded(trial.rungs.get(next)?.best),
                    (None, Some(End::Finished(cost))) => bounded(cost),
                    (None, _) => return None,
                };
                (from.is_finite() && to.is_finite()).then_some((from, to))
            };
            let all =
                trials.iter().filter_map(|trial| Some(trial.rungs.get(step)?.best)).filter(|best| best.is_finite());
            let pairs: Vec<(f64, f64)> = trials.iter().filter_map(pair).collect();
            (*step, Line::through(&pairs, variance(&all.collect::<Vec<_>>())))
        };
        Self(steps.iter().enumerate().map(line).collect())
    }

    /// Returns the predicted final cost of a trial from the rungs that it has reached, with its variance.
    fn cost(&self, rungs: &Curve) -> Option<(f64, f64)> {
        let (step, reached) = rungs.iter().rev().find(|(_, rung)| rung.best.is_finite())?;
        let ahead = self.0.iter().filter(|(at, _)| at >= step);
        Some(ahead.fold((bounded(reached.best), 0.0), |(cost, doubt), (_, line)| {
            (line.at(cost).min(cost), line.slope * line.slope * doubt + line.doubt)
        }))
    }
}

impl Line {
    /// Fits a line. Few pairs determine the slope badly, so it is drawn towards 1, which is a gain that all have in
    /// common.
    fn through(pairs: &[(f64, f64)], variance: f64) -> Self {
        let count = pairs.len().max(1) as f64;
        let from = pairs.iter().map(|pair| pair.0).sum::<f64>() / count;
        let to = pairs.iter().map(|pair| pair.1).sum::<f64>() / count;
        let spread: f64 = pairs.iter().map(|pair| (pair.0 - from).powi(2)).sum();
        let joint: f64 = pairs.iter().map(|pair| (pair.0 - from) * (pair.1 - to)).sum();
        let pull = spread / count;
        let slope = if spread > 0.0 { ((joint + pull) / (spread + pull)).clamp(0.0, 2.0) } else { 1.0 };
        let left: f64 = pairs.iter().map(|pair| (pair.1 - to - slope * (pair.0 - from)).powi(2)).sum();
        let doubt = (left + 0.3 * variance) / (pairs.len() as f64 + 1.0);
        Self { from, to, slope, doubt }
    }

    fn at(self, cost: f64) -> f64 {
        self.to + self.slope * (cost - self.from)
    }
}

/// Bounds a cost, because the square of a larger number is not finite.
fn bounded(cost: f64) -> f64 {
    if cost.is_finite() { cost.clamp(-1e150, 1e150) } else { cost }
}

fn variance(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count
}

/// The scale from costs to the model's numbers and back. Better costs keep their distances; worse costs keep only their
/// order.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    /// Ascending costs, each with its number on the scale.
    knots: Vec<(f64, f64)>,
    unit: f64,
}

impl Scale {
    /// Makes the scale of the known costs; `None` without any.
    pub(super) fn new(mut costs: Vec<f64>) -> Option<Self> {
        costs.sort_by(f64::total_cmp);
        let count = costs.len();
        let place = count.checked_sub(1)? / 2;
        let middle = costs[place];
        let normal = Normal::standard();
        let expected = |rank: usize| normal.inverse_cdf((rank as f64 + 0.5) / count as f64);
        let (mut actual, mut ideal) = (0.0, 0.0);
        for (rank, cost) in costs[..place].iter().enumerate() {
            actual += (middle - cost).powi(2);
            ideal += (expected(place) - expected(rank)).powi(2);
        }
        let unit = if actual > 0.0 && ideal > 0.0 { (actual / ideal).sqrt() } else { 1.0 };
        let scaled = |(rank, cost): (usize, f64)| match rank <= place {
            true => (cost, expected(place) + (cost - middle) / unit),
            false => (cost, expected(rank)),
        };
        let mut knots: Vec<(f64, f64)> = costs.iter().copied().enumerate().map(scaled).collect();
        knots.dedup_by_key(|knot| knot.0);
        Some(Self { knots, unit })
    }

    /// Returns the variance of a cost on the model's scale.
    pub(super) fn scaled_variance(&self, cost: f64, variance: f64) -> f64 {
        let deviation = variance.sqrt();
        let most = self.knots.last().map_or(cost, |knot| knot.0);
        ((self.scaled((cost + deviation).min(most)) - self.scaled(cost - deviation)) / 2.0).powi(2)
    }

    /// Returns a cost on the model's scale.
    pub(super) fn scaled(&self, cost: f64) -> f64 {
        interpolate(self.knots.iter().copied(), cost, self.unit.recip())
    }

    /// Returns a number on the model's scale that is as bad as the worst cost, and worse than the middle.
    pub(super) fn bad(&self) -> f64 {
        self.knots.last().map_or(1.0, |knot| knot.1.max(1.0))
    }

    /// Returns the cost of a number on the model's scale.
    pub(super) fn cost(&self, scaled: f64) -> f64 {
        interpolate(self.knots.iter().map(|(cost, scaled)| (*scaled, *cost)), scaled, self.unit)
    }
}

/// Interpolates linearly between knots, and continues with the given slope beyond them.
fn interpolate(knots: impl Iterator<Item = (f64, f64)>, at: f64, slope: f64) -> f64 {
    let mut before: Option<(f64, f64)> = None;
    for (place, value) in knots {
        if at <= place {
            return match before {
                None => value + (at - place) * slope,
                Some((from, low)) => low + (value - low) * (at - from) / (place - from),
            };
        }
        before = Some((place, value));
    }
    before.map_or(at, |(place, value)| value + (at - place) * slope)
}
