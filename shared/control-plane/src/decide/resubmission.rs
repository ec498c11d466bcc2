//! Submits an interrupted trial as a job of its own, once Batch has made all attempts that one job can have.
//!
//! The trial is submitted like a part (see `sweep_upload.rs`). The round is committed first, with a lease, and only the
//! invocation that committed it submits. An invocation that takes over looks the job up by its name.

use super::{Context, Decision, submission, workspace};
use crate::command::Command;
use crate::store::{Versioned, View};
use spotsweep_protocol::ids::{JobId, JobName, Run};
use spotsweep_protocol::stop::StopReason;
use spotsweep_protocol::words::counted;
use spotsweep_records::sweep::{Plan, Sweep};
use spotsweep_records::trial::{JobStatus, Observation, Trial};

/// Whether the trial has to be submitted again.
pub(super) fn is_due(trial: &Trial, seen: &Observation, sweep: &Sweep, plan: &Plan) -> bool {
    let is_worn_out = trial.is_worn_out(plan.attempts.into());
    let goes_on = is_worn_out && !seen.was_stopped && trial.tried() < usize::from(plan.attempts);
    goes_on && sweep.stopped.is_none() && trial.stopped.is_none() && trial.cancelled_by().is_none()
}

/// Enters the next round, which opens the trial again.
pub(super) fn enter(trial: &mut Trial) {
    trial.round += 1;
    trial.resubmitting = true;
    trial.status = JobStatus::Submitted;
    trial.reason = None;
}

/// Returns the submission of the trial's round.
pub(super) fn submit(sweep: &Sweep, trial: &Trial, context: Context<'_>) -> Option<Command> {
    submission::of(sweep, run(trial), trial.tried(), context).map(Command::SubmitPart)
}

/// Returns the repeatable form of the submission.
pub(super) fn find(sweep: &Sweep, plan: &Plan, trial: &Trial) -> Command {
    Command::FindPart { name: JobName { sweep: sweep.id.clone(), run: run(trial) }, queue: plan.queue.clone() }
}

fn run(trial: &Trial) -> Run {
    Run::Again { index: trial.index, round: trial.round }
}

pub(super) fn submitted(view: &View, round: u32, job: &str, context: Context<'_>) -> Decision {
    resubmitting(view, round, |sweep, held| {
        let mut trial = held.clone();
        trial.resubmitting = false;
        trial.job = JobId::from(job.to_owned());
        let what = format!("submitted again as {job}, after {}", counted(trial.ended, "attempt"));
        workspace::changed(sweep, Some(held), trial, what, context)
    })
}

pub(super) fn not_found(view: &View, round: u32, context: Context<'_>) -> Decision {
    resubmitting(view, round, |sweep, held| {
        let Some(submit) = submit(sweep, held, context) else {
            return Decision::illegal("the sweep has no plan");
        };
        Decision::advance("submitting again").trial(held.clone(), context.lease_ends()).then(submit)
    })
}

pub(super) fn refused(view: &View, round: u32, message: &str, context: Context<'_>) -> Decision {
    resubmitting(view, round, |sweep, held| {
        let mut trial = held.clone();
        trial.resubmitting = false;
        let reason = StopReason::Resubmission { attempts: trial.ended, cause: message.to_owned() };
        trial.fail(reason.clone());
        workspace::changed(sweep, Some(held), trial, reason.to_string(), context)
    })
}

fn resubmitting(view: &View, round: u32, then: impl FnOnce(&Sweep, &Trial) -> Decision) -> Decision {
    match (&view.sweep, &view.trial) {
        (Some(Versioned { record: sweep, .. }), Some(Versioned { record: trial, .. }))
            if trial.resubmitting && trial.round == round =>
        {
            then(sweep, trial)
        }
        (Some(_), Some(_)) => Decision::ignore(format!("round {round} is done")),
        _ => Decision::illegal("an outcome for a trial that is not stored"),
    }
}
