//! Batch's state of jobs: observes trials, and settles the sweep when every part has ended.

use super::sweep_upload::settle;
use super::{Context, Decision, early_stop, resubmission, sweep_settled, workspace};
use crate::command::Command;
use crate::event::{PartJob, TrialJob};
use crate::input::Followup;
use crate::store::{Versioned, View};
use spotsweep_protocol::ids::{DescribedJob, JobId};
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::sweep::{Plan, Stage, Sweep};
use spotsweep_records::trial::{JobStatus, MAX_FALSE_STARTS, Observation, Trial};
use spotsweep_records::workspace::{Fact, Workspace};

/// Decides an observation of a trial's job. `polled` is whether DescribeJobs gave it rather than an event.
pub(super) fn trial(view: &View, job: &TrialJob, polled: bool, context: Context<'_>) -> Decision {
    let decision = observe(view, job, polled, context);
    // The plain job of a single trial is its own part, so no parent job reports the part's end.
    let part = job.index / spotsweep_protocol::ids::PART_TRIALS;
    if job.round == 0 && job.seen.job.child.is_none() && job.seen.status.is_terminal() {
        let (sweep, parent) = (job.sweep.clone(), job.seen.job.parent.clone());
        let ended = PartJob { sweep, part, job: parent, status: job.seen.status };
        return decision.next(Followup::PartEnded(ended));
    }
    decision
}

fn observe(view: &View, job: &TrialJob, polled: bool, context: Context<'_>) -> Decision {
    let seen = &job.seen;
    let Some(Versioned { record: sweep, .. }) = &view.sweep else {
        return Decision::ignore(format!("no sweep {} here", job.sweep));
    };
    let Some(plan) = &sweep.plan else {
        return Decision::illegal(format!("a job of a sweep that is {}", sweep.stage.name()));
    };
    if job.index >= plan.trials {
        return Decision::illegal(format!("trial {} of a sweep of {}", job.index, plan.trials));
    }
    let held = view.trial.as_ref();
    if let Some(known) = job_of(plan, held, job).filter(|known| *known != seen.job) {
        return Decision::ignore(format!("job {} is not the trial's, {known} is", seen.job));
    }
    if job.round > held.map_or(0, |held| held.record.round) {
        // A round is committed before it is submitted, so this job belongs to no round of the trial.
        return Decision::ignore(format!(
            "the trial has no round {}: {} is a job of another submission",
            job.round, seen.job
        ));
    }
    if seen.ended.is_empty() && seen.status < JobStatus::Starting {
        // A trial without a row is waiting too, so that a sweep of 10 000 trials does not write 10 000 rows when it is
        // submitted.
        return Decision::ignore("waiting for capacity");
    }
    let mut trial = match held {
        Some(held) => held.record.clone(),
        None => Trial::new(job.sweep.clone(), job.index, seen.job.clone()),
    };
    trial.observe(job.round, seen);
    let mut again = None;
    if trial.round == job.round {
        trial.resubmitting = false;
    }
    if resubmission::is_due(&trial, seen, sweep, plan) {
        resubmission::enter(&mut trial);
        again = resubmission::submit(sweep, &trial, context);
    }
    if trial.status == JobStatus::Failed
        && let Some(reason) = never_starts(&trial)
    {
        // Batch has ended the job by itself, and its reason is that of the last container.
        trial.fail(reason);
    }
    let calls = workspace::apply(&mut trial, plan, &Fact::Due, context);
    let locate = locate(&trial, plan, seen);
    let given_up = give_up(&trial).filter(|_| !polled);
    let interrupted = early_stop::followup(plan, &trial, seen).filter(|_| !polled);
    let needed = workspace::look_up(&trial, context).filter(|_| polled);
    let before = held.map(|held| &held.record);
    if before != Some(&trial) {
        let what = format!("{:?} after {} ended attempts", trial.status, trial.ended);
        // Metrics count only after Batch has reported the container's start, which this observation may be.
        let target = sweep_settled::look((sweep, plan), before, &trial);
        let decision = workspace::changed(sweep, before, trial, what, context);
        let decision = decision.then_all(calls).then_all(locate);
        let decision = decision.then_all(again.into_iter().chain(given_up).chain(target).collect());
        return interrupted.into_iter().chain(needed).fold(decision, Decision::next);
    }
    if let Some(due) = workspace::due(&trial, context).filter(|_| polled) {
        let is_overdue = held.is_some_and(|held| held.is_overdue(context.now));
        let find = (trial.resubmitting && is_overdue).then(|| resubmission::find(sweep, plan, &trial));
        // A settling sweep asks Batch too. The due time stays for a silent trial, because only `reconcile` may look up
        // an instance, and it must find the trial overdue.
        let is_silent = trial.silent_since(context.now).is_some();
        let due = held.filter(|_| is_silent).and_then(|held| held.due).unwrap_or(due);
        let decision = Decision::advance("unchanged, Batch was asked").trial(trial, Some(due));
        let decision = decision.then_all(calls).then_all(find.into_iter().collect());
        return needed.into_iter().fold(decision, Decision::next);
    }
    match (given_up, interrupted) {
        (Some(terminate), _) => Decision::advance("unchanged, to be given up").then(terminate),
        (None, Some(followup)) => Decision::advance("unchanged, to be compared").next(followup),
        (None, None) => Decision::ignore("nothing new"),
    }
}

/// Terminates a job whose container does not start repeatedly, because Batch would make up to ten attempts. If the call
/// fails, Batch's event about the next attempt leads to it again.
fn give_up(trial: &Trial) -> Option<Command> {
    let reason = never_starts(trial).filter(|_| !trial.is_over() && !trial.resubmitting)?;
    Some(Command::TerminateJobs { sweep: trial.sweep.clone(), jobs: vec![trial.job.to_string()], reason })
}

/// The reason to give up a trial that has made as many false starts in a row as it may.
fn never_starts(trial: &Trial) -> Option<StopReason> {
    let starts = trial.false_starts();
    let is_due = starts >= MAX_FALSE_STARTS && trial.reason.as_ref().is_none_or(|reason| reason.stopped().is_none());
    is_due.then(|| StopReason::NeverStarts { starts: u32::try_from(starts).unwrap_or(u32::MAX) })
}

/// Returns the job that a trial has in a round, if it is known.
fn job_of(plan: &Plan, held: Option<&Versioned<Trial>>, job: &TrialJob) -> Option<JobId> {
    if job.round == 0 {
        return plan.job_of(job.index);
    }
    held.map(|held| &held.record)
        .filter(|trial| trial.round == job.round && !trial.resubmitting)
        .map(|trial| trial.job.clone())
}

/// Looks up where an attempt is placed, once Batch shows the container instance. So the workspace is moved while the
/// image is pulled.
fn locate(trial: &Trial, plan: &Plan, seen: &Observation) -> Vec<Command> {
    let attempt = trial.ended.saturating_add(1);
    let known = trial.workspace.as_ref().and_then(|workspace| workspace.wanted.as_ref());
    let is_known = known.is_some_and(|place| place.attempt >= attempt);
    match &seen.container_instance {
        Some(container_instance) if plan.workspace.is_some() && !trial.is_over() && !is_known => {
            let container_instance = container_instance.clone();
            vec![Command::LocateAttempt { trial: trial.of(), attempt, container_instance }]
        }
        Some(_) | None => vec![],
    }
}

pub(super) fn part(view: &View, job: &PartJob, context: Context<'_>) -> Decision {
    let Some(Versioned { record: sweep, due, .. }) = &view.sweep else {
        return Decision::ignore(format!("no sweep {} here", job.sweep));
    };
    if !job.status.is_terminal() {
        return Decision::ignore(format!("the array job is {:?}", job.status));
    }
    let mut sweep = sweep.clone();
    let Some(part) = sweep.plan.as_mut().and_then(|plan| plan.parts.get_mut(job.part as usize)) else {
        return Decision::ignore(format!("part {} is not in the plan", job.part));
    };
    match &part.job {
        None => return Decision::ignore("its submission is not recorded yet; reconcile asks Batch again"),
        Some(known) if *known != job.job => return Decision::ignore(format!("not the sweep's job, {known} is")),
        Some(_) if part.ended.is_some() => return Decision::ignore("nothing new"),
        Some(_) => part.ended = Some(job.status),
    }
    let ended = sweep.plan.as_ref().is_some_and(Plan::ended);
    match sweep.stage {
        Stage::Running if ended => settle(sweep, context),
        Stage::Running | Stage::Submitting { .. } | Stage::Announcing => {
            let what = format!("part {} has ended: {:?}", job.part, job.status);
            Decision::advance(what).sweep(sweep, *due)
        }
        Stage::Reading
        | Stage::Keeping { .. }
        | Stage::Settling
        | Stage::Settled
        | Stage::Withdrawing { .. }
        | Stage::Rejected => Decision::ignore(format!("the sweep is {}", sweep.stage.name())),
    }
}

/// Fails the trial of a job that Batch does not know. Batch keeps terminal jobs for at least seven days (fact 19), so
/// the job has ended, and it can no longer be found out how.
pub(super) fn unknown(view: &View, job: &DescribedJob, context: Context<'_>) -> Decision {
    let Some(index) = job.index else {
        return lost_part(view, job);
    };
    let Some(Versioned { record: sweep @ Sweep { plan: Some(plan), .. }, .. }) = &view.sweep else {
        return Decision::ignore("no such sweep here");
    };
    let held = view.trial.as_ref().map(|held| &held.record);
    if held.is_some_and(|trial| trial.is_over() && trial.workspace.as_ref().is_none_or(Workspace::is_gone)) {
        return Decision::ignore("the trial has ended");
    }
    let mut trial = held.cloned().unwrap_or_else(|| Trial::new(job.sweep.clone(), index, job.job.clone()));
    if !trial.is_over() {
        trial.fail(StopReason::JobLost);
    }
    let calls = workspace::apply(&mut trial, plan, &Fact::Due, context);
    let needed = workspace::look_up(&trial, context);
    let decision = workspace::changed(sweep, held, trial, "lost", context).then_all(calls);
    needed.into_iter().fold(decision, Decision::next)
}

fn lost_part(view: &View, job: &DescribedJob) -> Decision {
    let part = view.sweep.as_ref().and_then(|Versioned { record: Sweep { plan, .. }, .. }| {
        plan.as_ref()?.parts.iter().position(|part| part.job.as_deref() == Some(job.job.parent.as_str()))
    });
    match part.and_then(|part| u32::try_from(part).ok()) {
        Some(part) => {
            let (sweep, parent) = (job.sweep.clone(), job.job.parent.clone());
            let ended = PartJob { sweep, part, job: parent, status: JobStatus::Failed };
            Decision::advance("lost").next(Followup::PartEnded(ended))
        }
        None => Decision::ignore("not a job of the sweep"),
    }
}
