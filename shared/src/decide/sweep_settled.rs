//! The end of a sweep: make sure that every trial is terminal, then collect.

use super::Decision;
use crate::command::{Command, DescribedJob};
use crate::event::Event;
use crate::ids::SweepId;
use crate::leaderboard::{leaderboard_csv, summary_json};
use crate::lifecycle::{Plan, Stage, Sweep};
use crate::store::{Held, View};
use crate::trial::Trial;

pub(super) fn settling(view: &View, id: &SweepId, checked: bool) -> Decision {
    with_settling(view, |sweep, plan| {
        let open = open_trials(id, plan, &view.trials);
        if open.is_empty() {
            let bucket = sweep.upload.bucket.clone();
            return Decision::advance(format!("all {} trials are terminal", plan.trials))
                .then(Command::ReadParameters { sweep: id.clone(), bucket });
        }
        if checked {
            return Decision::ignore(format!(
                "Batch says that {} trials have not ended; reconcile asks again",
                open.len()
            ));
        }
        // The parent ends after all its children, but their events may come later, or be lost.
        Decision::advance(format!("asking Batch about {} trials", open.len()))
            .then(Command::DescribeJobs(open))
            .next(Event::SweepSettling { sweep: id.clone(), checked: true })
    })
}

fn open_trials(id: &SweepId, plan: &Plan, trials: &[Trial]) -> Vec<DescribedJob> {
    let mut open = vec![true; plan.trials as usize];
    for trial in trials.iter().filter(|trial| trial.status.is_terminal()) {
        if let Some(entry) = open.get_mut(trial.index as usize) {
            *entry = false;
        }
    }
    let describe = |index| Some(DescribedJob { sweep: id.clone(), index: Some(index), job: plan.job_of(index)? });
    (0..plan.trials).zip(open).filter(|(_, open)| *open).filter_map(|(index, _)| describe(index)).collect()
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
