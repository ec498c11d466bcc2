//! Trainings that fail at once, and whether their instance is the cause (see `sweep/instances.rs`).

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Asker, waiting};
use crate::command::Command;
use crate::decide::{Context, Decision};
use crate::event::{Ask, Ending, TrialRequest};
use crate::input::Followup;
use crate::store::View;
use spotsweep_protocol::claim::{Reply, UNAVAILABLE};
use spotsweep_protocol::metric::Metric;
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::sweep::instances::{self, Cause, Shown};
use spotsweep_records::sweep::{Plan, Sweep};
use spotsweep_records::trial::{Attempt, Trial};
use spotsweep_records::workspace::Fact;

/// How long a runner waits before it asks again for the cause of its failure.
const PAUSE: Duration = Duration::from_secs(5);

/// Notes on the sweep's record what a request shows about its instance, before the request is decided; `None` if that
/// adds nothing.
pub(super) fn noted(
    view: &View,
    held: Option<&Trial>,
    request: &TrialRequest,
    context: Context<'_>,
) -> Option<Decision> {
    let sweep = view.sweep.as_ref()?;
    // A sweep of one trial has no other instance for a comparison.
    let plan = sweep.record.plan.as_ref().filter(|plan| plan.trials > 1)?;
    let (instance, shown) = shown(plan, held, request)?;
    let instances = sweep.record.instances.with(instance, shown, context.now)?;
    let what = match shown {
        Shown::Claimed => format!("an attempt begins on {instance}"),
        Shown::Trained => format!("trial {} trains on {instance}", request.index),
        Shown::FailedAtOnce { index, attempt } => {
            format!("attempt {attempt} of trial {index} has failed at once on {instance}")
        }
    };
    let noted = Sweep { instances, ..sweep.record.clone() };
    let decision = Decision::advance(what).sweep(noted, sweep.due);
    Some(decision.next(Followup::Requested(Box::new(request.clone()))))
}

/// Returns the instance, and what the request shows about it.
fn shown<'a>(plan: &Plan, held: Option<&'a Trial>, request: &'a TrialRequest) -> Option<(&'a str, Shown)> {
    let TrialRequest { index, attempt, .. } = *request;
    let on_record = || held?.attempts.get(&attempt)?.instance.as_deref();
    match &request.ask {
        Ask::Claim(machine) if machine.defect.is_none() => Some((machine.instance.as_deref()?, Shown::Claimed)),
        Ask::Report { .. } if failure_at_once(plan, request).is_some() => {
            Some((on_record()?, Shown::FailedAtOnce { index, attempt }))
        }
        // A released attempt may have failed before a rollback, so it does not show that it has trained.
        Ask::Report { ended: Some(Ending::Released { .. }), .. } => None,
        Ask::Report { metrics, .. } if has_figures(plan, metrics) => Some((on_record()?, Shown::Trained)),
        Ask::Claim(_) | Ask::Access | Ask::Mounted { .. } | Ask::Notice(_) | Ask::Fetching(_) | Ask::Report { .. } => {
            None
        }
    }
}

/// Whether a report has figures: those of the sweep's metric, or any if the sweep names none.
fn has_figures(plan: &Plan, metrics: &BTreeMap<String, Metric>) -> bool {
    plan.metric.as_ref().map_or(!metrics.is_empty(), |by| metrics.contains_key(&by.name))
}

/// Returns how the training has ended, if the request reports a failure at once.
fn failure_at_once(plan: &Plan, request: &TrialRequest) -> Option<String> {
    let Ask::Report { metrics, ended: Some(Ending::Finished { exit_code, seconds, error, .. }), .. } = &request.ask
    else {
        return None;
    };
    // What cannot be had, such as data that has changed, is the same on each instance. One with the data in its cache
    // would seem to be better.
    let may_be_instance = *exit_code != i32::from(UNAVAILABLE) && !has_figures(plan, metrics);
    instances::failure_at_once(*exit_code, *seconds, error.as_deref()).filter(|_| may_be_instance)
}

impl Asker<'_> {
    /// Decides about a failure at once; `None` if the trial is the cause, or if the attempt has not failed at once.
    pub(super) fn fails_at_once(&self) -> Option<Decision> {
        let failure = failure_at_once(self.plan, self.request)?;
        if self.sweep.stopped.is_some() || self.trial.stopped.is_some() {
            return None;
        }
        let record = self.trial.attempts.get(&self.request.attempt)?;
        let instance = record.instance.as_deref()?;
        match self.sweep.instances.cause(instance, self.request.index, self.context.now) {
            // The cause was decided before, and the answer was lost.
            Cause::Trial => {
                let reason = record.unfit()?.to_owned();
                Some(Decision::ignore(reason.clone()).reply(Reply::Unavailable { reason }))
            }
            Cause::Open => {
                let reason = format!("whether other instances than {instance} train is not known yet");
                Some(Decision::ignore(reason.clone()).reply(waiting(reason, PAUSE)))
            }
            Cause::Instance { drain, evidence } => {
                Some(self.blames(instance, drain, &format!("{evidence}; this one: {failure}")))
            }
        }
    }

    /// Decides that the attempt is a false start, so that the trial continues on another instance, with its workspace
    /// as it is.
    fn blames(&self, instance: &str, drain: bool, cause: &str) -> Decision {
        let attempt = self.request.attempt;
        let reason = StopReason::UnfitInstance { cause: cause.to_owned() };
        let what = format!("attempt {attempt} leaves {instance}: {reason}");
        let (mut trial, context) = (self.trial.clone(), self.context);
        let record: &mut Attempt = trial.attempt(attempt);
        record.reason = Some(reason.into());
        let released = Fact::Released { attempt, seal: None, rollback: None };
        let calls = super::workspace::apply(&mut trial, self.plan, &released, context);
        let decision = super::workspace::changed(self.sweep, self.held, trial, what, context).then_all(calls);
        if drain {
            decision.then(Command::DrainInstance(self.request.clone()))
        } else {
            decision.reply(Reply::Unavailable { reason: cause.to_owned() })
        }
    }
}
