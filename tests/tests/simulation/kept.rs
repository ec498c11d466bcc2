//! What is kept of a trial that failed: a later sweep goes on from it.

use std::time::Duration;

use jiff::Timestamp;
use spotsweep_control_plane::sweep::Stage;
use spotsweep_control_plane::workspace::Workspace;
use spotsweep_simulation::harness::Account;
use spotsweep_simulation::run::{Chaos, Simulation};

/// The snapshot that is kept of the first sweep's trial, and until when.
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

/// A sweep whose script has failed after its last step, after moves through zones; its workspace is saved.
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

/// Another sweep trains the same for longer.
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
    assert!(longer.duration_since(until).as_hours() > 24 * 13, "{until} has become {longer}");

    // In the end nothing is left of either.
    simulation.run().unwrap();
    assert_eq!(kept(&simulation), None);
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
