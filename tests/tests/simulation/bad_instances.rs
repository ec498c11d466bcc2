//! Instances on which nothing can be trained: Batch places the next trial where the last one has just failed.

use std::time::Duration;

use spotsweep_control_plane::trial::{Attempt, JobStatus, Trial};
use spotsweep_simulation::injected_bug::InjectedBug;
use spotsweep_simulation::run::{Chaos, Mixture, Simulation};

/// Trials of the sweep.
const TRIALS: u32 = 12;

/// A sweep of which the first instance is bad; nothing else goes wrong.
fn sweep() -> Simulation {
    let chaos = Chaos { ends_after: Duration::from_secs(86_400), ..Chaos::none() };
    let mixture =
        Mixture { chaos, zones: 2, trials: TRIALS, epochs: 10, defective_instances: 1, ..Mixture::of_seed(0) };
    let (failing_volumes, failing_starts, failing_snapshots) = (0, 0, 0);
    let mixture = Mixture { failing_volumes, failing_starts, failing_snapshots, budget: None, ..mixture };
    Simulation::mixed(7, &Mixture { early_terminate: None, suggested: None, ..mixture })
}

fn count(trials: &[Trial], holds: impl Fn(&Attempt) -> bool) -> usize {
    trials.iter().flat_map(|trial| trial.attempts.values()).filter(|attempt| holds(attempt)).count()
}

#[test]
fn one_bad_instance_costs_an_attempt_for_each_trial_that_it_has_room_for() {
    let mut simulation = sweep();
    simulation.run().unwrap();
    let (_, trials) = simulation.harness.store.state();
    assert!(trials.iter().all(|trial| trial.status == JobStatus::Succeeded), "{trials:#?}");
    assert_eq!(count(&trials, |attempt| attempt.unfit().is_some()), 2, "two trials share an instance");
    assert_eq!(count(&trials, |_| true), TRIALS as usize + 2);
    assert!(trials.iter().all(|trial| trial.tried() == 1), "what the instance has cost is no attempt at the trial");
}

#[test]
fn without_the_runners_look_it_fails_half_of_the_sweep() {
    let mut simulation = sweep();
    simulation.plant(InjectedBug::SkipInstanceCheck);
    let problem = simulation.run().unwrap_err();
    assert!(problem.starts_with("every trial has succeeded"), "{problem}");
    let (_, trials) = simulation.harness.store.state();
    let failed = trials.iter().filter(|trial| trial.status == JobStatus::Failed).count();
    assert!(failed >= TRIALS as usize / 2, "{failed} of {TRIALS} trials failed on one instance");
}
