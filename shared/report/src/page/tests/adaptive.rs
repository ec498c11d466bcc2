//! Tests of the pages of sweeps that suggest, stop early and repeat.

use spotsweep_protocol::rungs::Unit;
use spotsweep_search::stop::Rule;
use spotsweep_search::suggest::Basis;
use spotsweep_sweep_file::Repeats;

use super::*;
use spotsweep_records::sweep::EarlyStopping;
use spotsweep_records::trial::Suggested;

/// Returns the data of a page of a sweep that has only records.
fn data(plan: &Plan, trials: &[Trial], parameters: &str) -> Value {
    let (_, data) = bare_page(plan, trials, parameters);
    data
}

fn ended(index: u32, loss: f64, until: i64) -> Trial {
    trial(index, JobStatus::Succeeded, Some(loss), vec![attempt(0, Some(until), "a", Some(0))])
}

fn suggested(trial: Trial, basis: Option<Basis>) -> Trial {
    let parameters = json!({ "lr": trial.index }).as_object().unwrap().clone();
    Trial { suggested: Some(Suggested::new(&parameters, basis)), ..trial }
}

fn repeats(sets: u64) -> Option<Repeats> {
    Some(Repeats { parameter: "seed".into(), values: vec![json!(1), json!(2)], sets })
}

#[test]
fn sets_have_the_ranks_and_the_importance_is_theirs() {
    let sets = 12;
    let plan = Plan { repeats: repeats(sets), ..plan(24) };
    // A larger rate gives a worse value. The second repeat of set 0, which is the best set, has failed.
    let mut trials: Vec<Trial> = (0..24).map(|index| ended(index, f64::from(index % 12), 9)).collect();
    trials[12] = trial(12, JobStatus::Failed, None, vec![attempt(0, Some(9), "a", Some(1))]);
    let line = |index: u32| json!({ "index": index, "parameters": { "lr": index % 12 / 3, "seed": 1 + index / 12 } });
    let lines: String = (0..24).map(|index| line(index).to_string() + "\n").collect();
    let data = data(&plan, &trials, &lines);

    let found = &data["sets"];
    assert_eq!((&found["parameter"], &found["count"], &found["repeats"]), (&json!("seed"), &json!(12), &json!(2)));
    let first = json!({ "rank": 1, "number": 1, "trials": [1, 13], "is_flagged": false, "lacks": null,
        "mean": { "mean": 1.0, "standard_error": 0.0, "results": 2 }, "parameters": [0, null] });
    assert_eq!(found["rows"][0], first);
    let last = &found["rows"][11];
    assert_eq!((&last["number"], &last["rank"], &last["is_flagged"]), (&json!(0), &Value::Null, &json!(true)));
    assert_eq!(last["lacks"], "1 of 2 failed");
    let row = |at: usize| [&data["rows"][at]["index"], &data["rows"][at]["rank"], &data["rows"][at]["set"]];
    assert_eq!([row(0), row(1)], [[&json!(1), &json!(1), &json!(1)], [&json!(13), &json!(1), &json!(1)]]);
    assert_eq!(row(22), [&json!(0), &Value::Null, &json!(0)], "its good trial has no rank");

    let importance = &data["importance"];
    assert_eq!(importance["trials"], 12, "a set counts once");
    let names: Vec<&Value> = importance["weights"].as_array().unwrap().iter().map(|weight| &weight["name"]).collect();
    assert_eq!((names, &importance["unjudged"]), (vec![&json!("lr")], &json!([])), "the seed is no parameter of a set");
}

#[test]
fn a_search_shows_what_it_predicted_and_how_the_best_value_improved() {
    let plan = Plan { suggests: true, ..plan(6) };
    let model = |mean| Some(Basis::Model { mean, deviation: 0.125 });
    // The trials end in the order 1, 0, 2, 3.
    let mut stopped = suggested(ended(3, 0.25, 80), model(0.5));
    stopped.status = JobStatus::Failed;
    let trials = [
        suggested(ended(0, 0.75, 20), Some(Basis::Initial)),
        suggested(ended(1, 1.0, 10), Some(Basis::Random)),
        suggested(ended(2, 0.5, 30), model(0.625)),
        stopped,
        suggested(trial(4, JobStatus::Running, None, vec![attempt(90, None, "a", None)]), model(f64::INFINITY)),
    ];
    let found = &data(&plan, &trials, "")["search"];
    let row = |at: usize| {
        let one = &found["predictions"][at];
        json!([one["index"], one["basis"], one["mean"], one["deviation"], one["found"], one["is_result"]])
    };
    assert_eq!(row(0), json!([0, "initial", null, null, 0.75, true]));
    assert_eq!(row(2), json!([2, "model", 0.625, 0.125, 0.5, true]));
    assert_eq!(row(3), json!([3, "model", 0.5, 0.125, 0.25, false]), "a trial that failed has no result");
    assert_eq!(row(4), json!([4, "model", null, 0.125, null, false]));
    let best: Vec<Value> = found["best"].as_array().unwrap().to_vec();
    let improved = |one: &Value| json!([one["index"], one["ended"], one["value"]]);
    let expected = [json!([1, 1, 1.0]), json!([0, 2, 0.75]), json!([2, 3, 0.5])];
    assert_eq!(best.iter().map(improved).collect::<Vec<_>>(), expected);
    assert_eq!((&found["ended"], &best[2]["at_ms"]), (&json!(4), &json!(1_790_000_030_000_i64)));

    let other = data(&Plan { suggests: false, ..plan }, &trials, "");
    assert!(other["search"].is_null() && other["sets"].is_null() && other["rungs"].is_null(), "{other}");
}

#[test]
fn a_set_is_found_when_its_last_repeat_has_ended() {
    let plan = Plan { suggests: true, repeats: repeats(2), ..plan(4) };
    let model = Some(Basis::Model { mean: 0.5, deviation: 0.25 });
    let trials = [
        suggested(ended(0, 0.0, 10), model),
        suggested(ended(1, 0.75, 20), model),
        suggested(ended(2, 1.0, 40), None),
        suggested(ended(3, 0.25, 30), None),
    ];
    let found = &data(&plan, &trials, "")["search"];
    let best: Vec<Value> = found["best"].as_array().unwrap().to_vec();
    let improved = |one: &Value| json!([one["index"], one["ended"], one["value"]]);
    // The value 0.0 of trial 0 is not the result of its set. The set's mean is 0.5 once trial 2 ends.
    assert_eq!(best.iter().map(improved).collect::<Vec<_>>(), [json!([3, 3, 0.5])]);
    assert_eq!(found["predictions"].as_array().unwrap().len(), 2, "a set is suggested once");
    assert_eq!((&found["predictions"][0]["found"], &found["suggestions"]), (&json!(0.5), &json!(2)));
}

#[test]
fn the_page_says_what_the_rungs_count() {
    let rule = Rule::Hyperband { bands: (1..=40).collect(), eta: 3.0, strict: true };
    let early_stopping = Some(EarlyStopping { rule, unit: Unit::Step, length: None });
    let found = &data(&Plan { early_stopping, ..plan(4) }, &[], "")["rungs"];
    let steps: Vec<u64> = (1..=12).collect();
    assert_eq!(*found, json!({ "rule": "hyperband", "unit": "step", "steps": steps, "count": 40 }));
}
