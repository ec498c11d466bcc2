//! What an attempt gets that has its trial.

use super::{check, refuse, standing};
use crate::command::Command;
use crate::decide::{Context, Decision, workspace};
use crate::event::TrialRequest;
use crate::input::Followup;
use crate::store::{Versioned, View};
use crate::sweep::Sweep;
use crate::trial::{Suggested, Trial};
use crate::workspace::{Origin, Stage, device};
use spotsweep_protocol::claim::{Access, ByteRange, Grant, Prefix, Reply, WorkspaceGrant};
use spotsweep_protocol::stop::StopReason;

pub(super) fn find_line(sweep: &Sweep, request: &TrialRequest, gpus: Option<&[String]>) -> Command {
    let (request, bucket) = (request.clone(), sweep.upload.bucket.clone());
    Command::FindLine { request, gpus: gpus.map(<[String]>::to_vec), bucket }
}

/// The snapshot is found that the trial's volume starts from: it is noted, and the claim goes on.
pub(in crate::decide) fn starts_from(
    view: &View,
    request: &TrialRequest,
    snapshot: &str,
    context: Context<'_>,
) -> Decision {
    let held = view.trial.as_ref().map(|held| &held.record);
    let sweep = match check(view, request) {
        Ok((sweep, _, _)) => sweep,
        Err(reason) => return refuse(reason),
    };
    let again = Followup::Requested(Box::new(request.clone()));
    if held.is_some_and(|trial| trial.starts_from.is_some()) {
        return Decision::ignore("it is known what its workspace starts from").next(again);
    }
    let new = || Trial::new(request.sweep.clone(), request.index, request.job.clone());
    let trial = Trial { starts_from: Some(snapshot.to_owned()), ..held.cloned().unwrap_or_else(new) };
    workspace::changed(sweep, held, trial, format!("starts from {snapshot}"), context).next(again)
}

/// ECS has answered which GPUs the attempt's container has.
pub(in crate::decide) fn assigned(view: &View, request: &TrialRequest, gpus: Option<&[String]>) -> Decision {
    match &view.sweep {
        Some(held) => Decision::advance("its GPUs are known").then(find_line(&held.record, request, gpus)),
        None => refuse(StopReason::NotFound { what: "record of the sweep any more".to_owned() }),
    }
}

/// The line is found: the attempt gets everything at once, if its workspace is still its own.
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
        code: plan.code.clone(),
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
