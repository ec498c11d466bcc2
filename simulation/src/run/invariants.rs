//! The invariants. A new one is an entry of [`INVARIANTS`] and the function that it names. Besides the account it
//! checks what [`Watch`](super::Watch) has recorded.

mod ends;

use std::time::Duration;

use spotsweep_control_plane::settings::{LONGEST_BACKOFF, RECHECK};
use spotsweep_protocol::silence::SILENT_AFTER;
use spotsweep_records::trial::{Standing, Trial};
use spotsweep_world::ebs::VolumeState;
use spotsweep_world::{Instance, InstanceState, World};

use super::Simulation;
use super::training::STEPS;
use super::training::load::newest_whole;
use super::watch::Seen;
use crate::kernel::RECONCILE;
use ends::{all_succeeded, fetching_costs_nothing, hangs_end};

/// The most calls of one occasion. An attempt needs about forty from claim to release, and everything else needs fewer.
const CALLS_PER_OCCASION: u64 = 40;

/// EC2's reason code for an instance that was ended by a call.
const USER_INITIATED: &str = "Client.UserInitiatedShutdown";

/// A condition that must hold.
#[derive(Debug, Clone, Copy)]
pub struct Invariant {
    /// The statement that must be true, for messages.
    pub name: &'static str,
    /// Whether it is checked after every step.
    pub after_every_step: bool,
    /// Whether it is checked when the sweep has settled.
    pub at_the_end: bool,
    holds: fn(&Simulation) -> Result<(), String>,
}

const fn always(name: &'static str, holds: fn(&Simulation) -> Result<(), String>) -> Invariant {
    Invariant { name, after_every_step: true, at_the_end: true, holds }
}

const fn finally(name: &'static str, holds: fn(&Simulation) -> Result<(), String>) -> Invariant {
    Invariant { name, after_every_step: false, at_the_end: true, holds }
}

/// All invariants.
pub const INVARIANTS: &[Invariant] = &[
    always("what was sealed is held", sealed_is_held),
    always("progress is not lost", progress_stays),
    always("a training saves at the stop signal, where its script does and the grace suffices", saves_at_signal),
    always("a training goes on from what one save has written", nothing_mixed),
    always("no complete checkpoint is put aside", nothing_complete_put_aside),
    always("at most one attempt holds a workspace", one_holder),
    always("a runner that knows of its end has closed its workspace by then", closed_in_time),
    always("a runner that is not answered ends when its patience is over", patience_ends),
    always("an attempt that has the time seals its workspace before it leaves", last_seal_is_there),
    always("a trial trains only on its own volume", own_volume),
    always("no GPU is used by two trials at once", gpus_are_own),
    always("a reclaim costs a trial at most one attempt more than the one that it interrupts", reclaim_costs_one),
    always("nothing is attached to an instance that is known to be under notice", nothing_attached_under_notice),
    always("an instance that cannot train takes one more attempt at most when one has left it", bad_instances_are_left),
    always("no trial fails because of its instance where others train", instances_are_blamed),
    always("no dead instance is billed for long", dead_are_ended),
    always("no instance is ended that works", working_stay),
    always("a refusal that lasts costs a trial that has not trained no further attempt", lasting_refusal_costs_none),
    always("a trial that hangs is interrupted twice at most, and then it fails", hangs_end),
    always("a trial that has succeeded has trained to its end", success_is_whole),
    always("no forged request is taken", nothing_forged),
    always("what is on record of a trial stays when it has ended", records_stay),
    always("a decision at a rung is made once, and stays", decisions_stay),
    always("no two trials are given the same parameters", given_once),
    always("no trial better than the cut is stopped", stops_are_fair),
    always("a trial that is stopped early trains no further", stopped_stays_stopped),
    always("nothing illegal is decided", nothing_illegal),
    always("each function does only what its role allows", within_roles),
    always("one file, one submission, and one job definition for an image", one_submission),
    always("a snapshot that an open sweep names outlives it", Simulation::named_are_there),
    always("a training reads only data sets that are complete, of this boot and locked by its runner", data_is_whole),
    always("no data set is changed while an attempt uses it", data_stays),
    always("no data set is fetched by two attempts of an instance at once", data_is_fetched_once),
    always("no disk of data sets gets fuller than its size", data_fits),
    finally("an interruption while data is fetched costs no trial its last attempt", fetching_costs_nothing),
    finally("nothing is left over", nothing_left),
    finally(
        "every trial has succeeded or is stopped early, or its script has failed or hangs, or the budget is reached, or its first volume is refused for good, or its attempts are used up without one, or its data sets cannot be had",
        all_succeeded,
    ),
    always("nothing stands still for longer than the reconcile period", goes_on),
    always("audit entries tell the way to what is stored", audits_tell),
    finally("calls are bounded", calls_are_bounded),
];

impl Simulation {
    /// Checks some of the invariants.
    ///
    /// # Errors
    /// The first invariant that does not hold, and why.
    pub(super) fn check(&self, which: impl Fn(&Invariant) -> bool) -> Result<(), String> {
        let broken =
            |invariant: &Invariant| (invariant.holds)(self).map_err(|why| format!("{}: {why}", invariant.name));
        INVARIANTS.iter().filter(|invariant| which(invariant)).try_for_each(broken)
    }
}

/// Invariant 1. The source of a migration is deleted only after its copy is mounted and verified. So sealed files
/// always lie on a volume that a runner has checked against its seal.
fn sealed_is_held(run: &Simulation) -> Result<(), String> {
    let world = run.harness.cloud.world();
    let mut result = Ok(());
    run.harness.store.each_trial(|trial| {
        // Nothing is kept of a trial that is stopped early.
        if !trial.is_over() && trial.stopped.is_none() && result.is_ok() {
            result = trial_is_held(run, &world, trial);
        }
    });
    result
}

/// Invariant 1, as the next attempt sees it.
fn progress_stays(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Lost)
}

/// Holds for any process that has started the training, helps it or loads its data.
fn saves_at_signal(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Unsaved)
}

/// Bytes of two saves, or zeros instead of bytes, load in formats without checksums and give a wrong model.
fn nothing_mixed(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Mixed)
}

fn nothing_complete_put_aside(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::PutAside)
}

fn trial_is_held(run: &Simulation, world: &World, trial: &Trial) -> Result<(), String> {
    let of = trial.of();
    let sealed = run.watch.sealed(&of);
    if sealed == 0 {
        return Ok(());
    }
    // The whole volume counts, because the runner also has kept copies.
    let newest = |id: &String| newest_whole(&run.chaos.habits, trial.index, world.files_of_volume(id).written(), "");
    let state = |id: &String| world.volume(id).map(|volume| volume.state);
    let is_there = |id: &&String| matches!(state(id), Some(VolumeState::Available | VolumeState::InUse));
    let kept = run.watch.verified(&of).filter(is_there).filter_map(newest).max().unwrap_or(0);
    if kept < sealed {
        let volumes: Vec<_> = run.watch.verified(&of).map(|id| (id, state(id), newest(id))).collect();
        return Err(format!("{of}: step {sealed} was sealed, and verified volumes hold less: {volumes:?}"));
    }
    Ok(())
}

/// Invariant 2.
fn one_holder(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Versioned)
}

/// The grace is there so that the runner can seal and unmount in order.
fn closed_in_time(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Late)
}

fn patience_ends(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Insistent)
}

fn last_seal_is_there(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Unsealed)
}

/// A wrong volume puts the model of another trial on the leaderboard and overwrites that trial's checkpoints.
fn own_volume(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Foreign)
}

fn gpus_are_own(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Shared)
}

/// With draining off, Batch may place one attempt on the instance under notice (fact 9). That attempt stays there.
fn reclaim_costs_one(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Burned)
}

fn nothing_attached_under_notice(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Taken)
}

fn bad_instances_are_left(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Eaten)
}

fn instances_are_blamed(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Blamed)
}

/// The bound counts from the last report: 15 minutes until AWS is asked, rounded to the minute, and one turn of the
/// schedule. If calls have failed until then, it is a recheck and a turn longer. There is no bound while calls fail.
fn dead_are_ended(run: &Simulation) -> Result<(), String> {
    let calm = run.started + run.chaos.ends_after;
    let longest = SILENT_AFTER + RECONCILE + RECHECK + RECONCILE;
    // A late copy of a claim counts as a report if no report has followed it.
    let reported = |instance: &str| {
        let mut newest = None;
        run.harness.store.each_trial(|trial| {
            if trial.attempts.values().any(|attempt| attempt.instance.as_deref() == Some(instance)) {
                newest = newest.max(trial.reported_at);
            }
        });
        newest.unwrap_or(calm)
    };
    let is_late = |instance: &str, since| run.harness.now > calm.max(since).max(reported(instance)) + longest;
    match run.dead_and_billed().find(|(instance, since)| is_late(instance, *since)) {
        Some((instance, since)) => Err(format!("{instance} is dead since {since}, and still billed")),
        None => Ok(()),
    }
}

/// Idle instances do not count, because Batch ends them.
fn working_stay(run: &Simulation) -> Result<(), String> {
    let world = run.harness.cloud.world();
    let is_ended = |found: &&Instance| {
        let by_code = found.state_reason.map(|(code, _)| code);
        found.state == InstanceState::ShuttingDown && by_code == Some(USER_INITIATED) && found.has_jobs()
    };
    match world.instances().filter(is_ended).find(|found| !found.impaired) {
        Some(found) => Err(format!("{} was ended, and EC2 shows it as not impaired", found.id)),
        None => Ok(()),
    }
}

fn lasting_refusal_costs_none(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::SentAway)
}

/// A half-trained model on the leaderboard is worse than a crash. After a stop signal no exit code proves an end.
fn success_is_whole(run: &Simulation) -> Result<(), String> {
    let mut result = Ok(());
    run.harness.store.each_trial(|trial| {
        let (steps, total) = (run.watch.steps_of(&trial.of()), run.epochs * STEPS);
        if trial.standing() == Standing::Succeeded && steps < total {
            result = Err(format!("{} has succeeded after step {steps} of {total}", trial.of()));
        }
    });
    result
}

fn nothing_forged(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Forged)
}

/// If the record of an ended trial changes, the leaderboard has a wrong score, or another one than the record.
fn records_stay(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Changed)
}

fn decisions_stay(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Undecided)
}

fn given_once(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Doubled)
}

fn stops_are_fair(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Unfair)
}

fn stopped_stays_stopped(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Revived)
}

fn nothing_illegal(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Illegal)
}

fn within_roles(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Beyond)
}

fn data_is_whole(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Unready)
}

fn data_stays(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Disturbed)
}

fn data_is_fetched_once(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::FetchedTwice)
}

fn data_fits(run: &Simulation) -> Result<(), String> {
    run.watch.seen(Seen::Overfull)
}

/// Invariant 3: Batch has each part, and each resubmitted trial, once.
fn one_submission(run: &Simulation) -> Result<(), String> {
    let world = run.harness.cloud.world();
    let twice = world.job_named_twice().or_else(|| world.definition_with_revisions());
    twice.map_or(Ok(()), |name| Err(format!("Batch has more than one {name}")))
}

/// Invariant 4.
fn nothing_left(run: &Simulation) -> Result<(), String> {
    let left = run.left_over();
    if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
}

/// Invariant 5. After the faults end, the next two turns of the schedule find what was lost, or the next redrive finds
/// it if it had failed repeatedly. The rest is boot, image, copies and training.
fn goes_on(run: &Simulation) -> Result<(), String> {
    let training = run.epoch * run.epochs;
    let until = run.chaos.ends_after + training * 2 + RECONCILE * 2 + LONGEST_BACKOFF + Duration::from_secs(1800);
    // A vanished instance costs this much time before the counted time begins.
    let until = if run.chaos.vanishing > 0.0 { until + Duration::from_secs(3600) } else { until };
    // Trials wait for others, and fetch their data again and again.
    let until = if run.data.is_some() { until + training * 2 + Duration::from_secs(1800) } else { until };
    // Kept workspaces stay for longer.
    if run.elapsed() <= until || run.is_settled() {
        return Ok(());
    }
    Err(format!("not settled after {:?}: {}", run.elapsed(), run.watch.open(&run.harness)))
}

fn audits_tell(run: &Simulation) -> Result<(), String> {
    run.harness.store.check_audits()
}

/// An invocation looks at each trial a few times at most, apart from deletions: after a long denial one trial had
/// twelve snapshots. The calls of a sweep grow with its attempts, turns of the schedule, requests of waiting runners,
/// and faults.
fn calls_are_bounded(run: &Simulation) -> Result<(), String> {
    let (_, trials) = run.harness.store.state();
    let most = 30 + 15 * trials.len();
    if let Some((function, calls)) = run.watch.most_other_calls.iter().find(|(_, calls)| **calls > most) {
        return Err(format!(
            "an invocation of {function} made {calls} calls besides deletions, where {most} are enough"
        ));
    }
    let attempts: usize = trials.iter().map(|trial| trial.attempts.len()).sum();
    let turns = run.elapsed().as_secs() / RECONCILE.as_secs();
    let occasions = (trials.len() + attempts) as u64
        + turns * trials.len() as u64
        + run.watch.waits
        + run.watch.fetches
        + run.strokes();
    let enough = CALLS_PER_OCCASION * occasions;
    if run.watch.calls > enough {
        return Err(format!("{} calls, where {enough} are enough", run.watch.calls));
    }
    Ok(())
}
