//! Trainings that hang: each attempt is ended, and the trial goes on from its checkpoint, until the trial fails.

use std::time::Duration;

use spotsweep_records::trial::{Attempt, JobStatus};
use spotsweep_report::diagnosis::why;
use spotsweep_simulation::run::{Chaos, Mixture, Simulation};

/// A trial whose attempts each hang after their first checkpoint. There are no other faults.
fn hanging(epochs: u32) -> Simulation {
    let chaos = Chaos { hangs: 1.0, ends_after: Duration::from_secs(86_400), ..Chaos::none() };
    let mixture = Mixture {
        chaos,
        zones: 1,
        trials: 1,
        epochs,
        budget: None,
        restores: false,
        data: None,
        ..Mixture::of_seed(0)
    };
    let (failing_volumes, failing_starts, failing_snapshots) = (0, 0, 0);
    let mixture = Mixture { failing_volumes, failing_starts, failing_snapshots, ..mixture };
    let mut simulation = Simulation::mixed(7, &mixture);
    simulation.keep_log();
    simulation.run().unwrap();
    simulation
}

#[test]
fn two_stalls_are_interruptions_and_the_third_fails_the_trial() {
    for (epochs, status, attempts) in [(3, JobStatus::Succeeded, 3), (9, JobStatus::Failed, 3)] {
        let simulation = hanging(epochs);
        let (_, trials) = simulation.harness.store.state();
        let trial = &trials[0];
        assert_eq!((trial.status, trial.attempts.len()), (status, attempts), "{:#?}", simulation.log());
        let starts: Vec<u32> = simulation.watch.resumes.iter().map(|resume| resume.step).collect();
        assert_eq!(starts, [0, 10, 20], "each goes on from the checkpoint of the one before");
        let stalled = trial.attempts.values().filter(|attempt| Attempt::has_stalled(attempt)).count();
        let notified = simulation.log().iter().filter(|line| line.contains("is stalled since")).count();
        assert_eq!(notified, stalled, "people are notified of each");
        if status == JobStatus::Failed {
            // The runner looks every few seconds, so that it ends a stall somewhat after the limit.
            let why = why(trial);
            assert!(why.starts_with("stalled: no output, metric, checkpoint or GPU activity for 10 min"), "{why}");
        }
    }
}
