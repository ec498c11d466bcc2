//! What an attempt gets once it holds its trial.

use super::{check, refuse, standing};
use crate::command::Command;
use crate::decide::{Context, Decision, workspace};
use crate::event::TrialRequest;
use crate::input::Followup;
use crate::store::{Versioned, View};
use spotsweep_protocol::claim::{Access, ByteRange, Grant, Prefix, Reply, WorkspaceGrant};
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::sweep::continuation::TrialStart;
use spotsweep_records::sweep::{Plan, Sweep};
use spotsweep_records::trial::{Suggested, Trial};
use spotsweep_records::workspace::{Origin, Stage, TrialRef, device};

pub(super) fn find_line(sweep: &Sweep, request: &TrialRequest, gpus: Option<&[String]>) -> Command {
    let (request, bucket) = (request.clone(), sweep.upload.bucket.clone());
    Command::FindLine { request, gpus: gpus.map(<[String]>::to_vec), bucket }
}

/// Whether a trial's record has what it starts from, where each trial of the sweep has its own start.
pub(super) fn knows_its_start(plan: &Plan, trial: &Trial) -> bool {
    (!is_of_trial(plan) || trial.starts_from.is_some()) && (!plan.restores || trial.restores.is_some())
}

/// Whether each trial's volume is made from a snapshot of its own.
fn is_of_trial(plan: &Plan) -> bool {
    plan.workspace.as_ref().is_some_and(|workspace| workspace.origin == Origin::Snapshots)
}

/// Notes what the trial starts from, and decides the claim again.
pub(in crate::decide) fn starts_from(
    view: &View,
    request: &TrialRequest,
    start: &TrialStart,
    context: Context<'_>,
) -> Decision {
    let held = view.trial.as_ref().map(|held| &held.record);
    let (sweep, plan) = match check(view, request) {
        Ok((sweep, plan, _)) => (sweep, plan),
        Err(reason) => return refuse(reason),
    };
    let again = Followup::Requested(Box::new(request.clone()));
    if held.is_some_and(|trial| knows_its_start(plan, trial)) {
        return Decision::ignore("it is known what it starts from").next(again);
    }
    let new = || Trial::new(request.sweep.clone(), request.index, request.job.clone());
    let TrialStart { snapshot, restores } = start;
    let trial =
        Trial { starts_from: snapshot.clone(), restores: restores.clone(), ..held.cloned().unwrap_or_else(new) };
    if !knows_its_start(plan, &trial) {
        return Decision::illegal("what the trials start from is listed for fewer of them");
    }
    let what = match (restores, snapshot) {
        (Some(of), _) => format!("starts from the collected checkpoint of {of}"),
        (None, snapshot) => format!("starts from {}", snapshot.as_deref().unwrap_or("nothing")),
    };
    workspace::changed(sweep, held, trial, what, context).next(again)
}

/// Continues the claim, once ECS has answered which GPUs the attempt's container has.
pub(in crate::decide) fn assigned(view: &View, request: &TrialRequest, gpus: Option<&[String]>) -> Decision {
    match &view.sweep {
        Some(held) => Decision::advance("its GPUs are known").then(find_line(&held.record, request, gpus)),
        None => refuse(StopReason::NotFound { what: "record of the sweep any more".to_owned() }),
    }
}

/// Returns the grant, once the trial's line is found, if the attempt still has the workspace.
pub(in crate::decide) fn granted(
    view: &View,
    request: &TrialRequest,
    (line, outputs, gpus): (&ByteRange, &Prefix, Option<&[String]>),
    context: Context<'_>,
) -> Decision {
    let plan = view.sweep.as_ref().and_then(|held| held.record.plan.as_ref());
    let (Some(plan), Some(Versioned { record: trial, .. })) = (plan, &view.trial) else {
        return refuse(StopReason::NotFound { what: "record of the trial any more".to_owned() });
    };
    if let Some(reply) = standing(trial, request.attempt, context) {
        return Decision::ignore("the workspace has left meanwhile").reply(reply);
    }
    let workspace = trial.workspace.as_ref().and_then(|workspace| match (&workspace.stage, &workspace.volume.id) {
        (Stage::Attached { device: number, .. }, Some(volume)) => Some(WorkspaceGrant {
            volume: volume.clone(),
            device: device(*number),
            blank: workspace.volume.origin == Origin::Blank && !workspace.volume.used,
        }),
        _other => None,
    });
    let grant = Grant {
        parameters: line.clone(),
        outputs: outputs.clone(),
        patterns: plan.patterns.clone(),
        workspace,
        restores: trial.restores.as_ref().map(|of| {
            let TrialRef { sweep, index } = of;
            Prefix { bucket: outputs.bucket.clone(), prefix: sweep.trial_prefix(*index) }
        }),
        preparation: plan.preparation.clone(),
        metric: plan.metric.as_ref().map(|by| by.name.clone()),
        metrics: plan.metrics.to_vec(),
        wandb: plan.wandb.clone(),
        stalls: trial.stall_rule(plan.stalls),
        rungs: plan.rungs(),
        suggested: trial.suggested.as_ref().map(Suggested::parameters),
        gpus: gpus.map(<[String]>::to_vec),
    };
    Decision::advance("granted").reply(Reply::Granted(grant))
}

pub(in crate::decide) fn issued(access: &Access) -> Decision {
    Decision::advance("issued").reply(Reply::Access(access.clone()))
}
