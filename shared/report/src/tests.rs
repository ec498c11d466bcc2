use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_protocol::metric::{Metric, Source};

use crate::leaderboard::{leaderboard_csv, summary_json};
use crate::warnings::warnings;
use spotsweep_ranking::sets::Mean;
use spotsweep_ranking::{reached_target, reaches_target};
use spotsweep_records::sweep::notification::Notification;
use spotsweep_records::sweep::spent::Spent;
use spotsweep_records::sweep::{Plan, Sweep};
use spotsweep_records::trial::{Comparison, EarlyStop, JobStatus, Trial};

fn plan(target: Option<f64>) -> Plan {
    let plan = json!({ "trials": 12, "queue": "q", "definition": "d:1", "attempts": 10, "parts": [], "target": target,
        "metric": { "name": "loss", "maximize": false, "over": "last" },
        "repeats": { "parameter": "seed", "values": [5, 6, 7], "sets": 4 } });
    serde_json::from_value(plan).unwrap()
}

fn trial(index: u32, status: JobStatus, loss: Option<f64>) -> Trial {
    let mut trial = Trial::new(SweepId::derive("b", "k", "v"), index, JobId::from(format!("j:{index}")));
    trial.status = status;
    trial.metrics.extend(loss.map(|loss| ("loss".to_owned(), Metric::of(loss, None, Source::Stated))));
    trial
}

/// All trials of set 0 have the same value. Set 1 has the best trial of the complete sets, and a larger mean. Set 2 had
/// one good trial and two failures. A trial of set 3 was stopped early, and another one runs.
fn trials() -> Vec<Trial> {
    use JobStatus::{Failed, Running, Succeeded};
    let mut trials = vec![
        trial(0, Succeeded, Some(0.34)),
        trial(1, Succeeded, Some(0.9)),
        trial(2, Succeeded, Some(0.01)),
        trial(3, Succeeded, Some(0.2)),
        trial(4, Succeeded, Some(0.3)),
        trial(5, Succeeded, Some(0.1)),
        trial(6, Failed, None),
        trial(7, Succeeded, Some(0.25)),
        trial(8, Succeeded, Some(0.32)),
        trial(9, Succeeded, Some(0.5)),
        trial(10, Failed, Some(0.02)),
        trial(11, Running, Some(0.15)),
    ];
    let by = Comparison { value: 0.25, cut: Some(0.1), of: 9 };
    trials[7].stopped = Some(EarlyStop { rung: 3, by, at_interruption: false });
    trials
}

fn lines() -> String {
    let line = |index: u32| json!({ "index": index, "parameters": { "lr": index % 4, "seed": 5 + index / 4 } });
    (0..12).map(|index| line(index).to_string() + "\n").collect()
}

#[test]
fn the_leaderboard_ranks_sets_by_their_mean() {
    let none = (BTreeMap::new(), BTreeMap::new());
    let table = leaderboard_csv(&plan(None), &trials(), lines().as_bytes(), &none.0, &none.1).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    let head = ["rank", "index", "status", "set.index", "set.mean", "set.standard_error", "set.results", "set.lacks"];
    assert_eq!(rows[0][..8], head);
    let cells = |at: usize| [rows[at][0], rows[at][1], rows[at][3], rows[at][6]];
    // The best set comes first, and in it the best trial.
    let expected = [["1", "4", "0", "3"], ["1", "8", "0", "3"], ["1", "0", "0", "3"], ["2", "5", "1", "3"]];
    assert_eq!([1, 2, 3, 4].map(cells), expected);
    let number = |at: usize, column: usize| rows[at][column].parse::<f64>().unwrap();
    assert!((number(1, 4) - 0.32).abs() < 1e-12 && (number(1, 5) - 0.02 / 3_f64.sqrt()).abs() < 1e-12, "{table}");
    // A set is not ahead because its repeats failed.
    assert_eq!(rows[7][..3], ["", "2", "succeeded"]);
    assert_eq!(rows[7][5..8], ["", "1", "2 of 3 failed"]);
    assert_eq!(table.matches("\"1 of 3 stopped early, 1 not finished\"").count(), 3, "{table}");
}

#[test]
fn the_best_trial_is_the_best_one_of_the_best_set() {
    let upload =
        json!({ "bucket": "b", "key": "sweeps/s.yaml", "fingerprint": "v", "uploaded_at": Timestamp::UNIX_EPOCH });
    let sweep = Sweep::new(serde_json::from_value(upload).unwrap());
    let summary = |trials: &[Trial]| -> Value {
        let made = summary_json(&sweep, &plan(None), trials, lines().as_bytes(), &Spent::default(), &[]);
        serde_json::from_str(&made.unwrap()).unwrap()
    };
    let found = summary(&trials());
    let best = &found["best"];
    assert_eq!((&best["index"], &best["value"], &best["parameters"]["seed"]), (&json!(4), &json!(0.3), &json!(6)));
    assert_eq!((&best["set"]["trials"], &best["set"]["results"]), (&json!([0, 4, 8]), &json!(3)));
    let message = Notification::settled(&sweep, &found.to_string()).message;
    let of_set = "\nbest: trial 4 with loss 0.3, {\"lr\":0,\"seed\":6}; of its parameter set, trials [0,4,8], the mean is 0.3200 ± 0.0115";
    assert!(message.contains(of_set), "{message}");
    assert_eq!(found["repeats"], json!({ "parameter": "seed", "sets": 4, "complete": 2, "incomplete": 2 }));
    let first_round: Vec<Trial> = trials().into_iter().take(4).collect();
    assert_eq!(summary(&first_round)["best"], Value::Null, "one result of three is no mean");
}

#[test]
fn a_set_reaches_the_target_by_its_mean() {
    let (mut trials, plan) = (trials(), plan(Some(0.325)));
    let reached = "the parameter set of trial 0 has loss 0.3200 ± 0.0115 (mean of 3)";
    assert_eq!(reached_target(&plan, &trials).as_deref(), Some(reached));
    assert!(reaches_target(&plan, &trials[8]) && !reaches_target(&plan, &trials[0]), "one of the set looks");
    let with_odd = |at: usize, loss: f64| {
        let mut trials = trials.clone();
        trials[at] = trial(trials[at].index, JobStatus::Succeeded, Some(loss));
        trials
    };
    assert_eq!(reached_target(&plan, &with_odd(1, -9e124)), Some(reached.to_owned()), "an odd figure makes no mean");
    trials.retain(|trial| trial.index != 8);
    assert_eq!(reached_target(&plan, &trials), None, "0.01 of one trial is not what the sweep is for");
}

#[test]
fn sets_that_lack_results_for_good_are_warned_of() {
    let mut trials = trials();
    let found = |trials: &[Trial]| -> Vec<String> {
        warnings(&plan(None), trials, &BTreeMap::new(), Timestamp::UNIX_EPOCH).into_iter().map(|of| of.text).collect()
    };
    let lacks = "(of trial 2: 2 of 3 failed; of trial 3: 1 of 3 stopped early, 1 not finished)";
    assert_eq!(found(&trials), [format!("no rank for 2 parameter sets, which lack results of repeats {lacks}")]);
    trials.retain(|trial| trial.index % 4 < 2 && trial.index != 8);
    assert_eq!(found(&trials), [""; 0], "a set that is not finished yet is as usual");
}

#[test]
fn means_of_any_size_are_finite() {
    let mean = Mean::of(&[f64::MAX, f64::MAX, -f64::MAX]).unwrap();
    assert!(mean.mean.is_finite() && mean.standard_error.is_none(), "{mean:?}");
    assert_eq!((Mean::of(&[]), Mean::of(&[2.0]).unwrap().standard_error), (None, None));
    assert_eq!(Mean::of(&[1.0, 2.0, 6.0]).unwrap().to_string(), "3.0000 ± 1.5275 (mean of 3)");
}
