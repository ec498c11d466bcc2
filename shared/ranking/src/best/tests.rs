use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_protocol::metric::{Metric, Source};

use super::*;
use spotsweep_records::trial::{Comparison, EarlyStop, JobStatus};

/// A trial's status, and its newest, smallest and largest loss.
type Row = (JobStatus, Option<(f64, f64, f64)>);

fn trials(rows: &[Row]) -> Vec<Trial> {
    let trial = |(index, (status, loss)): (u32, &Row)| {
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), index, JobId::from(format!("j:{index}")));
        trial.status = *status;
        let metric = |(last, min, max)| Metric { min, max, ..Metric::of(last, None, Source::Stated) };
        trial.metrics.extend(loss.map(|loss| ("loss".to_owned(), metric(loss))));
        trial
    };
    (0..).zip(rows).map(trial).collect()
}

fn plan(by: Ranking) -> Plan {
    let plan = serde_json::json!({ "trials": 9, "queue": "q", "definition": "d:1", "attempts": 10, "parts": [] });
    Plan { metric: Some(by), ..serde_json::from_value(plan).unwrap() }
}

#[test]
fn only_trials_that_succeeded_with_a_finite_value_have_a_rank() {
    use JobStatus::{Failed, Running, Succeeded};
    let trials = trials(&[
        (Succeeded, None),
        (Succeeded, Some((f64::NAN, 0.001, 0.5))),
        (Failed, Some((0.01, 0.01, 0.02))),
        (Running, Some((0.02, 0.02, 0.03))),
        (Succeeded, Some((0.5, 0.1, 0.9))),
        (Succeeded, Some((0.4, 0.3, 1.5))),
        (Failed, Some((f64::INFINITY, 1.0, 2.0))),
        (Failed, None),
        (Succeeded, Some((f64::NEG_INFINITY, f64::NAN, f64::NAN))),
    ]);
    let cases = [
        (false, Over::Last, [5, 4, 1, 8, 2, 3, 6, 0, 7], 0.4),
        (true, Over::Last, [4, 5, 1, 8, 3, 2, 6, 0, 7], 0.5),
        (false, Over::Best, [4, 5, 1, 8, 2, 3, 6, 0, 7], 0.1),
        (true, Over::Best, [5, 4, 1, 8, 3, 2, 6, 0, 7], 1.5),
    ];
    for (maximize, over, order, value) in cases {
        let by = Ranking { name: "loss".to_owned(), maximize, over };
        let plan = plan(by);
        let ranked = ranked(&plan, &trials);
        let found: Vec<u32> = ranked.iter().map(|ranked| ranked.trial.index).collect();
        assert_eq!(found, order, "{plan:?}");
        assert_eq!(
            best(&plan, &trials).map(|best| (best.trial.index, best.value)),
            Some((order[0], value)),
            "{plan:?}"
        );
        let ranks: Vec<Option<usize>> = ranked.iter().map(|ranked| ranked.rank).collect();
        assert_eq!((&ranks[..2], ranks.iter().flatten().count()), (&[Some(1), Some(2)][..], 2));
    }
}

/// The trial's job has succeeded, but its training was ended early.
#[test]
fn a_trial_that_was_stopped_early_has_no_rank() {
    let mut trials =
        trials(&[(JobStatus::Succeeded, Some((0.1, 0.1, 0.1))), (JobStatus::Succeeded, Some((0.5, 0.5, 0.5)))]);
    let by = Comparison { value: 0.1, cut: Some(0.05), of: 3 };
    trials[0].stopped = Some(EarlyStop { rung: 3, by, at_interruption: false });
    let by = Ranking { name: "loss".to_owned(), maximize: false, over: Over::Last };
    assert_eq!(ranked_value(&by, &trials[0]), None);
    assert_eq!(best(&plan(by), &trials).map(|best| best.trial.index), Some(1));
}

#[test]
fn a_target_is_reached_by_a_trial_that_trains_and_by_no_odd_figure() {
    let by = Ranking { name: "loss".to_owned(), maximize: true, over: Over::Last };
    let plan = Plan { target: Some(0.95), ..plan(by) };
    let reaching = |first: f64, second: f64, status, has_started: bool| {
        let mut trials =
            trials(&[(status, Some((first, first, first))), (JobStatus::Running, Some((second, 0.1, second)))]);
        for trial in &mut trials {
            trial.claimed_by = Some(1);
            trial.attempt(1).started_at = (has_started || trial.index == 1).then_some(jiff::Timestamp::UNIX_EPOCH);
        }
        reached_target(&plan, &trials)
    };
    let zero = || Some("trial 0 has loss 0.96".to_owned());
    assert_eq!(reaching(0.96, 0.5, JobStatus::Running, true), zero());
    assert_eq!(reaching(0.96, 0.5, JobStatus::Succeeded, true), zero());
    assert_eq!(reaching(0.96, 0.5, JobStatus::Runnable, false), None, "claimed, and no container has started");
    assert_eq!(reaching(0.96, 0.5, JobStatus::Failed, true), None);
    for odd in [9e124, 9999.0, 96.0] {
        assert_eq!(reaching(odd, 0.5, JobStatus::Running, true), None, "{odd}");
    }
    assert_eq!(reaching(9e124, 0.97, JobStatus::Running, true), Some("trial 1 has loss 0.97".to_owned()));
}

#[test]
fn a_trial_that_trains_leads_so_far_where_it_is_the_best() {
    use JobStatus::{Failed, Running, Succeeded};
    let by = Ranking { name: "loss".to_owned(), maximize: false, over: Over::Last };
    let loss = |value: f64| Some((value, value, value));
    for (rows, expected) in [
        (vec![(Running, loss(0.3)), (Running, loss(0.2)), (Succeeded, loss(0.4)), (Failed, loss(0.1))], Some((1, 0.2))),
        (vec![(Running, loss(0.3)), (Running, loss(f64::NAN))], Some((0, 0.3))),
        (vec![(Running, loss(0.5)), (Succeeded, loss(0.4))], None),
        (vec![(Running, None)], None),
    ] {
        let mut trials = trials(&rows);
        for trial in &mut trials {
            trial.claimed_by = Some(1);
            trial.attempt(1).started_at = Some(jiff::Timestamp::UNIX_EPOCH);
        }
        let found = leader(&plan(by.clone()), &trials).map(|leader| (leader.trial.index, leader.value));
        assert_eq!(found, expected, "{rows:?}");
        let repeats = serde_json::json!({ "parameter": "seed", "values": [1, 2], "sets": 2 });
        let repeated = Plan { repeats: Some(serde_json::from_value(repeats).unwrap()), ..plan(by.clone()) };
        assert_eq!(leader(&repeated, &trials), None, "sets have the ranks");
    }
}

#[test]
fn without_a_trial_that_has_a_rank_none_is_the_best() {
    let by = Ranking { name: "loss".to_owned(), maximize: false, over: Over::Last };
    let trials = trials(&[
        (JobStatus::Succeeded, None),
        (JobStatus::Succeeded, Some((f64::NAN, 0.1, 0.1))),
        (JobStatus::Failed, Some((0.1, 0.1, 0.1))),
    ]);
    assert_eq!(best(&plan(by.clone()), &trials), None);
    assert_eq!(best(&plan(by), &[]), None);
}
