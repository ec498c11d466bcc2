//! The results of a sweep: while it runs, as it stands; at its end, once every trial is terminal.

use super::{Context, Decision};
use crate::command::Command;
use crate::input::Followup;
use crate::results::inputs::{Gathered, Wanted};
use crate::results::ranking::{reached_target, reaches_target};
use crate::store::{Versioned, View};
use crate::sweep::notification::{Kind, Notification};
use crate::sweep::spent::Spent;
use crate::sweep::{Plan, Stage, Sweep};
use crate::trial::Trial;
use crate::workspace::Fact;
use spotsweep_protocol::ids::{DescribedJob, JobId, SweepId};
use spotsweep_protocol::stop::StopReason;
use spotsweep_protocol::words::{counted, dollars};

pub(super) fn settling(view: &View, id: &SweepId, checked: bool) -> Decision {
    with_settling(view, |sweep, plan| {
        let open = open_trials(id, plan, &view.trials);
        let unclean: Vec<&Trial> = view.trials.iter().filter(|trial| trial.is_over() && !trial.is_clean()).collect();
        if open.is_empty() && unclean.is_empty() {
            return Decision::advance(format!("{} ended, all of them", counted(plan.trials, "trial")))
                .then(Command::Gather(Wanted::of(sweep, plan, &view.trials)));
        }
        let (left, deleted) = (counted(open.len(), "trial"), counted(unclean.len(), "workspace"));
        let what = format!("waiting for {left} to end and {deleted} to be deleted");
        if checked {
            return Decision::ignore(format!("{what}; the last of them, or reconcile, asks again"));
        }
        // The parent ends after all its children, but their events may come later, or be lost.
        let mut decision = Decision::advance(what);
        if !open.is_empty() {
            decision = decision.then(Command::DescribeJobs(open));
        }
        for trial in unclean {
            decision = decision.next(Followup::Workspace(trial.of(), Fact::Due));
        }
        decision.next(Followup::TrialsChecked(id.clone()))
    })
}

fn open_trials(id: &SweepId, plan: &Plan, trials: &[Trial]) -> Vec<DescribedJob> {
    let mut jobs: Vec<Option<JobId>> = (0..plan.trials).map(|index| plan.job_of(index)).collect();
    for trial in trials {
        if let Some(job) = jobs.get_mut(trial.index as usize) {
            *job = (!trial.is_over()).then(|| trial.job.clone());
        }
    }
    let describe =
        |(index, job): (u32, Option<JobId>)| Some(DescribedJob { sweep: id.clone(), index: Some(index), job: job? });
    (0..).zip(jobs).filter_map(describe).collect()
}

/// Has `sweep-settled` look at once, where a change of a trial is the first one by which it reaches the sweep's target.
pub(super) fn look((sweep, plan): (&Sweep, &Plan), held: Option<&Trial>, trial: &Trial) -> Option<Command> {
    let reaches = |trial: &Trial| reaches_target(plan, trial);
    let is_new = reaches(trial) && !held.is_some_and(reaches) && sweep.stopped.is_none();
    is_new.then(|| Command::Notify(Notification::internal(sweep, Kind::Running)))
}

/// Looks how a sweep gets on: its report is drawn anew, its cost reckoned up, its budget held against it.
pub(super) fn running(view: &View) -> Decision {
    match &view.sweep {
        Some(Versioned { record: sweep @ Sweep { stage: Stage::Running, plan: Some(plan), .. }, .. }) => {
            let wanted = Wanted::of(sweep, plan, &view.trials);
            Decision::advance(format!("{} of {} begun", view.trials.len(), counted(plan.trials, "trial")))
                .then(Command::Gather(wanted))
        }
        Some(held) => Decision::ignore(format!("the sweep is {}", held.record.stage.name())),
        None => Decision::ignore("no such sweep here"),
    }
}

pub(super) fn gathered(view: &View, gathered: &dyn Gathered, context: Context<'_>) -> Decision {
    let Some(Versioned { record: sweep @ Sweep { plan: Some(plan), .. }, due, .. }) = &view.sweep else {
        return Decision::ignore("no such sweep here");
    };
    let is_settling = sweep.stage == Stage::Settling;
    if !is_settling && sweep.stage != Stage::Running {
        return Decision::ignore(format!("the sweep is {}", sweep.stage.name()));
    }
    // It may have run when this was asked for, and have begun to settle since.
    let is_done = |trial: &Trial| trial.is_over() && trial.is_clean();
    if is_settling && (view.trials.len() < plan.trials as usize || !view.trials.iter().all(is_done)) {
        return Decision::ignore("it settles, and not every trial is done: the last of them, or reconcile, asks again");
    }
    let (results, spent) = match gathered.results(sweep, plan, &view.trials, is_settling, context.now) {
        Ok(made) => made,
        Err(error) => return Decision::illegal(format!("trials.jsonl can't be read: {error}")),
    };
    let goes_on = !is_settling && sweep.stopped.is_none();
    let reached = stop_reason((sweep, plan), &view.trials, Some(&spent), context).filter(|_| goes_on);
    let notification = reached.map(|reason| {
        let kind = if matches!(reason, StopReason::Target { .. }) { Kind::TargetReached } else { Kind::OverBudget };
        Notification::stopped(sweep, kind, &reason.to_string(), &spent)
    });
    let warnings = results.warnings.clone();
    let publish = Command::PublishResults {
        sweep: sweep.id.clone(),
        bucket: sweep.upload.bucket.clone(),
        results: Box::new(results),
    };
    let due = if is_settling { context.lease_ends() } else { *due };
    let sweep = Sweep { spent: Some(spent), warnings, ..sweep.clone() };
    let decision = Decision::advance(format!("{} so far", dollars(spent.usd))).sweep(sweep, due);
    decision.then_all(notification.map(Command::Notify).into_iter().collect()).then(publish)
}

pub(super) fn published(view: &View, summary: Option<&str>) -> Decision {
    let Some(summary) = summary else {
        return Decision::ignore("the report is drawn anew");
    };
    with_settling(view, |sweep, _| {
        let notification = Notification::settled(sweep, summary);
        Decision::advance("telling how it went").then(Command::Notify(notification))
    })
}

pub(super) fn settled(view: &View) -> Decision {
    with_settling(view, |sweep, _| {
        let mut sweep = sweep.clone();
        sweep.enter(Stage::Settled);
        Decision::advance("settled").sweep(sweep, None)
    })
}

/// Why no further attempt is to start: the target or the budget is reached.
fn stop_reason(
    (sweep, plan): (&Sweep, &Plan),
    trials: &[Trial],
    spent: Option<&Spent>,
    context: Context<'_>,
) -> Option<StopReason> {
    let target = reached_target(plan, trials).map(|reached| StopReason::Target { reached });
    target.or_else(|| sweep.over_budget(spent, context.now).map(|reached| StopReason::Budget { reached }))
}

/// People know that the budget or the target is reached: from here on claims are refused, and what waits is cancelled.
pub(super) fn stopped(view: &View, context: Context<'_>) -> Decision {
    let Some(Versioned { record: sweep @ Sweep { stage: Stage::Running, plan: Some(plan), .. }, due, .. }) =
        &view.sweep
    else {
        return Decision::ignore("the sweep does not run any more");
    };
    let reached = stop_reason((sweep, plan), &view.trials, None, context);
    let Some(reason) = reached.filter(|_| sweep.stopped.is_none()) else {
        return Decision::ignore("stopped already");
    };
    let cancel = Command::CancelWaiting { sweep: sweep.id.clone(), jobs: plan.jobs(), reason: reason.clone() };
    let what = reason.to_string();
    let sweep = Sweep { stopped: Some(reason), ..sweep.clone() };
    Decision::advance(what).sweep(sweep, *due).then(cancel)
}

fn with_settling(view: &View, then: impl FnOnce(&Sweep, &Plan) -> Decision) -> Decision {
    match &view.sweep {
        Some(Versioned { record: sweep @ Sweep { stage: Stage::Settling, plan: Some(plan), .. }, .. }) => {
            then(sweep, plan)
        }
        Some(held) => Decision::ignore(format!("the sweep is {}", held.record.stage.name())),
        None => Decision::ignore("no such sweep here"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::decide::{Answer, decide};
    use crate::outcome::Outcome;
    use crate::results::inputs::ReportInputs;
    use crate::settings::Settings;
    use crate::store::History;
    use crate::trial::JobStatus;
    use crate::workspace::{Place, Workspace, WorkspacePlan};

    /// What was asked for while the sweep ran comes when it settles: found by the simulation, which saw a volume left.
    #[test]
    fn results_wait_until_the_last_workspace_is_gone() {
        let now = Timestamp::UNIX_EPOCH;
        let upload = json!({ "bucket": "b", "key": "sweeps/s.yaml", "fingerprint": "v", "uploaded_at": now });
        let plan = json!({ "trials": 1, "queue": "q", "definition": "d:1", "attempts": 1,
            "workspace": { "size_gib": 20, "origin": { "origin": "blank" } }, "parts": [{ "trials": 1, "job": "j" }] });
        let mut sweep = Sweep::new(serde_json::from_value(upload).unwrap());
        sweep.plan = Some(serde_json::from_value(plan).unwrap());
        sweep.enter(Stage::Settling);
        let mut trial = Trial::new(sweep.id.clone(), 0, JobId::from("j".to_owned()));
        trial.status = JobStatus::Succeeded;
        let wanted: WorkspacePlan = sweep.plan.clone().unwrap().workspace.unwrap();
        let place = Place { attempt: 1, instance: "i-1".into(), zone: "a".into() };
        let volume = Workspace::new(&wanted, 0, place, now);

        let input =
            Outcome::ReportInputs { sweep: sweep.id.clone(), gathered: Arc::new(ReportInputs::default()) }.into();
        let settings = Settings::from_variables(|name| {
            ["SPOTSWEEP_BUCKET", "SPOTSWEEP_CLAIM_FUNCTION", "SPOTSWEEP_TRIAL_ROLE"].contains(&name).then(|| "x".into())
        })
        .unwrap();
        let mut view = View {
            sweep: Some(Versioned { record: sweep, version: 1, due: None, recent: History::new() }),
            ..View::default()
        };
        for (workspace, is_done) in [(Some(volume), false), (None, true)] {
            trial.workspace = workspace;
            view.trials = vec![trial.clone()];
            let decision = decide(&view, &input, &settings, now);
            assert_eq!(matches!(decision.answer, Answer::Advance(_)), is_done, "{:?}", decision.answer);
            assert_eq!(decision.commands.len(), usize::from(is_done));
        }
    }
}
