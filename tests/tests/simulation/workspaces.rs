//! Workspaces through reclaims, lost events, killed functions and throttled calls. What was sealed is never lost, and
//! nothing is left over. Every step is checked by `simulation/src/run/invariants.rs`.

use std::time::Duration;

use spotsweep_simulation::harness::Account;
use spotsweep_simulation::kernel::RECONCILE;
use spotsweep_simulation::run::{BY_HAND, Chaos, Simulation};
use spotsweep_world::Timings;
use spotsweep_world::Trouble;

const SWEEP: &str = "method: grid\nparameters: {a: {values: [1, 2, 3]}, b: {values: [1, 2]}}\n";

/// Some of its trainings stall. After the last reclaim, only the limit of `stalled` ends them.
const STALLING: &str =
    "method: grid\nparameters: {a: {values: [1, 2, 3]}, b: {values: [1, 2]}}\nspotsweep: {stalled: 10m}\n";

/// A sweep of two trials. It is short, so that it can be run once for each of its calls.
const PAIR: &str = "- {a: 1}\n- {a: 2}\n";

fn account() -> Account {
    Account {
        timings: Timings::realistic(),
        zones: ["us-east-1a", "us-east-1b", "us-east-1c"].map(String::from).into(),
        workspace_gib: 20,
        ..Account::default()
    }
}

/// Reclaims of every kind, without other faults.
fn reclaims(most: usize) -> Chaos {
    Chaos {
        reclaim_every: Some(Duration::from_secs(300)),
        unannounced: 0.4,
        zone_wide: 0.2,
        most_reclaims: most,
        ..Chaos::none()
    }
}

fn run(seed: u64, chaos: Chaos, file: &str) -> Simulation {
    let shown = format!("{chaos:?}");
    let mut simulation = Simulation::new(seed, &account(), chaos, file);
    if let Err(problem) = simulation.run() {
        panic!("seed {seed}, {shown}, {:?}, {} reclaims: {problem}", simulation.elapsed(), simulation.reclaims());
    }
    simulation
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn undisturbed_trials_mount_once_and_leave_nothing() {
    let simulation = run(1, Chaos::none(), SWEEP);
    assert_eq!(simulation.watch.resumes.len(), 6);
    assert!(simulation.elapsed() < Duration::from_secs(3600), "{:?}", simulation.elapsed());
}

#[test]
fn the_same_seed_is_the_same_run() {
    let mut logs = Vec::new();
    for _ in 0..2 {
        let mut simulation = Simulation::new(17, &account(), Chaos::all(), STALLING);
        simulation.keep_log();
        simulation.run().unwrap();
        logs.push(simulation.log().join("\n"));
    }
    assert!(logs[0].lines().count() > 100, "{}", logs[0]);
    assert_eq!(logs[0], logs[1]);
}

#[test]
fn everything_at_once() {
    let (first, seeds) = (number("FIRST_SEED", 0), number("SEEDS", 100));
    let (mut moved, mut reclaims, mut resumes) = (0, 0, 0);
    for seed in first..first + seeds {
        let simulation = run(seed, Chaos::all(), STALLING);
        moved += simulation.watch.resumes.iter().filter(|resume| resume.moved).count();
        resumes += simulation.watch.resumes.len();
        reclaims += simulation.reclaims();
    }
    println!("{seeds} seeds, {reclaims} reclaims, {resumes} attempts mounted, {moved} in another zone");
    assert!(moved > 0);
}

#[test]
fn every_best_effort_event_may_be_lost() {
    for seed in 0..30 {
        run(seed, Chaos { lost: 1.0, ..reclaims(6) }, SWEEP);
    }
}

#[test]
fn everything_may_come_twice_and_in_another_order() {
    for seed in 0..30 {
        run(seed, Chaos { doubled: 1.0, delay: Duration::from_secs(120), ..reclaims(6) }, SWEEP);
    }
}

#[test]
fn every_ec2_call_may_be_throttled() {
    for seed in 0..30 {
        run(seed, Chaos { throttled: 0.5, ..reclaims(6) }, SWEEP);
    }
}

/// A function is killed at every fault point of a run, once in each run: before and after each call on AWS.
#[test]
fn a_function_may_die_between_any_two_of_its_calls() {
    let seed = 3;
    let whole = run(seed, reclaims(3), PAIR);
    assert!(whole.reclaims() > 0 && whole.watch.resumes.len() > 2, "{:?}", whole.watch.resumes);
    let mut longest = Duration::ZERO;
    for point in 0..whole.passed() {
        let simulation = run(seed, Chaos { killed_at: Some(point), ..reclaims(3) }, PAIR);
        longest = longest.max(simulation.elapsed());
    }
    println!("{} fault points; undisturbed {:?}, longest {longest:?}", whole.passed(), whole.elapsed());
    assert!(longest <= whole.elapsed() + RECONCILE, "a death cost more than the reconcile period: {longest:?}");
}

/// Time from the container's start until its workspace is mounted: the part of the move that does not overlap with boot
/// and image pull.
#[test]
fn a_migration_is_over_before_the_container_starts() {
    let wanted = number("MIGRATIONS", 100);
    let mut waits = Vec::new();
    let mut seed = 0;
    while (waits.len() as u64) < wanted {
        let simulation = run(seed, reclaims(10), SWEEP);
        waits.extend(simulation.watch.resumes.iter().filter(|resume| resume.moved).map(|resume| resume.waited_seconds));
        seed += 1;
    }
    waits.sort_by(f64::total_cmp);
    let (median, worst) = (waits[waits.len() / 2], waits[waits.len() - 1]);
    let none = waits.iter().filter(|wait| **wait == 0.0).count();
    println!("{} migrations: median {median} s, worst {worst} s, {none} without any wait", waits.len());
    assert!(median < 1.0, "{waits:?}");
}

/// Runs a sweep with these faults and more trouble.
fn run_with(seed: u64, chaos: Chaos, file: &str, trouble: impl FnOnce(&mut Trouble)) -> Simulation {
    let mut simulation = Simulation::new(seed, &account(), chaos, file);
    trouble(simulation.harness.cloud.world().trouble_mut());
    if let Err(problem) = simulation.run() {
        panic!("seed {seed}, {:?}, {} reclaims: {problem}", simulation.elapsed(), simulation.reclaims());
    }
    simulation
}

fn notes(simulation: &Simulation) -> String {
    let (_, trials) = simulation.harness.store.state();
    let workspaces = trials.iter().filter_map(|trial| trial.workspace.as_ref());
    workspaces.flat_map(|workspace| workspace.notes.clone()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_full_quota_is_waited_for_and_said() {
    let simulation = run_with(5, Chaos::none(), SWEEP, |trouble| trouble.volume_limit = Some(3));
    assert!(notes(&simulation).contains("VolumeLimitExceeded"), "{}", notes(&simulation));
    assert!(simulation.watch.resumes.iter().any(|resume| resume.attempt > 1), "no attempt had to leave");
}

#[test]
fn snapshots_that_fail_are_taken_again() {
    let simulation = run_with(7, reclaims(8), SWEEP, |trouble| trouble.failing_snapshots = 5);
    assert!(notes(&simulation).contains("failed"), "{}", notes(&simulation));
}

#[test]
fn volumes_that_fail_are_made_again_under_another_token() {
    let simulation = run_with(9, reclaims(6), SWEEP, |trouble| trouble.failing_volumes = 5);
    assert!(notes(&simulation).contains("could not be made"), "{}", notes(&simulation));
}

#[test]
fn what_was_just_made_may_not_be_found_for_a_while() {
    for seed in 0..10 {
        run_with(seed, reclaims(6), SWEEP, |trouble| trouble.visible_after_ms = 20_000);
    }
}

#[test]
fn request_limits_slow_down_and_lose_nothing() {
    run_with(11, reclaims(6), SWEEP, |trouble| trouble.request_limits = true);
}

#[test]
fn a_trial_goes_on_past_the_attempts_of_one_job() {
    let chaos = Chaos { reclaim_every: Some(Duration::from_secs(200)), most_reclaims: 40, ..reclaims(40) };
    let mut simulation = Simulation::new(13, &account(), chaos, "- {a: 1}\n");
    simulation.epochs = 80;
    if let Err(problem) = simulation.run() {
        panic!("{:?}, {} reclaims: {problem}", simulation.elapsed(), simulation.reclaims());
    }
    let (_, trials) = simulation.harness.store.state();
    assert!(trials[0].round > 0 && trials[0].ended > 10, "{} attempts", trials[0].ended);
    assert_eq!(trials[0].attempts.len() as u32, trials[0].ended, "every attempt is remembered");
}

/// The case of the AWS post: one trial, and a named volume whose datasets were written by hand.
#[test]
fn a_volume_made_by_hand_is_adopted_moves_and_stays() {
    let mut moved = 0;
    for seed in 0..20 {
        let file = format!("trials: [{{a: 1}}]\nspotsweep: {{workspace: {{volume: {BY_HAND}}}}}\n");
        let mut simulation = Simulation::new(seed, &account(), reclaims(6), &file);
        simulation.make_by_hand("us-east-1b");
        simulation.epochs = 30;
        if let Err(problem) = simulation.run() {
            panic!("seed {seed}, {:?}, {} reclaims: {problem}", simulation.elapsed(), simulation.reclaims());
        }
        moved += simulation.watch.resumes.iter().filter(|resume| resume.moved).count();
        let world = simulation.harness.cloud.world();
        let left = world.leftovers();
        assert_eq!((left.volumes.len(), left.snapshots.len()), (1, 0), "{left:?}");
        let files = world.files_of_volume(&left.volumes[0].id);
        assert!(files.content("checkpoints/step-000300.gz").is_some(), "{:?}", files.seen().files.keys());
    }
    assert!(moved > 0);
}
