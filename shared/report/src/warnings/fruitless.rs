//! Warns if all trials that have ended have no usable result.

use crate::diagnosis::why;
use crate::page::cut;
use spotsweep_protocol::words::counted;
use spotsweep_ranking::peer::PeerEnd;
use spotsweep_records::sweep::Plan;
use spotsweep_records::trial::{Standing, Trial};
use spotsweep_search::suggest::Basis;

/// Fewest ended trials for the warning, because one failure may be chance.
const LEAST: usize = 2;

/// Most bytes of the first trial's reason.
const REASON_BYTES: usize = 100;

/// Returns the warning while no trial has a usable result. A search then has nothing to learn from.
pub(super) fn fruitless(plan: &Plan, trials: &[Trial]) -> Option<String> {
    let ended = || trials.iter().filter(|trial| is_result(plan, trial));
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

/// Whether the trial's end says something about its parameters. Every success does if the file names no metric.
fn is_result(plan: &Plan, trial: &Trial) -> bool {
    match PeerEnd::of(trial, plan.metric.as_ref()) {
        Some(PeerEnd::Finished(_) | PeerEnd::Stopped | PeerEnd::Failed) => true,
        Some(PeerEnd::Void) => false,
        None => trial.standing() == Standing::Succeeded,
    }
}

/// Whether a search can learn from the trial, because it has a result or a value at a rung.
fn is_usable(plan: &Plan, trial: &Trial) -> bool {
    let has_value = match PeerEnd::of(trial, plan.metric.as_ref()) {
        Some(PeerEnd::Finished(value)) => value.is_finite(),
        Some(PeerEnd::Stopped | PeerEnd::Failed | PeerEnd::Void) => false,
        None => trial.standing() == Standing::Succeeded,
    };
    has_value || !trial.rungs.is_empty()
}
