//! Early stopping: a trial is compared with the others when a report reaches a rung, and when it is interrupted.
//!
//! The store keeps the rungs of each trial in a small row. A decision depends only on these rows and on the trial's own
//! record, in whatever order they were written.

use super::{Context, Decision, workspace};
use crate::command::Command;
use crate::event::{Ask, Ending, TrialRequest};
use crate::input::Followup;
use crate::store::{Versioned, View};
use spotsweep_protocol::rungs::Curve;
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::sweep::{Plan, Sweep};
use spotsweep_records::trial::{JobStatus, Observation, Trial};
use spotsweep_records::workspace::Fact;

/// Whether a request needs the other trials' rungs in the view, because it reaches a rung or comes between an
/// interruption and the next attempt.
pub(super) fn needs_peers(plan: &Plan, held: Option<&Trial>, request: &TrialRequest) -> bool {
    let (Some((by, _)), Some(trial)) = (plan.comparison(), held) else { return false };
    let is_open = trial.stopped.is_none();
    let has_rungs = !trial.rungs.is_empty();
    match &request.ask {
        Ask::Claim(_) => is_open && has_rungs && trial.claimed_by != Some(request.attempt),
        Ask::Report { ended: None, rungs, .. } => trial.is_to_be_compared(by, trial.trained(request.attempt, rungs)),
        Ask::Report { ended: Some(Ending::Released { .. }), rungs, .. } => {
            is_open && (has_rungs || !trial.trained(request.attempt, rungs).is_empty())
        }
        Ask::Report { ended: Some(Ending::Finished { .. }), .. }
        | Ask::Access
        | Ask::Mounted { .. }
        | Ask::Notice(_)
        | Ask::Fetching(_) => false,
    }
}

/// Compares the trial, if the view has the other trials' rungs. Returns the result for the trial's history.
pub(super) fn compare(view: &View, plan: &Plan, trial: &mut Trial, is_interrupted: bool) -> Option<String> {
    let ((by, metric), peers) = (plan.comparison()?, view.peers.as_ref()?);
    let index = trial.index;
    let set = |index: u32| plan.repeats.as_ref().map(|repeats| repeats.set_of(index.into()));
    // A trial is not compared with trials of its own set.
    let is_other = |other: u32| other != index && (plan.repeats.is_none() || set(other) != set(index));
    let others = peers.iter().filter(|(other, _)| is_other(**other));
    let others: Vec<Curve> = others.map(|(_, peer)| metric.costs(&peer.rungs)).collect();
    let decided = trial.compare((by, metric), &others);
    if is_interrupted {
        trial.compare_interrupted((by, metric), &others);
    }
    let goes_on = || {
        let (rung, comparison) = decided.last()?;
        Some(format!("goes on: at rung {rung} it has {comparison}"))
    };
    trial.stopped.map(|stop| format!("is {stop}")).or_else(goes_on)
}

/// Returns the followup if Batch is about to start an interrupted trial again. It terminates a trial that is stopped
/// early, and compares the others.
pub(super) fn followup(plan: &Plan, trial: &Trial, seen: &Observation) -> Option<Followup> {
    let waits = !trial.is_over() && !trial.resubmitting && seen.status < JobStatus::Starting;
    let was_interrupted = trial.was_interrupted(trial.ended);
    let is_compared = plan.comparison().is_some() && (trial.stopped.is_some() || !trial.rungs.is_empty());
    (waits && was_interrupted && is_compared).then(|| Followup::Interrupted(trial.of()))
}

/// Compares an interrupted trial that waits for its next attempt, and terminates its job if it is stopped.
pub(super) fn interrupted(view: &View, context: Context<'_>) -> Decision {
    let (Some(Versioned { record: sweep @ Sweep { plan: Some(plan), .. }, .. }), Some(held)) =
        (&view.sweep, &view.trial)
    else {
        return Decision::ignore("no such trial here");
    };
    let held = &held.record;
    if held.is_over() || held.status >= JobStatus::Starting || held.resubmitting {
        return Decision::ignore("the trial does not wait for an attempt any more");
    }
    let mut trial = held.clone();
    let compared = compare(view, plan, &mut trial, true);
    let Some(stop) = trial.stopped else {
        return Decision::ignore("it goes on from its checkpoint");
    };
    let terminate = Command::TerminateJobs {
        sweep: trial.sweep.clone(),
        jobs: vec![trial.job.to_string()],
        reason: StopReason::StoppedEarly { rung: stop.rung },
    };
    if trial == *held {
        return Decision::advance("stopped early, no further attempt is to start").then(terminate);
    }
    let calls = workspace::apply(&mut trial, plan, &Fact::Due, context);
    workspace::changed(sweep, Some(held), trial, compared.unwrap_or_default(), context).then_all(calls).then(terminate)
}

#[cfg(test)]
mod tests;
