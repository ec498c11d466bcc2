//! What an attempt gets that has its trial.

use super::{refuse, standing};
use crate::command::Command;
use crate::decide::{Context, Decision};
use crate::event::TrialRequest;
use crate::store::{Versioned, View};
use crate::sweep::Sweep;
use crate::trial::Suggested;
use crate::workspace::{Origin, Stage, device};
use spotsweep_protocol::claim::{Access, ByteRange, Grant, Prefix, Reply, WorkspaceGrant};
use spotsweep_protocol::stop::StopReason;

pub(super) fn find_line(sweep: &Sweep, request: &TrialRequest, gpus: Option<&[String]>) -> Command {
    let (request, bucket) = (request.clone(), sweep.upload.bucket.clone());
    Command::FindLine { request, gpus: gpus.map(<[String]>::to_vec), bucket }
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
