//! The best trial, and the order of all trials.

use crate::score::order;
use crate::score::{Score, ranked_value, score};
use crate::sets::{Mean, Set, sets};
use spotsweep_protocol::words::figure;
use spotsweep_records::sweep::{Over, Plan, Ranking};
use spotsweep_records::trial::{Standing, Trial};
use spotsweep_search::stop::lies_apart;

/// The metrics that rank a sweep whose file names none: the first one that any trial has reported. The names are those
/// of Keras, and the second value is whether larger is better.
const ASSUMED_METRICS: [(&str, bool); 4] =
    [("val_accuracy", true), ("accuracy", true), ("val_loss", false), ("loss", false)];

/// Returns the metric that ranks the trials: that of the sweep file, or else one of the usual names.
pub fn ranking(plan: &Plan, trials: &[Trial]) -> Option<Ranking> {
    let reported = |name: &str| trials.iter().any(|trial| trial.metrics.contains_key(name));
    let assumed = || ASSUMED_METRICS.iter().find(|(name, _)| reported(name));
    let by = |(name, maximize): &(&str, bool)| Ranking {
        name: (*name).to_owned(),
        maximize: *maximize,
        over: Over::default(),
    };
    plan.metric.clone().or_else(|| assumed().map(by))
}

/// A trial with its rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked<'a> {
    /// The trial.
    pub trial: &'a Trial,
    /// The rank from 1, or the rank of the trial's set where the sweep has repeats; absent for a trial without one.
    pub rank: Option<usize>,
}

/// The best trial, with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Best<'a> {
    /// The metric that ranks.
    pub by: Ranking,
    /// The best trial.
    pub trial: &'a Trial,
    /// Its value of the metric.
    pub value: f64,
    /// Its parameter set with the set's mean, where the sweep has repeats.
    pub set: Option<(Set<'a>, Mean)>,
}

/// Returns all trials from best to worst. Those of one parameter set are together, where the sweep has repeats.
pub fn ranked<'a>(plan: &Plan, trials: &'a [Trial]) -> Vec<Ranked<'a>> {
    let by = ranking(plan, trials);
    if let Some(repeats) = &plan.repeats {
        let sets = sets(by.as_ref(), repeats, trials);
        let of_set = |(rank, set): (usize, Set<'a>)| {
            let rank = set.is_complete().then_some(rank);
            set.trials.into_iter().map(move |trial| Ranked { trial, rank })
        };
        return (1..).zip(sets).flat_map(of_set).collect();
    }
    let mut ordered: Vec<&Trial> = trials.iter().collect();
    ordered.sort_by(|left, right| order(by.as_ref(), left, right));
    let has_rank = |trial: &Trial| by.as_ref().is_some_and(|by| ranked_value(by, trial).is_some());
    let place = |(rank, trial)| Ranked { trial, rank: has_rank(trial).then_some(rank) };
    (1..).zip(ordered).map(place).collect()
}

/// Returns the best trial; `None` where no trial has a rank.
pub fn best<'a>(plan: &Plan, trials: &'a [Trial]) -> Option<Best<'a>> {
    let by = ranking(plan, trials)?;
    let (trial, set) = match &plan.repeats {
        Some(repeats) => {
            let set = sets(Some(&by), repeats, trials).into_iter().next().filter(Set::is_complete)?;
            (*set.trials.first()?, set.mean.map(|mean| (set, mean)))
        }
        None => (trials.iter().min_by(|left, right| order(Some(&by), left, right))?, None),
    };
    let value = ranked_value(&by, trial)?;
    Some(Best { by, trial, value, set })
}

/// Returns the best trial so far, if it still trains: its value is better than those of all others, including trials
/// that have succeeded. It is `None` for a sweep with repeats, because there the sets have the ranks.
pub fn leader<'a>(plan: &Plan, trials: &'a [Trial]) -> Option<Best<'a>> {
    let by = ranking(plan, trials).filter(|_| plan.repeats.is_none())?;
    let values = trials.iter().filter_map(|trial| Some((trial, value_so_far(&by, trial)?)));
    let (trial, value) = values.min_by(|(_, one), (_, other)| by.cost(*one).total_cmp(&by.cost(*other)))?;
    (trial.standing() != Standing::Succeeded).then_some(Best { by, trial, value, set: None })
}

/// Returns which trial has reached the sweep's target, and with which value. It is `None` where none has, or the sweep
/// has no target. Where the sweep has repeats, the mean of a set has to reach it, over a value of each of its trials.
///
/// Only trials count that have trained and may still succeed. A value does not count if it [`lies_apart`] from the
/// target and from the values of all other trials.
pub fn reached_target(plan: &Plan, trials: &[Trial]) -> Option<String> {
    let (by, target) = plan.metric.as_ref().zip(plan.target)?;
    let has_reached = |value: f64| by.cost(value) <= by.cost(target);
    let values: Vec<(u32, f64)> =
        trials.iter().filter_map(|trial| Some((trial.index, value_so_far(by, trial)?))).collect();
    let is_odd = |index: u32, value: f64| {
        let others = values.iter().filter(|(other, _)| *other != index).map(|(_, value)| *value);
        lies_apart(by.cost(value), &others.chain([target]).map(|value| by.cost(value)).collect::<Vec<f64>>())
    };
    let Some(repeats) = &plan.repeats else {
        let (index, value) = values.iter().find(|(index, value)| has_reached(*value) && !is_odd(*index, *value))?;
        return Some(format!("trial {index} has {} {}", by.name, figure(*value)));
    };
    sets(Some(by), repeats, trials).into_iter().find_map(|set| {
        let values = set.trials.iter().filter_map(|trial| Some((trial.index, value_so_far(by, trial)?)));
        let values: Vec<f64> =
            values.filter(|(index, value)| !is_odd(*index, *value)).map(|(_, value)| value).collect();
        let mean = Mean::of(&values).filter(|mean| mean.results == set.lacks.of && has_reached(mean.mean))?;
        Some(format!("the parameter set of trial {} has {} {mean}", set.number, by.name))
    })
}

/// Whether the trial's own value reaches the sweep's target. If a set reaches the target, at least one of its trials
/// does.
pub fn reaches_target(plan: &Plan, trial: &Trial) -> bool {
    let reaches = |(by, target): (&Ranking, f64)| Some(by.cost(value_so_far(by, trial)?) <= by.cost(target));
    plan.metric.as_ref().zip(plan.target).and_then(reaches).unwrap_or(false)
}

/// Returns the value of a trial that has succeeded or may still do so. A trial's figures must not decide about others
/// before Batch has reported the start of the attempt that has claimed it, so it has no value until then.
pub fn value_so_far(by: &Ranking, trial: &Trial) -> Option<f64> {
    let counts = match trial.standing() {
        Standing::Succeeded => true,
        Standing::Waiting | Standing::Starting | Standing::Running => {
            trial.claimed_by.is_some_and(|attempt| trial.has_started(attempt))
        }
        Standing::Failed | Standing::Cancelled | Standing::Stopped => false,
    };
    match score(by, trial) {
        Score::Value(value) if counts => Some(value),
        Score::Value(_) | Score::Diverged | Score::Missing => None,
    }
}

#[cfg(test)]
mod tests;
