//! A later sweep goes on from the kept workspace of a failed trial.

use std::time::Duration;

use jiff::Timestamp;
use spotsweep_control_plane::settings::LEASE;
use spotsweep_records::sweep::{Stage, Sweep};
use spotsweep_records::trial::Trial;
use spotsweep_records::workspace::Workspace;
use spotsweep_simulation::harness::{Account, QUEUE};
use spotsweep_simulation::invocation::InvocationFault;
use spotsweep_simulation::run::{Chaos, Simulation};

/// The kept snapshot of the first sweep's trial, and until when it is kept.
fn kept(simulation: &Simulation) -> Option<(String, Timestamp)> {
    let (sweeps, trials) = simulation.harness.store.state();
    let first = sweeps.iter().find(|sweep| sweep.upload.key == "sweeps/sim.yaml")?;
    let trial = trials.iter().find(|trial| trial.sweep == first.id)?;
    let kept = trial.workspace.as_ref().and_then(Workspace::kept)?;
    Some((kept.snapshot?.to_owned(), kept.until))
}

fn settled(simulation: &Simulation) -> usize {
    let (sweeps, _) = simulation.harness.store.state();
    sweeps.iter().filter(|sweep| sweep.stage == Stage::Settled).count()
}

/// A sweep whose script has failed after its last step and after moves to other zones. Its workspace is kept.
pub(super) fn failed() -> Simulation {
    let chaos =
        Chaos { fails: Some(0), reclaim_every: Some(Duration::from_secs(200)), most_reclaims: 3, ..Chaos::none() };
    let account = Account { workspace_gib: 20, ..Account::default() };
    let file = "trials: [{a: 1}]\nspotsweep: {workspace: {keep_failed: 1h}}\n";
    let mut simulation = Simulation::new(5, &account, chaos, file);
    simulation.epochs = 3;
    simulation.run_until(|simulation| settled(simulation) == 1 && kept(simulation).is_some()).unwrap();
    simulation
}

/// Drops another sweep, which goes on from the first one and trains for longer.
pub(super) fn go_on(simulation: &mut Simulation) {
    let (snapshot, _) = kept(simulation).unwrap();
    let file = format!("trials: [{{a: 1}}]\nspotsweep: {{workspace: {{snapshots: [{snapshot}], keep_failed: 0}}}}\n");
    simulation.drop_file("again.yaml", &file);
    simulation.epochs = 6;
    simulation.run_until(|simulation| settled(simulation) == 2).unwrap();
}

#[test]
fn a_later_sweep_goes_on_from_what_is_kept() {
    let mut simulation = failed();
    let (_, until) = kept(&simulation).unwrap();
    let before = simulation.watch.resumes.len();
    go_on(&mut simulation);
    let resume = &simulation.watch.resumes[before];
    assert!(resume.step >= 20, "three epochs of ten steps were trained before: {resume:?}");
    let (_, longer) = kept(&simulation).expect("it is still there");
    assert!(longer.duration_since(until).as_hours() >= 22, "{until} has become {longer}");

    // In the end nothing is left of either sweep.
    simulation.run().unwrap();
    assert_eq!(kept(&simulation), None);
}

/// The later sweep as it is stored.
fn again(simulation: &Simulation) -> Option<Sweep> {
    let (sweeps, _) = simulation.harness.store.state();
    sweeps.into_iter().find(|sweep| sweep.upload.key == "sweeps/again.yaml")
}

/// Asserts that the later sweep is submitted only after the earlier trial has recorded it.
fn check_order(simulation: &Simulation, when: &str) {
    let Some(sweep) = again(simulation) else { return };
    if simulation.harness.cloud.jobs_named(&sweep.job_name(0), QUEUE).is_empty() {
        return;
    }
    let (_, trials) = simulation.harness.store.state();
    let notes = |trial: &Trial| trial.workspace.as_ref().is_some_and(|of| of.continued_by.contains(&sweep.id));
    assert!(trials.iter().any(notes), "{when}");
}

#[test]
fn whatever_dies_nothing_is_submitted_before_what_it_goes_on_from_is_kept() {
    for dies_at in 0.. {
        let simulation = &mut failed();
        let (snapshot, _) = kept(simulation).unwrap();
        let file = format!("trials: [{{a: 1}}]\nspotsweep: {{workspace: {{snapshots: [{snapshot}]}}}}\n");
        let dropped = simulation.harness.put("again.yaml", &file);
        // `left` is the number of fault points, over all invocations, until an invocation is killed.
        let (mut left, mut next) = (Some(dies_at), vec![dropped.clone()]);
        for turn in 0..12 {
            let mut again_later = Vec::new();
            while let Some(event) = next.pop() {
                let fault = InvocationFault { dies_at: left, ..InvocationFault::default() };
                let invoked = simulation.harness.invoke_with(&event, fault);
                let has_died = invoked.answer.is_none();
                left = left.filter(|_| !has_died).map(|left| left - invoked.passed);
                // Lambda retries the upload's event. The control plane's own event is lost, although AWS would retry it
                // too.
                again_later.extend((has_died && event == dropped).then_some(event));
                check_order(simulation, &format!("dies at {dies_at}, turn {turn}"));
                next.extend(simulation.harness.announced());
            }
            simulation.harness.pass(LEASE);
            next = if again_later.is_empty() { vec![simulation.harness.reconcile()] } else { again_later };
        }
        let sweep = again(simulation).expect("it is on record");
        assert_eq!(sweep.stage, Stage::Running, "dies at {dies_at}");
        if left.is_some() {
            assert!(dies_at > 50, "the death was before the end: {dies_at}");
            return;
        }
    }
}

#[test]
fn what_is_kept_outlives_a_sweep_that_waits_for_days() {
    let mut simulation = failed();
    let (snapshot, _) = kept(&simulation).unwrap();
    let close = |simulation: &Simulation, capacity| {
        for zone in ["us-east-1a", "us-east-1b"] {
            simulation.harness.cloud.world().set_zone_capacity(zone, capacity, simulation.harness.now);
        }
    };
    close(&simulation, Some(0));
    let file = format!("trials: [{{a: 1}}]\nspotsweep: {{workspace: {{snapshots: [{snapshot}], keep_failed: 0}}}}\n");
    simulation.drop_file("again.yaml", &file);
    let before = simulation.elapsed();
    simulation.run_until(|simulation| simulation.elapsed() > before + Duration::from_secs(5 * 86_400)).unwrap();
    assert_eq!(kept(&simulation).map(|(kept, _)| kept), Some(snapshot), "its own time was an hour");
    close(&simulation, None);
    simulation.epochs = 6;
    simulation.run_until(|simulation| settled(simulation) == 2).unwrap();
    let ended = simulation.elapsed();
    simulation.run_until(|simulation| kept(simulation).is_none()).unwrap();
    assert!(simulation.elapsed() < ended + Duration::from_secs(25 * 3600), "it goes within a day");
}

/// In some seeds a reclaim cuts a download off.
#[test]
fn a_later_sweep_goes_on_from_what_is_collected_of_a_success() {
    for seed in 0..30 {
        let chaos = Chaos { reclaim_every: Some(Duration::from_secs(100)), most_reclaims: 8, ..Chaos::none() };
        let account = Account { workspace_gib: 20, ..Account::default() };
        let mut simulation = Simulation::new(seed, &account, chaos, "trials: [{a: 1}]\n");
        simulation.epochs = 3;
        simulation.run_until(|simulation| settled(simulation) == 1).unwrap();
        let of = simulation.collected().expect("its newest checkpoint is in the bucket");
        let (before, trained) = (simulation.watch.resumes.len(), simulation.watch.resumes.last().unwrap().step);
        simulation.drop_file("again.yaml", &format!("trials: [{{a: 1}}]\nspotsweep: {{checkpoints_of: [{of}]}}\n"));
        simulation.run_until(|simulation| settled(simulation) == 2).unwrap();
        let resumes = &simulation.watch.resumes[before..];
        assert!(resumes.iter().all(|resume| resume.step >= trained.max(20)), "seed {seed}: {resumes:?}");
        simulation.run().unwrap();
    }
}

#[test]
fn a_snapshot_that_is_gone_is_refused_at_once() {
    let account = Account { workspace_gib: 20, ..Account::default() };
    let file = "trials: [{a: 1}]\nspotsweep: {workspace: {snapshots: [snap-0a]}}\n";
    let mut simulation = Simulation::new(5, &account, Chaos::none(), file);
    let is_rejected = |simulation: &Simulation| simulation.harness.store.has_sweep_in(&Stage::Rejected);
    simulation.run_until(is_rejected).unwrap();
    let answer = simulation.harness.cloud.get("sweeps/sim.yaml.rejected.json").expect("an answer");
    assert!(String::from_utf8(answer).unwrap().contains("there is no snapshot snap-0a"));
}
