//! Compares `early_terminate` with W&B's own answers: `tests/data/wandb-adaptive/hyperband*.jsonl`, one case per line.
//!
//! The sweep file's reader makes the rule, and the rule judges the recorded runs. It must refuse what W&B refuses.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "the cases are files")]

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};
use spotsweep_search::curve::{Curve, Rung};
use spotsweep_search::stop::{RUNG_LIMIT, Rule, Verdict};
use spotsweep_sweep_file::{Goal, parse};

/// Returns the cases with the names of their files.
fn cases() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/wandb-adaptive");
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("hyperband") && name.ends_with(".jsonl") {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = text.lines().filter(|line| !line.trim().is_empty()).enumerate();
            cases.extend(lines.map(|(index, line)| (format!("{name}:{}", index + 1), read_line(line))));
        }
    }
    cases
}

/// Reads a line of a recording. A band of hundreds of digits exceeds 64-bit floats, so it becomes another very large
/// number.
fn read_line(line: &str) -> Value {
    let mut short = String::with_capacity(line.len());
    for part in line.split_inclusive(|character: char| !character.is_ascii_digit()) {
        let digits = part.trim_end_matches(|character: char| !character.is_ascii_digit());
        short.push_str(if digits.len() > 300 { "1e300" } else { digits });
        short.push_str(&part[digits.len()..]);
    }
    serde_json::from_str(&short).unwrap()
}

/// The rule and the metric of a config.
struct Config {
    rule: Rule,
    metric: String,
    sign: f64,
}

/// Reads a config; `None` if it is refused, or if it has no `early_terminate`.
fn read(config: &Value) -> Option<Config> {
    let file = parse("f", "v", config.to_string().as_bytes()).ok()?;
    let metric = file.metric?;
    let sign = if metric.goal == Goal::Maximize { -1.0 } else { 1.0 };
    Some(Config { rule: file.early_terminate?, metric: metric.name, sign })
}

/// Reads a number of the recording, which writes `{"$f": "inf"}` for a number that JSON cannot express.
fn number(value: &Value) -> f64 {
    match value["$f"].as_str() {
        Some(text) => text.parse().unwrap(),
        None => value.as_f64().unwrap(),
    }
}

/// The values that one run has logged, counted as the product does.
#[derive(Default, Clone)]
struct Run {
    name: Option<String>,
    costs: Vec<f64>,
}

impl Run {
    fn new(run: &Value, config: &Config) -> Self {
        let mut new = Self { name: run["name"].as_str().map(str::to_owned), costs: Vec::new() };
        for logged in run["history"].as_array().into_iter().flatten() {
            // W&B takes no boolean, text, null or non-finite number for a value.
            let value = logged.get(&config.metric).and_then(Value::as_f64);
            new.costs.extend(value.map(|value| value * config.sign));
        }
        new
    }

    fn best(&self) -> f64 {
        self.costs.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the curve at the rungs that the run has passed.
    fn curve(&self, rule: &Rule) -> Curve {
        let figures = |rung: u64| {
            let so_far = self.costs.get(..usize::try_from(rung).ok()?)?;
            let best = so_far.iter().copied().fold(f64::INFINITY, f64::min);
            let mean = so_far.iter().sum::<f64>() / so_far.len() as f64;
            Some((rung, Rung { value: *so_far.last()?, best, mean }))
        };
        rule.rungs().iter().filter_map(|rung| figures(*rung)).collect()
    }
}

fn judge(rule: &Rule, runs: &[Run], index: usize) -> Option<Verdict> {
    let curves: Vec<Curve> = runs.iter().map(|run| run.curve(rule)).collect();
    let peers = curves.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, curve)| curve);
    rule.judge(&curves[index], Some(runs[index].best()), peers)
}

/// Returns W&B's bands with their thresholds. Repeated bands, and bands that no training reaches, are left out.
fn expected_cuts(case: &Value) -> BTreeMap<u64, f64> {
    let bands = case["bands"].as_array().into_iter().flatten();
    let thresholds = case["thresholds"].as_array().into_iter().flatten();
    let reachable = bands.zip(thresholds).filter(|(band, _)| band.as_f64().unwrap() < RUNG_LIMIT as f64);
    let mut cuts = BTreeMap::new();
    for (band, threshold) in reachable {
        let (band, threshold) = (band.as_u64().unwrap(), number(threshold));
        assert!(cuts.insert(band, threshold).is_none_or(|before| before == threshold));
    }
    cuts
}

/// The parts of a line such as `Run: a Step: 30  (Band: 9 Metric: 1.0 Threshold: 0.5)  STOP`.
#[derive(Debug, PartialEq)]
struct Line {
    name: String,
    step: usize,
    compared: Option<(u64, f64, f64)>,
    stops: bool,
}

impl Line {
    fn read(text: &str) -> Self {
        let (name, rest) = text.strip_prefix("Run: ").unwrap().split_once(" Step: ").unwrap();
        let words: Vec<&str> = rest.split_whitespace().map(|word| word.trim_matches(['(', ')'])).collect();
        let after = |label: &str| words.iter().position(|word| *word == label).map(|at| words[at + 1]);
        let compared = after("Band:").map(|band| {
            let figure = |label| after(label).unwrap().parse().unwrap();
            (band.parse().unwrap(), figure("Metric:"), figure("Threshold:"))
        });
        Self { name: name.to_owned(), step: words[0].parse().unwrap(), compared, stops: words.last() == Some(&"STOP") }
    }

    fn new(run: &Run, verdict: Option<Verdict>) -> Self {
        let name = run.name.clone().unwrap_or_else(|| "None".to_owned());
        let compared = verdict.map(|verdict| (verdict.rung, verdict.value, verdict.cut.unwrap()));
        Self { name, step: run.costs.len(), compared, stops: verdict.is_some_and(|verdict| verdict.stops) }
    }
}

/// Judges all runs once, from the same facts.
fn check_at_once(case: &Value, config: &Config, place: &str) {
    let listed = case["runs"].as_array().unwrap();
    let runs: Vec<Run> = listed.iter().map(|run| Run::new(run, config)).collect();
    let is_running = |index: &usize| listed[*index]["state"] == "running";
    let running: Vec<usize> = (0..runs.len()).filter(is_running).collect();
    let verdicts: Vec<_> = running.iter().map(|index| judge(&config.rule, &runs, *index)).collect();
    let stops = |verdict: &Option<Verdict>| verdict.is_some_and(|verdict| verdict.stops);
    let stopped: Vec<usize> =
        running.iter().zip(&verdicts).filter(|(_, verdict)| stops(verdict)).map(|(index, _)| *index).collect();
    let expected: Vec<usize> = serde_json::from_value(case["stop_indexes"].clone()).unwrap();
    assert_eq!(stopped, expected, "{place}");

    // A case without a running run has no bands in its answer.
    let cuts = expected_cuts(case);
    assert!(!cuts.is_empty() || running.is_empty(), "{place}");
    let curves: Vec<Curve> = runs.iter().map(|run| run.curve(&config.rule)).collect();
    for (band, threshold) in &cuts {
        assert!(config.rule.rungs().contains(band), "{place}: {band}");
        assert_eq!(config.rule.cut(*band, &curves).unwrap_or(f64::INFINITY), *threshold, "{place}: {band}");
    }
    // The recording may end after the first bands.
    let recorded = cuts.last_key_value().map_or(0, |(band, _)| *band);
    let within = config.rule.rungs().iter().filter(|rung| **rung <= recorded).count();
    assert_eq!(within, cuts.len(), "{place}");
    if case["bands"].as_array().is_some_and(|bands| bands.len() > 12) {
        assert_eq!(config.rule.rungs().len(), cuts.len(), "{place}");
    }

    if let Some(lines) = case["lines"].as_array() {
        let expected: Vec<Line> = lines.iter().map(|line| Line::read(line.as_str().unwrap())).collect();
        let actual: Vec<Line> =
            running.iter().zip(verdicts).map(|(index, verdict)| Line::new(&runs[*index], verdict)).collect();
        assert_eq!(actual, expected, "{place}");
    }
}

/// Trains curves in rounds: each running worker logs a value, then all runs are judged, and then those at their end
/// finish.
fn check_online(case: &Value, config: &Config, place: &str) {
    let curves: Vec<Vec<f64>> = serde_json::from_value(case["curves"].clone()).unwrap();
    let (workers, length) = (case["workers"].as_u64().unwrap() as usize, case["length"].as_u64().unwrap() as usize);
    let mut runs: Vec<Run> = Vec::new();
    let (mut running, mut stopped, mut finished): (Vec<usize>, Vec<Value>, Vec<Value>) = Default::default();
    loop {
        while running.len() < workers && runs.len() < curves.len() {
            running.push(runs.len());
            runs.push(Run::default());
        }
        if running.is_empty() {
            break;
        }
        for index in &running {
            let step = runs[*index].costs.len();
            runs[*index].costs.push(config.sign * curves[*index][step]);
        }
        let stops = |index: &usize| judge(&config.rule, &runs, *index).is_some_and(|verdict| verdict.stops);
        let now: Vec<usize> = running.iter().copied().filter(stops).collect();
        stopped.extend(now.iter().map(|index| serde_json::json!([format!("r{index}"), runs[*index].costs.len()])));
        running.retain(|index| !now.contains(index));
        finished.extend(
            running
                .extract_if(.., |index| runs[*index].costs.len() >= length)
                .map(|index| Value::from(format!("r{index}"))),
        );
    }
    assert_eq!(Value::from(stopped), case["stopped"], "{place}");
    let sorted = |names: &[Value]| {
        let mut names: Vec<String> = names.iter().map(Value::to_string).collect();
        names.sort();
        names
    };
    assert_eq!(sorted(&finished), sorted(case["finished"].as_array().unwrap()), "{place}");
}

#[test]
fn recorded_hyperband_decisions_agree() {
    let cases = cases();
    assert!(!cases.is_empty());
    for (place, case) in &cases {
        let known = ["id", "kind", "test", "config", "runs", "stop_indexes", "bands", "thresholds", "lines", "raises"];
        let online = ["message", "curves", "workers", "length", "stopped", "finished"];
        let is_known = |key: &String| known.iter().chain(&online).any(|known| known == key);
        assert!(case.as_object().is_some_and(|case: &Map<_, _>| case.keys().all(is_known)), "{place}");
        match (read(&case["config"]), case.get("raises")) {
            (None, Some(_)) => {}
            (Some(config), None) if case.get("curves").is_some() => check_online(case, &config, place),
            (Some(config), None) => check_at_once(case, &config, place),
            (Some(config), Some(raises)) => panic!("{place}: {:?}, and W&B raises {raises}", config.rule),
            (None, None) => {
                let problems = parse("f", "v", case["config"].to_string().as_bytes());
                panic!("{place}: W&B takes what is refused here: {problems:#?}");
            }
        }
    }
    println!("{} cases agree", cases.len());
}
