//! Redrives what is overdue because of lost events, killed functions or failed calls.

use super::sweep_upload::{first_command, give_up, last_failure, refused, withdraw, write_plan};
use super::{Context, Decision};
use crate::command::Command;
use crate::input::Followup;
use crate::settings::LONGEST_BACKOFF;
use crate::store::{Overdue, View};
use spotsweep_protocol::ids::{DescribedJob, JobId};
use spotsweep_protocol::words::counted;
use spotsweep_records::sweep::notification::{Kind, Notification};
use spotsweep_records::sweep::{Stage, Sweep};
use spotsweep_records::workspace::TrialRef;

/// Number of redrives after which a file that still cannot be read or submitted is rejected. With waits that double up
/// to a quarter of an hour, that is about eight hours after it was dropped.
const MAX_TRIES: u32 = 34;

pub(super) fn due(view: &View) -> Decision {
    let mut jobs = Vec::new();
    let mut decision = Decision::advance(format!("{} overdue", counted(view.overdue.len(), "record")));
    for overdue in &view.overdue {
        match overdue {
            Overdue::Sweep(sweep) => decision = decision.next(Followup::SweepOverdue(sweep.clone())),
            Overdue::Trial(job) => {
                let of = |index| TrialRef { sweep: job.sweep.clone(), index };
                decision = job.index.map(of).map(Followup::TrialOverdue).into_iter().fold(decision, Decision::next);
                jobs.push(job.clone());
            }
        }
    }
    if jobs.is_empty() { decision } else { decision.then(Command::DescribeJobs(jobs)) }
}

/// Takes the lease, and then repeats what the stage implies.
pub(super) fn overdue(view: &View, context: Context<'_>) -> Decision {
    let Some(held) = &view.sweep else {
        return Decision::ignore("no such sweep here");
    };
    if !held.is_overdue(context.now) {
        return Decision::ignore("another invocation works on it");
    }
    if let Stage::Submitting { part } = held.record.stage
        && held.record.redriven >= MAX_TRIES
    {
        return refused(view, part, &last_failure(&held.record), context);
    }
    let commands = pending(&held.record);
    if commands.is_empty() {
        return Decision::ignore(format!("already {}", held.record.stage.name()));
    }
    let mut sweep = held.record.clone();
    let wait = if sweep.stage == Stage::Running { context.settings.recheck } else { backoff(&sweep, context) };
    sweep.redriven += 1;
    let what = format!("re-driving {}, time {}", sweep.stage.name(), sweep.redriven);
    let due = context.now.checked_add(wait).ok();
    Decision::advance(what).sweep(sweep, due).then_all(commands)
}

/// Returns the wait until the next redrive: the lease, doubled with every redrive of the same stage. So no retry is
/// unbounded in rate.
fn backoff(sweep: &Sweep, context: Context<'_>) -> std::time::Duration {
    let lease = context.settings.lease;
    lease.saturating_mul(2_u32.saturating_pow(sweep.redriven)).min(LONGEST_BACKOFF.max(lease))
}

/// Returns the commands that a stage implies, in their repeatable form, because the state is the outbox.
fn pending(sweep: &Sweep) -> Vec<Command> {
    let announce = |kind| Command::Notify(Notification::internal(sweep, kind));
    match (&sweep.stage, &sweep.plan) {
        (Stage::Reading | Stage::Keeping { .. }, _) if sweep.redriven >= MAX_TRIES => vec![give_up(sweep)],
        (Stage::Reading, _) => vec![first_command(sweep)],
        (Stage::Submitting { part }, Some(plan)) => {
            vec![Command::FindPart { name: sweep.job_name(*part), queue: plan.queue.clone() }]
        }
        (Stage::Announcing, Some(plan)) => vec![write_plan(sweep, plan.clone())],
        (Stage::Running, Some(plan)) => {
            let describe = |job| {
                let job = JobId { parent: job, child: None };
                DescribedJob { sweep: sweep.id.clone(), index: None, job }
            };
            vec![Command::DescribeJobs(plan.jobs().into_iter().map(describe).collect()), announce(Kind::Running)]
        }
        (Stage::Settling, _) => vec![announce(Kind::Settling)],
        (Stage::Withdrawing { refusal }, _) => vec![withdraw(sweep, refusal)],
        (Stage::Keeping { .. }, _) => vec![announce(Kind::Keeping)],
        (Stage::Settled | Stage::Rejected, _)
        | (Stage::Submitting { .. } | Stage::Announcing | Stage::Running, None) => Vec::new(),
    }
}
