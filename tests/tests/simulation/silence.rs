//! Runners that do not report, because their instance is dead or cut off.

use std::time::Duration;

use spotsweep_records::trial::{InstanceStatus, JobStatus, Trial};
use spotsweep_simulation::run::{Chaos, Mixture, Simulation};

/// A sweep of one trial. The instance of its first attempt vanishes, and there are no other faults.
fn vanishing(seed: u64) -> Simulation {
    let chaos = Chaos { vanishing: 1.0, ends_after: Duration::from_secs(600), ..Chaos::none() };
    let mixture = Mixture {
        chaos,
        zones: 1,
        trials: 1,
        epochs: 10,
        budget: None,
        restores: false,
        data: None,
        ..Mixture::of_seed(0)
    };
    let (failing_volumes, failing_starts, failing_snapshots) = (0, 0, 0);
    let mixture = Mixture { failing_volumes, failing_starts, failing_snapshots, defective_instances: 0, ..mixture };
    let mut simulation = Simulation::mixed(seed, &mixture);
    simulation.keep_log();
    simulation.run().unwrap();
    simulation
}

fn trial(simulation: &Simulation) -> Trial {
    simulation.harness.store.state().1.remove(0)
}

/// Time in seconds of the first line with this text.
fn second_of(log: &[String], text: &str) -> Option<f64> {
    let line = log.iter().find(|line| line.contains(text))?;
    let at: jiff::Timestamp = line.split_whitespace().next()?.parse().ok()?;
    Some(at.as_millisecond() as f64 / 1000.0)
}

#[test]
fn a_dead_instance_is_ended_and_one_that_is_cut_off_is_left() {
    let (mut ended, mut left) = (0, 0);
    for seed in 0..12 {
        let simulation = vanishing(seed);
        let (trial, log) = (trial(&simulation), simulation.log());
        assert_eq!(trial.status, JobStatus::Succeeded, "{log:#?}");
        let notified = log.iter().filter(|line| line.contains("notified: attempt 1: no report since")).count();
        let Some(stood_still) = second_of(log, "stands still") else {
            assert_eq!((notified, trial.attempts.len(), &trial.silence), (1, 1, &None), "{log:#?}");
            left += 1;
            continue;
        };
        assert_eq!((notified, trial.attempts.len()), (1, 2), "{log:#?}");
        let silence = trial.silence.as_ref().unwrap();
        assert_eq!((silence.attempt, silence.status), (1, InstanceStatus::Impaired));
        assert!(trial.attempts[&1].was_interrupted(), "{trial:#?}");
        let until = second_of(log, "instance-ended").unwrap() - stood_still;
        assert!(until < 21.0 * 60.0, "{until} s until the instance was ended");
        ended += 1;
    }
    assert!(ended >= 2 && left >= 2, "{ended} ended, {left} left");
}
