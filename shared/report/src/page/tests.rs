//! Tests of the page of a small sweep, whose content is known by hand.
#![allow(clippy::unwrap_used)]

use serde_json::{Map, Value, json};

use super::*;
use spotsweep_protocol::ids::JobId;
use spotsweep_protocol::metric::{Metric, Source};
use spotsweep_records::sweep::upload::Upload;
use spotsweep_records::sweep::{Over, Ranking, Stage};
use spotsweep_records::trial::{Attempt, JobStatus};

mod adaptive;

const HOSTILE: &str = "</script><script>alert(1)</script>\u{2028}&amp;";

fn at(second: i64) -> Option<Timestamp> {
    Some(Timestamp::from_second(1_790_000_000 + second).unwrap())
}

fn sweep() -> Sweep {
    let mut sweep = Sweep::new(Upload {
        bucket: "b".into(),
        key: "sweeps/s.yaml".into(),
        version_id: None,
        fingerprint: "v1".into(),
        size: None,
        uploaded_at: at(0).unwrap(),
    });
    sweep.enter(Stage::Settling);
    sweep
}

fn plan(trials: u32) -> Plan {
    let metric = Some(Ranking { name: "loss".into(), maximize: false, over: Over::Last });
    let plan = json!({ "trials": trials, "queue": "q", "definition": "d:1", "attempts": 10, "parts": [] });
    Plan { metric, ..serde_json::from_value(plan).unwrap() }
}

fn attempt(from: i64, to: Option<i64>, zone: &str, exit_code: Option<i32>) -> Attempt {
    let zone = Some(zone.to_owned());
    Attempt { started_at: at(from), stopped_at: to.and_then(at), zone, exit_code, ..Attempt::default() }
}

fn trial(index: u32, status: JobStatus, loss: Option<f64>, attempts: Vec<Attempt>) -> Trial {
    let mut trial = Trial::new(sweep().id, index, JobId::from(format!("j:{index}")));
    trial.status = status;
    trial.ended = u32::try_from(attempts.iter().filter(|attempt| attempt.stopped_at.is_some()).count()).unwrap();
    trial.attempts = (1..).zip(attempts).collect();
    trial.metrics.extend(loss.map(|last| ("loss".to_owned(), Metric::of(last, None, Source::Stated))));
    trial
}

/// Trial 0 moves to another zone after a reclaim and is the best. Trial 1 fails, trial 2 runs after an interruption,
/// trial 3 is cancelled, and trial 4 waits.
fn trials() -> Vec<Trial> {
    let reclaimed =
        Attempt { reason: Some("Host EC2 (instance i-1) terminated.".into()), ..attempt(10, Some(40), "a", None) };
    let failed =
        Attempt { reason: Some("Essential container in task exited".into()), ..attempt(10, Some(15), "a", Some(1)) };
    let noticed = attempt(10, Some(30), "a", Some(75));
    let mut cancelled = trial(3, JobStatus::Failed, None, vec![]);
    cancelled.reason = Some("spotsweep: cancelled by jo".into());
    vec![
        trial(0, JobStatus::Succeeded, Some(0.25), vec![reclaimed, attempt(60, Some(100), "c", Some(0))]),
        trial(1, JobStatus::Failed, None, vec![failed]),
        trial(2, JobStatus::Running, Some(0.125), vec![noticed, attempt(50, None, "a", None)]),
        cancelled,
    ]
}

fn lines() -> Vec<u8> {
    let rates = [0.1, 0.001, 0.01, 0.1, 0.1];
    let line = |(index, lr): (usize, f64)| {
        let parameters = json!({ "lr": lr, "net": { "depth": 2, "kind": if index == 1 { HOSTILE } else { "mlp" } }, HOSTILE: index });
        json!({ "index": index, "parameters": parameters }).to_string() + "\n"
    };
    rates.into_iter().enumerate().map(line).collect::<String>().into_bytes()
}

fn page(sources: &Sources<'_>) -> (String, Value) {
    let page = render(&Report::of(sources));
    let data =
        page.split(r#"<script type="application/json" id="data">"#).nth(1).unwrap().split("</script>").next().unwrap();
    let data = serde_json::from_str(data).unwrap();
    (page, data)
}

#[test]
fn a_page_says_what_the_records_say() {
    let (sweep, plan, trials, parameters) = (sweep(), plan(5), trials(), lines());
    let wanted = Report::charted(&plan, &trials);
    let record = b"{\"step\":1,\"metrics\":{\"loss\":1}}\n{\"step\":2,\"metrics\":{\"loss\":0.25}}\n";
    let curves = BTreeMap::from([(0, curves::read(record, &wanted))]);
    let costs = BTreeMap::from([
        (0, Cost { instance_usd: 1.0, on_demand_usd: 4.0, storage_usd: 0.5, ..Cost::default() }),
        (1, Cost { instance_usd: 0.25, on_demand_usd: 1.0, storage_usd: 0.0, ..Cost::default() }),
    ]);
    let log_lines = (0..30).map(|line| format!("line {line} {HOSTILE}")).collect();
    let diagnoses = BTreeMap::from([(1, Diagnosis { cause: None, advice: Some("correct it".into()), log_lines })]);
    let sources = Sources {
        sweep: &sweep,
        plan: &plan,
        trials: &trials,
        parameters: &parameters,
        file: Some("code: {git: \"http://ana:s3cr3tpw@host/x.git\"}"),
        curves: &curves,
        costs: &costs,
        control_plane_usd: Some(0.25),
        diagnoses: &diagnoses,
        warnings: &[],
        now: at(200).unwrap(),
    };
    let (page, data) = page(&sources);

    assert_eq!(data["source"], "code: {git: \"http://***@host/x.git\"}");
    assert!(!page.contains("s3cr3tpw"));
    let counts =
        json!({ "trials": 5, "succeeded": 1, "failed": 1, "cancelled": 1, "stopped": 0, "running": 1, "waiting": 1 });
    assert_eq!(data["counts"], counts);
    assert_eq!((&data["rows"][3]["status"], &data["rows"][3]["cancelled_by"]), (&json!("cancelled"), &json!("jo")));
    assert_eq!(data["failures"]["causes"].as_array().unwrap().len(), 1, "a cancellation is no failure");
    assert_eq!(data["totals"], json!({ "attempts": 5, "interruptions": 2, "zone_moves": 1, "run_seconds": 95.0 }));
    assert_eq!((&data["partial"], &data["stage"]), (&json!(true), &json!("settling")));
    let order: Vec<_> = data["rows"].as_array().unwrap().iter().map(|row| row["index"].as_u64().unwrap()).collect();
    assert_eq!(order, [0, 2, 1, 3], "the one that succeeded first, though another has a smaller loss by now");
    let columns = json!([
        { "name": "lr", "kind": "log" }, { "name": "net.kind", "kind": "category" }, { "name": HOSTILE, "kind": "linear" },
    ]);
    assert_eq!(data["columns"], columns);
    assert_eq!(data["constants"], json!([{ "name": "net.depth", "value": "2" }]));
    assert_eq!(data["rows"][2]["parameters"], json!([0.001, HOSTILE, 1]));
    assert_eq!(data["curves"], json!([{ "metric": 0, "index": 0, "points": [1.0, 1.0, 2.0, 0.25] }]));

    let bars = data["rows"][0]["attempts"].as_array().unwrap();
    assert_eq!((&bars[0]["ending"], &bars[1]["ending"]), (&json!("interrupted"), &json!("succeeded")));
    assert_eq!((&bars[0]["moved_from"], &bars[1]["moved_from"]), (&Value::Null, &json!("a")));
    let running = &data["rows"][1]["attempts"][1];
    assert_eq!((&running["ending"], &running["moved_from"]), (&json!("running"), &Value::Null));
    assert_eq!(running["stopped_ms"], json!(1_790_000_200_000_i64), "it runs until now");

    // The sum is 2: 1.25 for Spot, 0.5 for storage and 0.25 for the control plane. On demand costs 5, so 60 % are
    // saved.
    assert_eq!((&data["cost"]["paid"], &data["cost"]["saving"]), (&json!(2.0), &json!(0.6)));
    assert_eq!(data["cost"]["priced_trials"], 2);
    let cause = &data["failures"]["causes"][0];
    assert_eq!(cause["cause"], "exit code 1");
    assert_eq!((&cause["advice"], &cause["indices"]), (&json!("correct it"), &json!([1])));
    let log = data["failures"]["trials"][0]["log_lines"].as_array().unwrap();
    assert_eq!((log.len(), log[0].as_str().unwrap().starts_with("line 10 ")), (MAX_LOG_LINES, true));

    assert!(!page.contains("alert(1)</script>") && !page.contains("<script>alert"), "nothing of the data is markup");
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    assert_eq!(page, render(&Report::of(&sources)), "the same report, the same bytes");
}

#[test]
fn a_trial_that_diverged_has_no_rank_and_says_so() {
    let (sweep, plan, parameters) = (sweep(), plan(3), lines());
    let ended = |index, loss| trial(index, JobStatus::Succeeded, loss, vec![attempt(0, Some(9), "a", Some(0))]);
    let trials = [ended(0, None), ended(1, Some(f64::NAN)), ended(2, Some(0.5))];
    let warnings = ["1 of 3 trials diverged".to_owned()];
    let none = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let sources = Sources {
        sweep: &sweep,
        plan: &plan,
        trials: &trials,
        parameters: &parameters,
        file: None,
        curves: &none.0,
        costs: &none.1,
        control_plane_usd: None,
        diagnoses: &none.2,
        warnings: &warnings,
        now: at(200).unwrap(),
    };
    let (_, data) = page(&sources);
    assert_eq!(data["stage"], "settled", "nothing draws this page again");
    let row = |at: usize| {
        let row = &data["rows"][at];
        json!([row["index"], row["rank"], row["metrics"][0], row["diverged"]])
    };
    assert_eq!(row(0), json!([2, 1, 0.5, null]));
    assert_eq!(row(1), json!([1, null, null, "NaN"]));
    assert_eq!(row(2), json!([0, null, null, null]));
    assert_eq!(data["warnings"], json!(warnings));
}

/// The page's data has the leader of `ranking::leader`, so that the page itself decides nothing.
#[test]
fn the_page_names_the_trial_that_leads_so_far() {
    let leader = |trials: &[Trial]| bare_page(&plan(5), trials, "").1["leader"].clone();
    let mut trials = trials();
    assert_eq!(leader(&trials), Value::Null, "no attempt has claimed trial 2");
    trials[2].claimed_by = Some(2);
    let of_two = json!({ "index": 2, "value": 0.125 });
    assert_eq!(leader(&trials), of_two);
    (trials[2].status, trials[2].ended) = (JobStatus::Runnable, 2);
    assert_eq!(leader(&trials), of_two, "it was interrupted, and goes on");
    trials[2].status = JobStatus::Failed;
    assert_eq!(leader(&trials), Value::Null);
}

#[test]
fn the_page_has_the_words_of_the_field() {
    let (sweep, plan, trials, parameters) = (sweep(), plan(5), trials(), lines());
    let none = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let (page, _) = page(&Sources {
        sweep: &sweep,
        plan: &plan,
        trials: &trials,
        parameters: &parameters,
        file: None,
        curves: &none.0,
        costs: &none.1,
        control_plane_usd: None,
        diagnoses: &none.2,
        warnings: &[],
        now: at(200).unwrap(),
    });
    for (word, not) in [
        ("\"auto\"", "\"as fits\""),
        ("\"linear\"]", "[\"even\", \"even\"]"),
        ("highlight them", "stress them"),
        ("\"Warnings\"", "Not as usual"),
    ] {
        assert!(page.contains(word) && !page.contains(not), "{word}, not {not}");
    }
}

/// Returns the page of a sweep that has only records, and the page's data.
fn bare_page(plan: &Plan, trials: &[Trial], parameters: &str) -> (String, Value) {
    let none = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    page(&Sources {
        sweep: &sweep(),
        plan,
        trials,
        parameters: parameters.as_bytes(),
        file: None,
        curves: &none.0,
        costs: &none.1,
        control_plane_usd: None,
        diagnoses: &none.2,
        warnings: &[],
        now: at(200).unwrap(),
    })
}

#[test]
fn the_largest_sweep_makes_a_bounded_page() {
    let plan = plan(100_000);
    let trials: Vec<Trial> = (0..12_000)
        .map(|index| {
            trial(index, JobStatus::Succeeded, Some(f64::from(index)), vec![attempt(0, Some(9), "a", Some(0))])
        })
        .collect();
    let mut parameters = String::new();
    for index in 0..12_000 {
        let many: Map<String, Value> = (0..if index < 50 { MAX_COLUMNS + 5 } else { 2 })
            .map(|at| (format!("p{at}"), json!("x".repeat(index as usize % 7 + at))))
            .collect();
        parameters += &(json!({ "index": index, "parameters": many }).to_string() + "\n");
    }
    let (page, data) = bare_page(&plan, &trials, &parameters);
    assert_eq!(data["rows"].as_array().unwrap().len(), MAX_ROWS);
    assert_eq!(data["columns"].as_array().unwrap().len(), MAX_COLUMNS);
    assert_eq!(data["importance"]["trials"], 4_000, "every third");
    assert_eq!(data["rows"][0]["index"], 0);
    assert_eq!(data["omitted"].as_array().unwrap().len(), 3, "{}", data["omitted"]);
    assert_eq!(data["cost"], Value::Null, "not priced");
    assert!(page.len() < 30_000_000, "{}", page.len());
}
