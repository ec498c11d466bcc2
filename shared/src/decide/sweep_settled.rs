//! The end of a sweep: make sure that every trial is terminal, then collect.

use super::Decision;
use crate::command::{Command, DescribedJob};
use crate::event::Event;
use crate::ids::{JobId, SweepId};
use crate::leaderboard::{leaderboard_csv, summary_json};
use crate::lifecycle::{Plan, Stage, Sweep};
use crate::store::{Held, View};
use crate::trial::Trial;
use crate::workspace::Fact;

pub(super) fn settling(view: &View, id: &SweepId, checked: bool) -> Decision {
    with_settling(view, |sweep, plan| {
        let open = open_trials(id, plan, &view.trials);
        let unclean: Vec<&Trial> = view.trials.iter().filter(|trial| trial.is_over() && !trial.is_clean()).collect();
        if open.is_empty() && unclean.is_empty() {
            let bucket = sweep.upload.bucket.clone();
            return Decision::advance(format!("all {} trials are terminal", plan.trials))
                .then(Command::ReadParameters { sweep: id.clone(), bucket });
        }
        let what = format!("{} trials have not ended, {} workspaces are being deleted", open.len(), unclean.len());
        if checked {
            return Decision::ignore(format!("{what}; the last of them, or reconcile, asks again"));
        }
        // The parent ends after all its children, but their events may come later, or be lost.
        let mut decision = Decision::advance(what);
        if !open.is_empty() {
            decision = decision.then(Command::DescribeJobs(open));
        }
        for trial in unclean {
            decision = decision.next(Event::Workspace(trial.of(), Fact::Due));
        }
        decision.next(Event::SweepSettling { sweep: id.clone(), checked: true })
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

pub(super) fn parameters(view: &View, bytes: &[u8]) -> Decision {
    with_settling(view, |sweep, plan| {
        let collected = leaderboard_csv(plan, &view.trials, bytes)
            .and_then(|leaderboard| Ok((leaderboard, summary_json(sweep, plan, &view.trials, bytes)?)));
        match collected {
            Ok((leaderboard, summary)) => {
                let (sweep, bucket) = (sweep.id.clone(), sweep.upload.bucket.clone());
                Decision::advance("publishing").then(Command::PublishResults { sweep, bucket, leaderboard, summary })
            }
            Err(error) => Decision::illegal(format!("trials.jsonl can't be read: {error}")),
        }
    })
}

pub(super) fn published(view: &View) -> Decision {
    with_settling(view, |sweep, _| {
        let mut sweep = sweep.clone();
        sweep.enter(Stage::Settled);
        Decision::advance("settled").sweep(sweep, None)
    })
}

fn with_settling(view: &View, then: impl FnOnce(&Sweep, &Plan) -> Decision) -> Decision {
    match &view.sweep {
        Some(Held { record: sweep @ Sweep { stage: Stage::Settling, plan: Some(plan), .. }, .. }) => then(sweep, plan),
        Some(held) => Decision::ignore(format!("the sweep is {}", held.record.stage.name())),
        None => Decision::ignore("no such sweep here"),
    }
}
