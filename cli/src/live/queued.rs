//! Trials that wait for an instance.

use jiff::{SignedDuration, Timestamp};
use spotsweep_records::sweep::{Plan, Stage, Sweep};
use spotsweep_records::trial::{JobStatus, Trial};

/// To be RUNNABLE for longer is worth a word: an instance takes that long to come.
pub(super) const USUAL_WAIT: SignedDuration = SignedDuration::from_secs(60);

/// Whether Batch is worth being asked why trials wait.
pub(super) fn is_long(sweep: &Sweep, trials: &[Trial], now: Timestamp) -> bool {
    let since = sweep.plan.as_ref().and_then(|plan| longest(sweep, plan, trials)).map(|(_, since)| since);
    sweep.stage == Stage::Running && since.is_some_and(|since| now.duration_since(since) > USUAL_WAIT / 2)
}

/// How many trials wait for an instance, and since when the first of them.
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
