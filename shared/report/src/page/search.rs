//! The suggestions of a search, their results, and the course of the best value.

use std::collections::BTreeMap;

use super::MAX_ROWS;
use super::model::{BestSoFar, Prediction, Searched};
use spotsweep_ranking::sets::Set;
use spotsweep_ranking::{Score, ranked_value, score};
use spotsweep_records::sweep::{Plan, Ranking};
use spotsweep_records::trial::Trial;
use spotsweep_search::suggest::Basis;

/// Returns the page's data about the search; `None` if the sweep's parameters are not suggested. `sets` are those of a
/// sweep with repeats.
pub(super) fn searched(plan: &Plan, by: Option<&Ranking>, trials: &[Trial], sets: &[Set<'_>]) -> Option<Searched> {
    let by = by.filter(|_| plan.suggests)?;
    let of_set = |trial: &Trial| plan.repeats.as_ref().map(|repeats| repeats.set_of(trial.index.into()));
    let by_number: BTreeMap<u64, &Set<'_>> = sets.iter().map(|set| (set.number.into(), set)).collect();
    let predictions: Vec<Prediction> = trials
        .iter()
        .filter_map(|trial| {
            let set = of_set(trial).and_then(|number| by_number.get(&number).copied());
            prediction(by, trial, set)
        })
        .collect();
    let results = if plan.repeats.is_some() { results_of_sets(sets) } else { results_of_trials(by, trials) };
    let (ended, best) = best_so_far(by, trials, &results);
    let suggestions = predictions.len();
    Some(Searched { predictions: predictions.into_iter().take(MAX_ROWS).collect(), suggestions, ended, best })
}

/// Returns a trial's suggestion; `None` if the trial has the parameters of an earlier one of its set.
fn prediction(by: &Ranking, trial: &Trial, set: Option<&Set<'_>>) -> Option<Prediction> {
    let basis = trial.suggested.as_ref()?.basis?;
    let (basis, mean, deviation) = match basis {
        Basis::Initial => ("initial", None, None),
        Basis::Random => ("random", None, None),
        Basis::Model { mean, deviation } => ("model", Some(mean), Some(deviation)),
    };
    let so_far = match score(by, trial) {
        Score::Value(value) => Some(value),
        Score::Diverged | Score::Missing => None,
    };
    let (found, is_result) = match set {
        Some(set) => (set.mean.map(|mean| mean.mean), set.is_complete()),
        None => (so_far, ranked_value(by, trial).is_some()),
    };
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    Some(Prediction {
        index: trial.index,
        status: trial.standing(),
        basis,
        mean: finite(mean),
        deviation: finite(deviation),
        found,
        is_result,
    })
}

/// Metric value by trial index.
type Results = BTreeMap<u32, f64>;

fn results_of_trials(by: &Ranking, trials: &[Trial]) -> Results {
    trials.iter().filter_map(|trial| Some((trial.index, ranked_value(by, trial)?))).collect()
}

/// Returns the means of complete sets, by the trial that ended last.
fn results_of_sets(sets: &[Set<'_>]) -> Results {
    let result = |set: &Set<'_>| {
        let last = set.trials.iter().max_by_key(|trial| (trial.stopped_at(), trial.index))?;
        Some((last.index, set.mean?.mean))
    };
    sets.iter().filter(|set| set.is_complete()).filter_map(result).collect()
}

/// Returns how many trials have ended, and each trial whose result was better than all before it.
fn best_so_far(by: &Ranking, trials: &[Trial], results: &Results) -> (usize, Vec<BestSoFar>) {
    let over = trials.iter().filter(|trial| trial.is_over());
    let mut ended: Vec<(i64, u32)> =
        over.filter_map(|trial| Some((trial.stopped_at()?.as_millisecond(), trial.index))).collect();
    ended.sort_unstable();
    let mut best: Vec<BestSoFar> = Vec::new();
    for (ended, (at_ms, index)) in (1..).zip(&ended) {
        let Some(value) = results.get(index).copied() else { continue };
        if best.last().is_none_or(|before| by.cost(value) < by.cost(before.value)) {
            best.push(BestSoFar { index: *index, at_ms: *at_ms, ended, value });
        }
    }
    let surplus = best.len().saturating_sub(MAX_ROWS);
    best.drain(..surplus);
    (ended.len(), best)
}
