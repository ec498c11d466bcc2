//! The results of a sweep. They are written repeatedly while it runs, and for the last time once every trial is
//! terminal.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Context, Decision, fail_fast};
use crate::command::Command;
use crate::input::Followup;
use crate::store::{Versioned, View};
use spotsweep_protocol::ids::{DescribedJob, JobId, SweepId};
use spotsweep_protocol::stop::StopReason;
use spotsweep_protocol::words::{counted, dollars};
use spotsweep_ranking::{reached_target, reaches_target};
use spotsweep_records::sweep::notification::{Kind, Notification};
use spotsweep_records::sweep::spent::Spent;
use spotsweep_records::sweep::{Plan, Stage, Sweep};
use spotsweep_records::trial::Trial;
use spotsweep_records::workspace::Fact;
use spotsweep_report::inputs::{ReportInputs, Wanted};

/// Reads the next page of the trials. It waits while one of them is open or has a workspace that is yet to be deleted.
pub(super) fn settling(view: &View, page: Option<u32>, checked: bool) -> Decision {
    with_settling(view, |sweep, plan| {
        if !sweep.is_next(page) {
            return Decision::ignore("this page is stored already");
        }
        let next = sweep.pages.next;
        let open = open_trials(&sweep.id, plan, next, &view.trials);
        let unclean: Vec<&Trial> = view.trials.iter().filter(|trial| trial.is_over() && !trial.is_clean()).collect();
        if open.is_empty() && unclean.is_empty() {
            return read(sweep, plan, &view.trials);
        }
        let (left, deleted) = (counted(open.len(), "trial"), counted(unclean.len(), "workspace"));
        let what = format!("waiting for {left} to end and {deleted} to be deleted");
        if checked {
            return Decision::ignore(format!("{what}; the last of them, or reconcile, asks again"));
        }
        // The array job ends after all its children, but the events of children may come later or be lost.
        let mut decision = Decision::advance(what);
        if !open.is_empty() {
            decision = decision.then(Command::DescribeJobs(open));
        }
        for trial in unclean {
            decision = decision.next(Followup::Workspace(trial.of(), Fact::Due));
        }
        decision.next(Followup::TrialsChecked(sweep.id.clone(), Some(next)))
    })
}

fn open_trials(id: &SweepId, plan: &Plan, page: u32, trials: &[Trial]) -> Vec<DescribedJob> {
    let indexes = plan.page(page);
    let mut jobs: BTreeMap<u32, JobId> =
        indexes.filter_map(|index| plan.job_of(index).map(|job| (index, job))).collect();
    for trial in trials {
        if trial.is_over() {
            jobs.remove(&trial.index);
        } else {
            jobs.insert(trial.index, trial.job.clone());
        }
    }
    let describe = |(index, job)| DescribedJob { sweep: id.clone(), index: Some(index), job };
    jobs.into_iter().map(describe).collect()
}

/// Handles a page of the trials: stores it, or makes the results if there is no other page or all are stored.
fn read(sweep: &Sweep, plan: &Plan, trials: &[Trial]) -> Decision {
    let (page, of) = (sweep.pages.next, plan.pages());
    let (id, bucket) = (sweep.id.clone(), sweep.upload.bucket.clone());
    if of == 1 {
        let what = format!("{} of {} read", trials.len(), counted(plan.trials, "trial"));
        return Decision::advance(what).then(gather(sweep, plan, trials.into()));
    }
    if page == of {
        let pages = (0..of).map(|page| sweep.pages.ended.contains(&page)).collect();
        let what = format!("{} stored", counted(of, "page"));
        return Decision::advance(what).then(Command::ReadPages { sweep: id, bucket, pages });
    }
    let has_ended = trials.len() == plan.page(page).len() && trials.iter().all(Trial::is_done);
    // The runner's secret is removed, because people who may read results must not get it.
    let trials = trials.iter().map(|trial| Trial { secret: None, ..trial.clone() }).collect();
    Decision::advance(format!("page {page} of {of} read")).then(Command::StorePage {
        sweep: id,
        bucket,
        page,
        trials,
        has_ended,
    })
}

fn gather(sweep: &Sweep, plan: &Plan, trials: Arc<[Trial]>) -> Command {
    Command::Gather { wanted: Wanted::of(sweep, plan, &trials), trials }
}

/// Notes that a page is stored. Another invocation reads the next one.
pub(super) fn page_stored(view: &View, page: u32, has_ended: bool, context: Context<'_>) -> Decision {
    let Some(Versioned { record: sweep, due, .. }) = &view.sweep else {
        return Decision::ignore("no such sweep here");
    };
    let is_settling = sweep.stage == Stage::Settling;
    if !is_settling && sweep.stage != Stage::Running {
        return Decision::ignore(format!("the sweep is {}", sweep.stage.name()));
    }
    // The sweep may have started to settle after the page was read.
    if page != sweep.pages.next || (is_settling && !has_ended) {
        return Decision::ignore("another page is next");
    }
    let mut sweep = sweep.clone();
    sweep.store_page(page, has_ended);
    sweep.redriven = 0;
    let (kind, due) = if is_settling { (Kind::Settling, context.lease_ends()) } else { (Kind::Running, *due) };
    let next = Command::Notify(Notification::of_page(&sweep, kind, sweep.pages.next));
    Decision::advance(format!("page {page} stored")).sweep(sweep, due).then(next)
}

/// Makes the results, once all pages are read.
pub(super) fn pages_read(view: &View, trials: &Arc<[Trial]>) -> Decision {
    match &view.sweep {
        Some(Versioned { record: sweep @ Sweep { plan: Some(plan), .. }, .. }) => {
            let what = format!("{} read", counted(trials.len(), "trial"));
            Decision::advance(what).then(gather(sweep, plan, Arc::clone(trials)))
        }
        Some(_) | None => Decision::ignore("no such sweep here"),
    }
}

/// Starts `sweep-settled` at once if this change of a trial is the first one that reaches the sweep's target, or if the
/// sweep may be failing fast by it.
pub(super) fn look((sweep, plan): (&Sweep, &Plan), held: Option<&Trial>, trial: &Trial) -> Option<Command> {
    let reaches = |trial: &Trial| reaches_target(plan, trial);
    let reaches_now = reaches(trial) && !held.is_some_and(reaches);
    let is_new = reaches_now || fail_fast::may_be_due(sweep, plan, held, trial);
    (is_new && sweep.stopped.is_none()).then(|| Command::Notify(Notification::internal(sweep, Kind::Running)))
}

/// Makes the report of a running sweep again, and compares its cost with its budget.
pub(super) fn running(view: &View, page: Option<u32>) -> Decision {
    match &view.sweep {
        Some(Versioned { record: sweep @ Sweep { stage: Stage::Running, plan: Some(plan), .. }, .. }) => {
            if sweep.is_next(page) {
                read(sweep, plan, &view.trials)
            } else {
                Decision::ignore("this page is stored already")
            }
        }
        Some(held) => Decision::ignore(format!("the sweep is {}", held.record.stage.name())),
        None => Decision::ignore("no such sweep here"),
    }
}

pub(super) fn gathered(view: &View, trials: &[Trial], inputs: &ReportInputs, context: Context<'_>) -> Decision {
    let Some(Versioned { record: sweep @ Sweep { plan: Some(plan), .. }, due, .. }) = &view.sweep else {
        return Decision::ignore("no such sweep here");
    };
    let is_settling = sweep.stage == Stage::Settling;
    if !is_settling && sweep.stage != Stage::Running {
        return Decision::ignore(format!("the sweep is {}", sweep.stage.name()));
    }
    // The sweep may have started to settle after the inputs were requested.
    if is_settling && (trials.len() < plan.trials as usize || !trials.iter().all(Trial::is_done)) {
        return Decision::ignore("it settles, and not every trial is done: the last of them, or reconcile, asks again");
    }
    let (results, spent) = match inputs.results(sweep, plan, trials, is_settling, context.now) {
        Ok(made) => made,
        Err(error) => return Decision::illegal(format!("trials.jsonl can't be read: {error}")),
    };
    let goes_on = !is_settling && sweep.stopped.is_none();
    let reached = stop_reason((sweep, plan), trials, &spent, context).filter(|_| goes_on);
    let notification = reached.map(|reason| Notification::stopped(sweep, reason, &spent));
    let warnings = results.warnings.clone();
    let publish = Command::PublishResults {
        sweep: sweep.id.clone(),
        bucket: sweep.upload.bucket.clone(),
        results: Box::new(results),
    };
    let due = if is_settling { context.lease_ends() } else { *due };
    let mut sweep = Sweep { spent: Some(spent), warnings, ..sweep.clone() };
    if !is_settling {
        sweep.begin_pages();
    }
    let decision = Decision::advance(format!("{} so far", dollars(spent.usd))).sweep(sweep, due);
    decision.then_all(notification.map(Command::Notify).into_iter().collect()).then(publish)
}

pub(super) fn published(view: &View, summary: Option<&str>) -> Decision {
    let Some(summary) = summary else {
        return Decision::ignore("the report is drawn again");
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

/// Returns why no further attempt starts: the target or the budget is reached, or the first trials have failed at once.
fn stop_reason(
    (sweep, plan): (&Sweep, &Plan),
    trials: &[Trial],
    spent: &Spent,
    context: Context<'_>,
) -> Option<StopReason> {
    let target = reached_target(plan, trials).map(|reached| StopReason::Target { reached });
    let failing = || fail_fast::reason(plan, trials);
    target
        .or_else(failing)
        .or_else(|| sweep.over_budget(Some(spent), context.now).map(|reached| StopReason::Budget { reached }))
}

/// Stops the sweep, once people are notified: claims are refused from now on, and waiting attempts are cancelled.
pub(super) fn stopped(view: &View, reason: Option<&StopReason>) -> Decision {
    let Some(Versioned { record: sweep @ Sweep { stage: Stage::Running, plan: Some(plan), .. }, due, .. }) =
        &view.sweep
    else {
        return Decision::ignore("the sweep does not run any more");
    };
    let Some(reason) = reason.filter(|_| sweep.stopped.is_none()) else {
        return Decision::ignore("stopped already");
    };
    let cancel = Command::CancelWaiting { sweep: sweep.id.clone(), jobs: plan.jobs(), reason: reason.clone() };
    let sweep = Sweep { stopped: Some(reason.clone()), ..sweep.clone() };
    Decision::advance(reason.to_string()).sweep(sweep, *due).then(cancel)
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

    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::decide::scene::NOUNS;
    use crate::decide::{Answer, decide};
    use crate::outcome::Outcome;
    use crate::settings::Settings;
    use crate::store::History;
    use spotsweep_records::trial::JobStatus;
    use spotsweep_records::workspace::{Origin, Place, Workspace};

    /// Inputs that were requested while the sweep ran can arrive when it settles. The simulation found that a volume
    /// was left.
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
        let place = Place { attempt: 1, instance: "i-1".into(), zone: "a".into() };
        let volume = Workspace::new(Origin::Blank, place, now);

        let settings = Settings::from_variables(|name| {
            ["SPOTSWEEP_BUCKET", "SPOTSWEEP_CLAIM_FUNCTION", "SPOTSWEEP_TRIAL_ROLE", "SPOTSWEEP_PARAMETERS"]
                .contains(&name)
                .then(|| "x".into())
        })
        .unwrap();
        let view = View {
            sweep: Some(Versioned { record: sweep, version: 1, due: None, recent: History::new() }),
            ..View::default()
        };
        for (workspace, is_done) in [(Some(volume), false), (None, true)] {
            trial.workspace = workspace;
            let (sweep, trials) = (trial.sweep.clone(), vec![trial.clone()].into());
            let input = Outcome::ReportInputs { sweep, trials, inputs: Arc::new(ReportInputs::default()) }.into();
            let decision = decide(NOUNS, &view, &input, &settings, now);
            assert_eq!(matches!(decision.answer, Answer::Advance(_)), is_done, "{:?}", decision.answer);
            assert_eq!(decision.commands.len(), usize::from(is_done));
        }
    }
}
