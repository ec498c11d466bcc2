//! A model of the trials' outcomes that predicts the cost of any point.

use super::Trial;
use super::acquisition::Acquisition;
use super::encoding;
use super::gp::{self, Data, Process};
use super::outcomes::{Outcome, Scale};
use super::random::Random;
use crate::space::{Point, Space};

/// The most outcomes in the process, because the time grows with their cube.
const MOST_OUTCOMES: usize = 250;

/// The most outcomes that the kernel is fitted to. The process has all of them.
const MOST_FITTED: usize = 80;

/// The most pending trials that are added as if they ended as predicted.
const MOST_PENDING: usize = 100;

/// A large improvement on the model's scale, whose unit is about the spread of the better half of the trials. If every
/// trial accepted any improvement, most of them would refine the last digits of the first good place.
const LARGE_GAIN: f64 = 0.4;

/// The variance of a failure's outcome, because a failure may have other reasons than the parameters.
const FAILURE: f64 = 0.3;

/// A process, with the scale of its outcomes.
#[derive(Debug)]
pub(super) struct Model {
    process: Process,
    /// The best outcome without its noise.
    best: f64,
    /// The mean doubt of the known outcomes.
    doubt: f64,
    /// The features of the best trials, the best first.
    pub(super) leaders: Vec<Vec<f64>>,
    scale: Scale,
}

/// The features and the outcome of a trial, on the model's scale.
struct Observed {
    features: Vec<f64>,
    outcome: f64,
    doubt: f64,
}

impl Model {
    /// Fits a process; `None` without a usable outcome.
    pub(super) fn new(space: &Space, trials: &[&Trial], outcomes: &[Option<Outcome>], seed: [u8; 32]) -> Option<Self> {
        let costs = outcomes.iter().flatten().filter_map(|outcome| outcome.cost()).collect();
        let scale = Scale::new(costs)?;
        let (mut observed, mut pending) = (Vec::new(), Vec::new());
        for (trial, outcome) in trials.iter().zip(outcomes) {
            let features = encoding::features(space, &trial.point);
            match outcome {
                None if trial.end.is_none() => pending.push(features),
                None => {}
                Some(Outcome::Bad) => observed.push(Observed { features, outcome: scale.bad(), doubt: FAILURE }),
                Some(Outcome::Cost { cost, doubt }) => {
                    let doubt = scale.scaled_variance(*cost, *doubt).min(1.0);
                    observed.push(Observed { features, outcome: scale.scaled(*cost), doubt });
                }
            }
        }
        observed.sort_by(|left, right| left.outcome.total_cmp(&right.outcome));
        let leaders = observed.iter().take(LEADERS).map(|one| one.features.clone()).collect();
        let mut data = Data { kinds: encoding::kinds(space), ..Data::default() };
        for one in thinned(observed) {
            data.points.push(one.features);
            data.outcomes.push(one.outcome);
            data.doubts.push(one.doubt);
        }
        let pending = pending.split_off(pending.len().saturating_sub(MOST_PENDING));
        let doubt = data.doubts.iter().sum::<f64>() / data.doubts.len() as f64;
        let process = Process::new(gp::fit(&sample(&data, seed)), data)?;
        // The best outcome is taken without its noise, and may be an estimate. If only a certain outcome counted, a
        // trial that stopped with a good estimate would be suggested repeatedly.
        let best = process.smoothed().into_iter().reduce(f64::min)?;
        let process = process.with_predicted(pending)?;
        Some(Self { process, best, doubt, leaders, scale })
    }

    /// Adds one more trial as if it ended as predicted.
    pub(super) fn with_predicted(self, space: &Space, point: &Point) -> Option<Self> {
        let process = self.process.with_predicted(vec![encoding::features(space, point)])?;
        Some(Self { process, ..self })
    }

    /// Returns the acquisition function for a trial. Every other trial looks for a large improvement.
    pub(super) fn acquisition(&self, index: u32) -> Acquisition<'_> {
        let gain = if index.is_multiple_of(2) { LARGE_GAIN } else { 0.0 };
        Acquisition { process: &self.process, best: self.best - gain, doubt: self.doubt }
    }

    /// Returns the predicted cost of a point and its standard deviation.
    pub(super) fn prediction(&self, features: &[f64]) -> (f64, f64) {
        let prediction = self.process.predict(features);
        let deviation = prediction.variance.sqrt();
        let (low, high) = (prediction.mean - deviation, prediction.mean + deviation);
        (self.scale.cost(prediction.mean), (self.scale.cost(high) - self.scale.cost(low)) / 2.0)
    }
}

/// The number of best trials near which candidates are drawn.
const LEADERS: usize = 5;

/// Returns the better ones of ascending outcomes, and an even selection of the others.
fn thinned(mut observed: Vec<Observed>) -> Vec<Observed> {
    if observed.len() <= MOST_OUTCOMES {
        return observed;
    }
    let worse = observed.split_off(MOST_OUTCOMES / 2);
    let (count, wanted) = (worse.len(), MOST_OUTCOMES - MOST_OUTCOMES / 2);
    let chosen = |at: &usize| (at + 1) * wanted / count > at * wanted / count;
    observed.extend(worse.into_iter().enumerate().filter(|(at, _)| chosen(at)).map(|(_, one)| one));
    observed
}

/// Returns a random part of the known outcomes, a different one after each outcome. A fit that is certain of a wrong
/// kernel would last for the rest of the sweep, but the fits of many parts differ. Trials that are claimed at the same
/// time have the same part.
fn sample(data: &Data, seed: [u8; 32]) -> Data {
    let count = data.points.len();
    let mut random = Random::of_model(seed, count);
    let mut part = Data { kinds: data.kinds.clone(), ..Data::default() };
    let mut wanted = MOST_FITTED.min(count);
    for at in 0..count {
        if random.below(count - at) < wanted {
            wanted -= 1;
            part.points.push(data.points[at].clone());
            part.outcomes.push(data.outcomes[at]);
            part.doubts.push(data.doubts[at]);
        }
    }
    part
}
