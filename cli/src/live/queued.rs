//! Finds trials that wait for an instance.

use jiff::{SignedDuration, Timestamp};
use spotsweep_records::sweep::{Plan, Stage, Sweep};
use spotsweep_records::trial::{JobStatus, Trial};

/// A trial is RUNNABLE for so long until an instance arrives. Only a longer wait is reported.
pub(super) const USUAL_WAIT: SignedDuration = SignedDuration::from_secs(60);

/// Whether trials wait for so long that Batch is asked for the reason.
pub(super) fn is_long(sweep: &Sweep, trials: &[Trial], now: Timestamp) -> bool {
    let since = sweep.plan.as_ref().and_then(|plan| longest(sweep, plan, trials)).map(|(_, since)| since);
    sweep.stage == Stage::Running && since.is_some_and(|since| now.duration_since(since) > USUAL_WAIT / 2)
}

/// Number of trials that wait for an instance, and since when the first of them does.
pub(super) fn longest(sweep: &Sweep, plan: &Plan, trials: &[Trial]) -> Option<(usize, Timestamp)> {
    let waiting: Vec<&Trial> = trials.iter().filter(|trial| is_waiting(trial)).collect();
    let unseen = (plan.trials as usize).saturating_sub(trials.len());
    let since_upload = (unseen > 0).then_some(sweep.upload.uploaded_at);
    let since = waiting.iter().map(|trial| trial.stopped_at().unwrap_or(sweep.upload.uploaded_at));
    Some((waiting.len() + unseen, since.chain(since_upload).min()?))
}

/// Whether a trial waits for an instance.
pub(super) fn is_waiting(trial: &Trial) -> bool {
    matches!(trial.status, JobStatus::Submitted | JobStatus::Pending | JobStatus::Runnable)
}
