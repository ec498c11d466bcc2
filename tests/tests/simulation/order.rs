//! Events that come late, twice or in another order give the same stored state.

use serde_json::Value;
use spotsweep_records::sweep::{Stage, Sweep};
use spotsweep_records::trial::{JobStatus, Trial};
use spotsweep_simulation::harness::Harness;
use spotsweep_world::AttemptKey;

const FILE: &str = "method: grid\nmetric: {name: loss}\nparameters: {lr: {values: [1, 2, 3, 4]}}\n";

/// Trial 1 fails, trial 2 is reclaimed twice and trial 3 once. The others succeed.
fn run(attempt: &AttemptKey) -> (u64, i32) {
    let child = attempt.job.rsplit(':').next().unwrap_or("");
    match (child, attempt.attempt) {
        ("1", _) => (7, 3),
        ("2", 1 | 2) | ("3", 1) => (11, -1),
        _ => (20, 0),
    }
}

/// Runs a sweep to its end. Returns the harness, and Batch's events in order.
async fn ran(seed: u64, file: &str) -> (Harness, Vec<Value>) {
    let mut harness = Harness::new(seed);
    let put = harness.put("order.yaml", file);
    harness.deliver(&put).await.unwrap();
    let events = harness.run_jobs(run).into_iter().filter(|event| event["source"] == "aws.batch").collect();
    (harness, events)
}

async fn deliver_all(harness: &Harness, events: &[Value]) -> (Vec<Sweep>, Vec<Trial>) {
    for event in events {
        harness.deliver(event).await.unwrap();
        harness.deliver_announced().await.unwrap();
    }
    harness.store.state()
}

#[tokio::test]
async fn a_sweep_is_tracked_and_settles() {
    let (harness, events) = ran(0, FILE).await;
    let (sweeps, trials) = deliver_all(&harness, &events).await;
    assert_eq!(sweeps[0].stage, Stage::Settled);
    let outcome: Vec<_> = trials.iter().map(|trial| (trial.status, trial.attempts.len())).collect();
    let (good, bad) = (JobStatus::Succeeded, JobStatus::Failed);
    assert_eq!(outcome.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [good, bad, good, good]);
    assert!(outcome[2].1 >= 3 && outcome[3].1 >= 2, "{outcome:?}");
    assert_eq!(trials[1].attempts[&1].exit_code, Some(3));
    let reclaimed = &trials[2].attempts[&1];
    assert!(reclaimed.exit_code.is_none() && reclaimed.reason.as_ref().unwrap().of_batch().starts_with("Host EC2"));
    for attempt in trials.iter().flat_map(|trial| trial.attempts.values()) {
        assert!(attempt.started_at < attempt.stopped_at && attempt.log_stream.is_some(), "{attempt:?}");
    }
    let summary = harness.cloud.get(&format!("{}summary.json", sweeps[0].id.results_prefix())).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!((&summary["succeeded"], &summary["failed"]), (&3.into(), &1.into()));
    let board = harness.cloud.get(&format!("{}leaderboard.csv", sweeps[0].id.results_prefix())).unwrap();
    assert_eq!(String::from_utf8(board).unwrap().lines().count(), 5);
}

#[tokio::test]
async fn every_shuffle_ends_in_the_same_state() {
    let single = "- lr: 1\n";
    for (file, shuffles) in [(FILE, 300), (single, 60)] {
        let (harness, events) = ran(0, file).await;
        let expected = deliver_all(&harness, &events).await;
        assert_eq!(expected.0[0].stage, Stage::Settled);
        let audits = harness.store.audits();
        assert_eq!(deliver_all(&harness, &events).await, expected, "replayed whole");
        assert_eq!(harness.store.audits(), audits, "a replay changes nothing");

        for seed in 0..shuffles {
            let (harness, events) = ran(0, file).await;
            let shuffled = shuffled_with_repeats(&events, seed);
            assert_eq!(deliver_all(&harness, &shuffled).await, expected, "shuffle {seed}");
        }
    }
}

#[tokio::test]
async fn every_swap_of_neighbours_ends_in_the_same_state() {
    let (harness, events) = ran(0, FILE).await;
    let expected = deliver_all(&harness, &events).await;
    for place in 1..events.len() {
        let (harness, mut swapped) = ran(0, FILE).await;
        swapped.swap(place - 1, place);
        assert_eq!(deliver_all(&harness, &swapped).await, expected, "swapped at {place}");
    }
}

/// All events but every `keep`th one are lost. `reconcile` asks Batch, and the result is the same.
#[tokio::test]
async fn lost_events_are_made_up_for_by_reconcile() {
    let (harness, events) = ran(0, FILE).await;
    let expected = deliver_all(&harness, &events).await;
    for keep in [1_000, 7, 3] {
        let (mut harness, events) = ran(0, FILE).await;
        let kept: Vec<Value> = events.into_iter().step_by(keep).skip(1).collect();
        deliver_all(&harness, &kept).await;
        for _ in 0..3 {
            harness.pass(std::time::Duration::from_secs(3600));
            harness.deliver(&harness.reconcile()).await.unwrap();
            harness.deliver_announced().await.unwrap();
        }
        let (sweeps, trials) = harness.store.state();
        assert_eq!(sweeps[0].stage, Stage::Settled, "kept every {keep}th");
        let outcome = |trials: &[Trial]| trials.iter().map(|t| (t.index, t.status, t.ended)).collect::<Vec<_>>();
        assert_eq!(outcome(&trials), outcome(&expected.1), "kept every {keep}th");
    }
}

/// Shuffles with the algorithm of Fisher and Yates and a small linear congruential generator. Every third event is
/// repeated.
fn shuffled_with_repeats(events: &[Value], seed: u64) -> Vec<Value> {
    let mut state = seed.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(3_037_000_493);
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or(0) % below
    };
    let mut shuffled: Vec<Value> = events.iter().chain(events.iter().step_by(3)).cloned().collect();
    for place in (1..shuffled.len()).rev() {
        shuffled.swap(place, next(place + 1));
    }
    shuffled
}
