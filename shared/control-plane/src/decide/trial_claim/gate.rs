//! The gate, with one rule for every kind of request.
//!
//! A request must have the claim token of its sweep and name the trial's own job. Every other request gets the same
//! refusal, which reveals nothing of what is stored. Then a request passes if the trial is open and the request is from
//! the attempt that holds the trial, with its number and its runner's secret. A claim passes if its attempt is newer
//! and can exist in the trial's job. Everything else is refused, with only what the request itself said, and changes
//! nothing. In particular no request changes a trial that has ended. A commit needs the version that was loaded, so an
//! invocation that still saw the trial open cannot change it either.
//!
//! A request that arrives after Batch's report of its attempt's end counts as lost, because the runner could have been
//! killed before it sent the request.

use crate::event::{Ask, TrialRequest};
use crate::store::View;
use spotsweep_protocol::ids::JobId;
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::sweep::{Plan, Stage, Sweep};
use spotsweep_records::trial::{JOB_ATTEMPTS, Trial};

/// How a request passes the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::decide) enum Passage {
    /// The request is decided.
    Free,
    /// The request is the last one of its attempt and was accepted before. It gets the same answer, and changes
    /// nothing.
    Repeated,
    /// The request claims a trial whose attempt has reported success. Batch most likely ends the trial after that, so
    /// the claim waits until Batch has reported the end of that attempt.
    Early,
}

/// A request that has passed: its sweep with the plan, and how it passed.
pub(in crate::decide) type Passed<'v> = (&'v Sweep, &'v Plan, Passage);

/// Returns how a request passes, or why it is refused.
pub(in crate::decide) fn check<'v>(view: &'v View, request: &TrialRequest) -> Result<Passed<'v>, StopReason> {
    // This comes before anything that is stored, so that the refusal reveals nothing.
    if request.secret.is_none() || request.token.is_none() {
        return Err(StopReason::NoSecret);
    }
    let (sweep, plan) = proven(view, request).ok_or(StopReason::Unproven)?;
    let held = view.trial.as_ref().map(|held| &held.record);
    Ok((sweep, plan, pass((sweep, plan), held, request)?))
}

/// Returns the sweep of a request, if the request has the claim token and names the trial's own job.
fn proven<'v>(view: &'v View, request: &TrialRequest) -> Option<(&'v Sweep, &'v Plan)> {
    let sweep = &view.sweep.as_ref()?.record;
    let plan = sweep.plan.as_ref().filter(|plan| request.index < plan.trials)?;
    let job = job_of(plan, view.trial.as_ref().map(|held| &held.record), request.index);
    let is_of_the_job = job.is_none_or(|known| known == request.job);
    (is_of_the_job && sweep.claim_token.is_some() && sweep.claim_token == request.token).then_some((sweep, plan))
}

fn pass((sweep, plan): (&Sweep, &Plan), held: Option<&Trial>, request: &TrialRequest) -> Result<Passage, StopReason> {
    let TrialRequest { attempt, secret, .. } = request;
    let attempt = *attempt;
    let fence = held.and_then(|trial| trial.claimed_by).unwrap_or(0);
    if attempt < fence {
        return Err(StopReason::Fenced { attempt });
    }
    let is_claimed = attempt == fence;
    let is_own = is_claimed && held.is_some_and(|trial| trial.secret == *secret);
    if is_own && held.is_some_and(|trial| has_left(trial, request)) {
        return Ok(Passage::Repeated);
    }
    if held.is_some_and(|trial| trial.ended >= attempt) {
        return Err(StopReason::AttemptEnded { attempt });
    }
    if held.is_some_and(Trial::is_over) || is_over(&sweep.stage) {
        return Err(StopReason::TrialEnded);
    }
    match (&request.ask, is_claimed) {
        (_, true) if is_own => Ok(Passage::Free),
        (_, true) => Err(StopReason::OtherRunner { attempt }),
        (Ask::Claim(_), false) => may_begin(plan, held, attempt).map(|()| waits_for(held)),
        (Ask::Access | Ask::Mounted { .. } | Ask::Notice(_) | Ask::Fetching(_) | Ask::Report { .. }, false) => {
            Err(StopReason::NotClaimed { attempt })
        }
    }
}

/// Returns the trial's job, if it is known.
fn job_of(plan: &Plan, held: Option<&Trial>, index: u32) -> Option<JobId> {
    match held {
        // The job may claim before its submission is recorded.
        Some(trial) if trial.resubmitting => None,
        Some(trial) if trial.round > 0 => Some(trial.job.clone()),
        Some(_) | None => plan.job_of(index),
    }
}

/// Whether the request is the attempt's release or end, and is recorded already. Each request of a runner has its own
/// number, and a repetition has the same one.
fn has_left(trial: &Trial, request: &TrialRequest) -> bool {
    let Ask::Report { sequence, ended: Some(_), .. } = &request.ask else { return false };
    trial.attempts.get(&request.attempt).and_then(|attempt| attempt.sequence) == Some(*sequence)
}

/// Whether the trial's job can have the attempt. It need not be the next one, because Batch's events about earlier
/// attempts may come later.
fn may_begin(plan: &Plan, held: Option<&Trial>, attempt: u32) -> Result<(), StopReason> {
    let earlier = held.map_or(0, |trial| trial.round).saturating_mul(JOB_ATTEMPTS);
    let last = earlier.saturating_add(u32::from(plan.attempts).clamp(1, JOB_ATTEMPTS));
    if (earlier.saturating_add(1)..=last).contains(&attempt) {
        return Ok(());
    }
    Err(StopReason::NotFound { what: format!("attempt {attempt} of the trial's job") })
}

/// Whether a claim has to wait for Batch, because an attempt after a success would replace its figures.
fn waits_for(held: Option<&Trial>) -> Passage {
    let end = held.and_then(|trial| trial.end.as_ref().filter(|end| end.exit_code == 0 && end.attempt > trial.ended));
    if end.is_some() { Passage::Early } else { Passage::Free }
}

/// Whether no trial of the sweep is open any more.
fn is_over(stage: &Stage) -> bool {
    match stage {
        Stage::Settled | Stage::Rejected => true,
        Stage::Reading
        | Stage::Keeping { .. }
        | Stage::Submitting { .. }
        | Stage::Announcing
        | Stage::Running
        | Stage::Settling
        | Stage::Withdrawing { .. } => false,
    }
}

#[cfg(test)]
mod tests;
