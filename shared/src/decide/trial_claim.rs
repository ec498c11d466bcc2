//! What an attempt may have and may say. The attempt number fences: once a newer attempt has
//! claimed, or Batch has reported the end of an attempt, the older one is refused.

use super::{Context, Decision};
use crate::claim::{ByteRange, Grant, Metric, Outputs, Prefix, Reply};
use crate::command::Command;
use crate::event::{Ask, TrialRequest};
use crate::store::{Held, View};
use crate::trial::{Attempt, End, Trial};
use std::collections::BTreeMap;

pub(super) fn requested(view: &View, request: &TrialRequest, context: Context<'_>) -> Decision {
    let Some(Held { record: sweep, .. }) = &view.sweep else {
        return refuse(format!("there is no sweep {}", request.sweep));
    };
    let Some(plan) = sweep.plan.as_ref().filter(|plan| request.index < plan.trials) else {
        return refuse(format!("sweep {} has no trial {}", request.sweep, request.index));
    };
    if let Some(known) = plan.job_of(request.index).filter(|known| *known != request.job) {
        return refuse(format!("job {} is not the trial's, {known} is", request.job));
    }
    let held = view.trial.as_ref().map(|held| &held.record);
    let fence = held.and_then(|trial| trial.claimed_by).unwrap_or(0);
    if request.attempt < fence {
        return refuse(format!("attempt {} is over, attempt {fence} has the trial", request.attempt));
    }
    let mut trial =
        held.cloned().unwrap_or_else(|| Trial::new(request.sweep.clone(), request.index, request.job.clone()));
    match &request.ask {
        Ask::Claim { instance, zone } => {
            if trial.status.is_terminal() || trial.ended >= request.attempt {
                return refuse(format!("Batch has ended attempt {} of this trial", request.attempt));
            }
            claim(&mut trial, request.attempt, instance, zone);
            let line = Command::FindLine { request: request.clone(), bucket: sweep.upload.bucket.clone() };
            write(held, trial, format!("attempt {} has the trial", request.attempt), context).then(line)
        }
        Ask::Report { sequence, metrics, ended } => {
            if !report(&mut trial, request.attempt, *sequence, metrics, ended.as_ref()) {
                return Decision::ignore("an older report").reply(Reply::Accepted {});
            }
            let what = format!("report {sequence} of attempt {}", request.attempt);
            write(held, trial, what, context).reply(Reply::Accepted {})
        }
    }
}

fn claim(trial: &mut Trial, attempt: u32, instance: &Option<String>, zone: &Option<String>) {
    trial.claimed_by = Some(attempt);
    let record = trial.attempt(attempt);
    record.instance = instance.clone().or(record.instance.take());
    record.zone = zone.clone().or(record.zone.take());
}

/// Merges a report; false where a newer one of the same attempt is known.
fn report(
    trial: &mut Trial,
    attempt: u32,
    sequence: u64,
    metrics: &BTreeMap<String, Metric>,
    ended: Option<&(i32, Outputs, f64)>,
) -> bool {
    let record: &mut Attempt = trial.attempt(attempt);
    if record.sequence.is_some_and(|known| known >= sequence) {
        return false;
    }
    record.sequence = Some(sequence);
    trial.report(metrics);
    if let Some((exit_code, outputs, seconds)) = ended {
        trial.end = Some(End { attempt, exit_code: *exit_code, outputs: *outputs, seconds: *seconds });
    }
    true
}

fn write(held: Option<&Trial>, trial: Trial, what: String, context: Context<'_>) -> Decision {
    if held == Some(&trial) {
        return Decision::advance(what);
    }
    let due = if trial.status.is_terminal() { None } else { context.recheck_at() };
    Decision::advance(what).trial(trial, due)
}

pub(super) fn granted(line: &ByteRange, outputs: &Prefix) -> Decision {
    let grant = Grant { parameters: line.clone(), outputs: outputs.clone() };
    Decision::advance("granted").reply(Reply::Granted(grant))
}

fn refuse(reason: String) -> Decision {
    Decision::ignore(reason.clone()).reply(Reply::Refused { reason })
}
