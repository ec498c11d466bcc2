//! A sweep that reaches its budget: running trials go on, waiting ones do not start, and people are notified.

use std::time::Duration;

use serde_json::Value;
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::trial::JobStatus;
use spotsweep_simulation::harness::Account;
use spotsweep_simulation::run::{Chaos, Simulation};

/// Runs one trial at a time, half an hour each, without faults.
fn run(budget: &str) -> Simulation {
    let account = Account { instance_type: "c7g.medium", max_vcpus: 1, workspace_gib: 20, ..Account::default() };
    let file = format!("trials: [{{a: 1}}, {{a: 2}}, {{a: 3}}, {{a: 4}}]\nspotsweep: {{budget: {{{budget}}}}}\n");
    let mut simulation = Simulation::new(7, &account, Chaos::none(), &file);
    simulation.epochs = 30;
    simulation.epoch = Duration::from_secs(60);
    simulation.run().unwrap();
    simulation
}

fn summary(simulation: &Simulation) -> Value {
    let (sweeps, _) = simulation.harness.store.state();
    let key = format!("{}summary.json", sweeps[0].id.results_prefix());
    serde_json::from_slice(&simulation.harness.cloud.get(&key).expect("a summary")).unwrap()
}

#[test]
fn what_runs_goes_on_and_what_waits_does_not_start() {
    for (budget, words) in [("max_hours: 0.75", "0.75 hours"), ("max_usd: 0.2", "$0.20")] {
        let simulation = run(budget);
        let (sweeps, trials) = simulation.harness.store.state();
        let stopped = sweeps[0].stopped.as_ref().map(ToString::to_string).unwrap_or_default();
        assert!(stopped.contains(words), "{budget}: {stopped:?}");
        let succeeded = trials.iter().filter(|trial| trial.status == JobStatus::Succeeded).count();
        assert!((1..4).contains(&succeeded), "{budget}: {succeeded} succeeded");
        for trial in trials.iter().filter(|trial| trial.status == JobStatus::Failed) {
            let attempts = trial.attempts.values().filter_map(|attempt| attempt.reason.clone());
            let mut reasons = attempts.chain(trial.reason.clone());
            assert!(
                reasons.any(|reason| matches!(reason.stopped(), Some(StopReason::Budget { .. }))),
                "{budget}: {trial:?}"
            );
        }
        let summary = summary(&simulation);
        assert_eq!((&summary["succeeded"], &summary["stopped"]), (&succeeded.into(), &stopped.into()), "{budget}");
    }
}

#[test]
fn a_budget_that_is_never_reached_changes_nothing() {
    let simulation = run("max_usd: 1000, max_hours: 1000");
    let (sweeps, trials) = simulation.harness.store.state();
    assert!(trials.iter().all(|trial| trial.status == JobStatus::Succeeded));
    assert_eq!(sweeps[0].stopped, None);
    let spent = sweeps[0].spent.expect("its cost is computed");
    // Four half hours cost 0.25 and 1.0 USD an hour, and a little more for start and end.
    assert!((0.5..0.6).contains(&(spent.usd - spent.storage_usd - spent.control_plane_usd)), "{spent:?}");
    assert!((2.0..2.4).contains(&spent.on_demand_usd), "{spent:?}");
    assert_eq!(spent.unpriced_seconds, 0.0);
}
