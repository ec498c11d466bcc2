//! Trials that have all ended without a usable result.

use super::super::diagnosis::why;
use super::super::ranking::{Score, score};
use super::super::report::cut;
use crate::sweep::Plan;
use crate::trial::{Standing, Trial};
use spotsweep_protocol::words::counted;
use spotsweep_search::suggest::Basis;

/// One failure may be chance.
const LEAST: usize = 2;

/// Bytes of the first one's reason.
const REASON_BYTES: usize = 100;

/// The warning, while no trial has a usable result. A search has nothing to learn from then.
pub(super) fn fruitless(plan: &Plan, trials: &[Trial]) -> Option<String> {
    let ended = || trials.iter().filter(|trial| is_result(trial));
    let (count, first) = (ended().count(), ended().next()?);
    if count < LEAST || trials.iter().any(|trial| is_usable(plan, trial)) {
        return None;
    }
    let failed = ended().filter(|trial| trial.standing() == Standing::Failed).count();
    let why = match first.standing() {
        Standing::Failed => format!("; trial {}: {}", first.index, cut(&why(first), REASON_BYTES)),
        Standing::Succeeded
        | Standing::Stopped
        | Standing::Cancelled
        | Standing::Waiting
        | Standing::Starting
        | Standing::Running => String::new(),
    };
    let those = counted(count, "trial");
    if plan.suggests {
        let metric = plan.metric.as_ref().map_or("", |by| by.name.as_str());
        let is_random = trials.iter().any(|trial| {
            trial.suggested.as_ref().and_then(|suggested| suggested.basis).is_some_and(|basis| basis == Basis::Random)
        });
        let how = if is_random { "chooses at random" } else { "covers the space evenly, and then goes on at random" };
        return Some(format!(
            "none of the {those} that have ended has a usable {metric}, {failed} failed: the search has nothing to \
             learn from and {how}{why}"
        ));
    }
    let has_begun = |trial: &Trial| !trial.is_over() && !trial.metrics.is_empty();
    let goes_on = count < plan.trials as usize && !trials.iter().any(has_begun);
    (failed == count && goes_on)
        .then(|| format!("all {those} that have ended failed; `spotsweep cancel` ends those that are to come{why}"))
}

/// Whether its end says something of its parameters.
fn is_result(trial: &Trial) -> bool {
    match trial.standing() {
        Standing::Succeeded => true,
        Standing::Failed => !trial.has_foreign_reason(),
        Standing::Stopped => trial.stopped.is_some(),
        Standing::Waiting | Standing::Starting | Standing::Running | Standing::Cancelled => false,
    }
}

/// Whether a search learns from the trial: it has a result, or a value at a rung. Without a metric of the file every
/// success is a result.
fn is_usable(plan: &Plan, trial: &Trial) -> bool {
    let is_value = plan.metric.as_ref().is_none_or(|by| match score(by, trial) {
        Score::Value(value) => value.is_finite(),
        Score::Diverged | Score::Missing => false,
    });
    (trial.standing() == Standing::Succeeded && is_value) || !trial.rungs.is_empty()
}
