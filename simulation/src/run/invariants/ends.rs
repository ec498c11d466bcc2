//! How trials may end.

use std::time::Duration;

use spotsweep_protocol::claim::UNAVAILABLE;
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::{Attempt, JobStatus, MAX_FALSE_STARTS, Reason, Standing, Trial};

use super::super::Simulation;

/// Whether a trial failed because of a permanent refusal of its workspace, and nothing was sealed.
fn is_refused(run: &Simulation, trial: &Trial) -> bool {
    let lasts = run.chaos.unusable_key || matches!(run.chaos.denied, Some(("CreateVolume" | "AttachVolume", None)));
    let reason = trial.attempts.values().next_back().and_then(|attempt| attempt.reason.as_ref());
    let is_refused_for_good = matches!(reason.and_then(Reason::stopped), Some(StopReason::Workspace { .. }));
    trial.status == JobStatus::Failed && lasts && is_refused_for_good && run.watch.sealed(&trial.of()) == 0
}

/// Whether a trial failed because its attempts were used up while a permission was missing all the time. A volume that
/// cannot be detached fills an instance, and a volume that cannot be copied reaches no other zone. Each attempt there
/// leaves without a workspace. Sealed files are kept for a retry.
fn is_used_up(run: &Simulation, sweeps: &[Sweep], trial: &Trial) -> bool {
    let lacks = matches!(run.chaos.denied, Some((_, None)));
    let attempts = sweeps.iter().find_map(|sweep| sweep.plan.as_ref()).map_or(0, |plan| usize::from(plan.attempts));
    let is_used_up = trial.ended_attempts().count() >= attempts;
    trial.status == JobStatus::Failed && lacks && is_used_up
}

/// Whether a trial failed because its training stalled a third time.
fn has_hung(trial: &Trial) -> bool {
    let last = trial.attempts.values().next_back();
    trial.status == JobStatus::Failed && stalls(trial) == 3 && last.is_some_and(Attempt::has_stalled)
}

fn stalls(trial: &Trial) -> usize {
    trial.attempts.values().filter(|attempt| attempt.has_stalled()).count()
}

pub(super) fn hangs_end(run: &Simulation) -> Result<(), String> {
    let mut result = Ok(());
    run.harness.store.each_trial(|trial| {
        let stalls = stalls(trial);
        if stalls > 3 || (stalls == 3 && trial.status == JobStatus::Succeeded) {
            result = Err(format!("{} has gone on after {stalls} stalls: {:?}", trial.of(), trial.status));
        }
    });
    result
}

/// Each trial that has not succeeded must have a reason that its run accounts for.
pub(super) fn all_succeeded(run: &Simulation) -> Result<(), String> {
    let (sweeps, trials) = run.harness.store.state();
    // Clocks are wrong by some seconds.
    let now = run.harness.now + Duration::from_secs(60);
    let is_stopped = sweeps.iter().any(|sweep| sweep.stopped.is_some() || sweep.over_budget(None, now).is_some());
    let exit_code = |trial: &Trial| trial.attempts.values().next_back().and_then(|attempt| attempt.exit_code);
    let has_failed = |trial: &Trial| {
        run.chaos.fails == Some(trial.index) && trial.standing() == Standing::Failed && exit_code(trial) == Some(1)
    };
    // No other instance could show that its instance was to blame.
    let has_no_other = |trial: &Trial| run.watch.has_failed_alone(&trial.of());
    let is_early = |trial: &Trial| trial.standing() == Standing::Stopped;
    let may_end = |trial: &Trial| {
        let is_denied = is_refused(run, trial) || is_used_up(run, &sweeps, trial);
        // EC2 took each of the instances before the container ran, or it was unfit.
        let never_starts = trial.false_starts() >= MAX_FALSE_STARTS;
        let is_excused = has_failed(trial) || has_no_other(trial) || has_hung(trial) || is_early(trial);
        let lacks_data = exit_code(trial) == Some(UNAVAILABLE.into()) && run.watch.has_lacked_data(&trial.of());
        is_denied || is_excused || never_starts || lacks_data || has_few_attempts(run, &sweeps, trial)
    };
    let is_open = |trial: &&Trial| trial.status != JobStatus::Succeeded && !may_end(trial);
    match trials.iter().filter(|_| !is_stopped).find(is_open) {
        Some(trial) => Err(format!("trial {} has not: {:?} {:?}", trial.index, trial.status, trial.reason)),
        None => Ok(()),
    }
}

/// Whether a trial has used up the few attempts that its sweep file grants.
fn has_few_attempts(run: &Simulation, sweeps: &[Sweep], trial: &Trial) -> bool {
    run.data.is_some() && trial.status == JobStatus::Failed && run.watch.counted(trial) >= attempts(sweeps, trial)
}

fn attempts(sweeps: &[Sweep], trial: &Trial) -> usize {
    let plan = sweeps.iter().find(|sweep| sweep.id == trial.sweep).and_then(|sweep| sweep.plan.as_ref());
    plan.map_or(0, |plan| usize::from(plan.attempts))
}

/// An attempt that is interrupted while it fetches says nothing about the trial, until there are many of them.
pub(super) fn fetching_costs_nothing(run: &Simulation) -> Result<(), String> {
    let (sweeps, trials) = run.harness.store.state();
    let is_open = |trial: &&Trial| sweeps.iter().any(|sweep| sweep.id == trial.sweep && sweep.stopped.is_none());
    let has_failed = |trial: &&Trial| trial.status == JobStatus::Failed && trial.stopped.is_none();
    let ended = trials.iter().filter(is_open).filter(has_failed).filter(|trial| run.watch.ended_while_fetching(trial));
    for trial in ended {
        let (counted, most) = (run.watch.counted(trial), attempts(&sweeps, trial));
        if counted < most && trial.false_starts() < MAX_FALSE_STARTS {
            let what = "attempts that count, the last one of all while it fetched";
            return Err(format!("{} has failed after {counted} of {most} {what}", trial.of()));
        }
    }
    Ok(())
}
