//! A sweep whose script is broken is stopped after its first failures.

use spotsweep_protocol::stop::StopReason;
use spotsweep_simulation::run::{Chaos, Mixture, Simulation};

const TRIALS: u32 = 30;

/// A sweep whose trainings fail at once on every instance.
fn broken(seed: u64) -> Simulation {
    let mixture = Mixture {
        budget: None,
        trials: TRIALS,
        failing_instances: 1000,
        suggested: None,
        continues: false,
        data: None,
        ..Mixture::of_seed(seed)
    };
    Simulation::mixed(seed, &Mixture { chaos: Chaos::none(), ..mixture })
}

#[test]
fn no_more_trials_start_than_show_that_all_fail() {
    let mut stopped = 0;
    for seed in 0..20 {
        let mut simulation = broken(seed);
        simulation.run().unwrap();
        let (sweeps, trials) = simulation.harness.store.state();
        let begun = trials.iter().filter(|trial| !trial.attempts.is_empty()).count();
        let is_stopped = matches!(sweeps[0].stopped, Some(StopReason::FailingFast { .. }));
        // If instances for all trials start at the same time, no trial is left to be stopped.
        let why = &sweeps[0].stopped;
        assert!(is_stopped || begun == TRIALS as usize, "seed {seed}: {begun} trials have begun: {why:?}");
        stopped += u32::from(begun < TRIALS as usize);
    }
    assert!(stopped >= 5, "{stopped} of 20 sweeps were stopped");
}
