//! What trials have taught, as a process that predicts.

use super::Trial;
use super::acquisition::Acquisition;
use super::encoding;
use super::gp::{self, Data, Process};
use super::outcomes::{Outcome, Scale};
use super::random::Random;
use crate::space::{Point, Space};

/// The most outcomes that are fitted: the time grows with their cube.
const MOST_OUTCOMES: usize = 250;

/// The most outcomes that the kernel is fitted to. The process knows all.
const MOST_FITTED: usize = 80;

/// The most pending trials that are believed to end as predicted.
const MOST_PENDING: usize = 100;

/// An improvement that is large, on the model's scale: its unit is about what the better half of the trials differ by.
/// If any improvement would do for all trials, the last digits of the first good place would take most of them.
const LARGE_GAIN: f64 = 0.4;

/// The variance of a failure's outcome: it may have had other reasons than the parameters.
const FAILURE: f64 = 0.3;

/// A process with the scale of its outcomes.
#[derive(Debug)]
pub(super) struct Model {
    process: Process,
    /// The best outcome, without its noise.
    best: f64,
    /// The mean doubt of what is known.
    doubt: f64,
    /// Features of the best trials, the best first.
    pub(super) leaders: Vec<Vec<f64>>,
    scale: Scale,
}

/// A trial as the process sees it.
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
        // The best is that without its noise, and may be an estimate. If a certain outcome were to be beaten, a trial
        // that stopped with a good estimate would be made again and again.
        let best = process.smoothed().into_iter().reduce(f64::min)?;
        let process = process.believing(pending)?;
        Some(Self { process, best, doubt, leaders, scale })
    }

    /// Believes that one more trial ends as predicted.
    pub(super) fn believing(self, space: &Space, point: &Point) -> Option<Self> {
        let process = self.process.believing(vec![encoding::features(space, point)])?;
        Some(Self { process, ..self })
    }

    /// What points are worth to a trial. Every other trial looks for a large improvement.
    pub(super) fn acquisition(&self, index: u32) -> Acquisition<'_> {
        let gain = if index.is_multiple_of(2) { LARGE_GAIN } else { 0.0 };
        Acquisition { process: &self.process, best: self.best - gain, doubt: self.doubt }
    }

    /// The predicted cost of a point and its standard deviation.
    pub(super) fn prediction(&self, features: &[f64]) -> (f64, f64) {
        let prediction = self.process.predict(features);
        let deviation = prediction.variance.sqrt();
        let (low, high) = (prediction.mean - deviation, prediction.mean + deviation);
        (self.scale.cost(prediction.mean), (self.scale.cost(high) - self.scale.cost(low)) / 2.0)
    }
}

/// How many of the best trials are worth a look around.
const LEADERS: usize = 5;

/// Of ascending outcomes the better ones, and an even choice of the others.
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

/// A random part of what is known, another one after each outcome. One fit that is sure of a wrong kernel would go on for
/// the rest of the sweep; those of many parts differ. Trials that are claimed at the same time have the same part.
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
