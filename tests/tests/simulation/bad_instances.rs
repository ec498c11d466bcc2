//! Instances on which nothing can be trained. Batch places the next trial on an instance on which one has just failed.

use std::time::Duration;

use spotsweep_records::trial::{Attempt, JobStatus, Trial};
use spotsweep_simulation::run::{Chaos, Mixture, Simulation};

/// Number of trials in the sweep.
const TRIALS: u32 = 12;

/// A sweep whose first instances are unfit, with or without a visible defect. There are no other faults.
fn sweep(defective_instances: u32, failing_instances: u32) -> Simulation {
    let chaos = Chaos { ends_after: Duration::from_secs(86_400), ..Chaos::none() };
    let mixture = Mixture {
        chaos,
        zones: 2,
        trials: TRIALS,
        epochs: 10,
        defective_instances,
        restores: false,
        data: None,
        ..Mixture::of_seed(0)
    };
    let mixture = Mixture { failing_instances, ..mixture };
    let (failing_volumes, failing_starts, failing_snapshots) = (0, 0, 0);
    let mixture = Mixture { failing_volumes, failing_starts, failing_snapshots, budget: None, ..mixture };
    Simulation::mixed(7, &Mixture { early_terminate: None, suggested: None, ..mixture })
}

fn count(trials: &[Trial], holds: impl Fn(&Attempt) -> bool) -> usize {
    trials.iter().flat_map(|trial| trial.attempts.values()).filter(|attempt| holds(attempt)).count()
}

#[test]
fn one_bad_instance_costs_an_attempt_for_each_trial_that_it_has_room_for() {
    let mut simulation = sweep(1, 0);
    simulation.run().unwrap();
    let (_, trials) = simulation.harness.store.state();
    assert!(trials.iter().all(|trial| trial.status == JobStatus::Succeeded), "{trials:#?}");
    assert_eq!(count(&trials, |attempt| attempt.unfit().is_some()), 2, "two trials share an instance");
    assert_eq!(count(&trials, |_| true), TRIALS as usize + 2);
    assert!(trials.iter().all(|trial| trial.tried() == 1), "what the instance has cost is no attempt at the trial");
}

#[test]
fn an_instance_that_fails_each_training_ends_no_trial_where_others_train() {
    let mut simulation = sweep(0, 1);
    simulation.run().unwrap();
    let (_, trials) = simulation.harness.store.state();
    assert!(trials.iter().all(|trial| trial.status == JobStatus::Succeeded), "{trials:#?}");
    let unfit = count(&trials, |attempt| attempt.unfit().is_some());
    assert!((3..=4).contains(&unfit), "drained with the third failure, while two trials share the instance: {unfit}");
    assert_eq!(count(&trials, |_| true), TRIALS as usize + unfit);
    assert!(trials.iter().all(|trial| trial.tried() == 1), "what the instance has cost is no attempt at the trial");
}

#[test]
fn a_script_that_fails_at_once_on_every_instance_fails_for_good() {
    let mut simulation = sweep(0, TRIALS);
    simulation.run().unwrap();
    let (_, trials) = simulation.harness.store.state();
    assert!(trials.iter().all(|trial| trial.status == JobStatus::Failed), "{trials:#?}");
    assert_eq!(count(&trials, |attempt| attempt.unfit().is_some()), 0, "no instance is to blame");
    assert_eq!(count(&trials, |_| true), TRIALS as usize, "no trial is tried again");
}
