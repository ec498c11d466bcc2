//! Compares `type: asha` and `type: median` with the decisions of Ray's own schedulers: `tests/data/ray-schedulers/`.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "the cases are a file")]

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use spotsweep_search::curve::{Curve, Rung};
use spotsweep_search::stop::Rule;
use spotsweep_sweep_file::{Goal, parse};

/// The costs that a trial has reported so far.
#[derive(Default)]
struct Trial {
    costs: Vec<f64>,
    curve: Curve,
}

impl Trial {
    /// Adds a report, and returns whether it reaches a rung.
    fn report(&mut self, cost: f64, rule: &Rule) -> bool {
        self.costs.push(cost);
        let step = self.costs.len();
        let best = self.costs.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = self.costs.iter().sum::<f64>() / step as f64;
        let is_rung = rule.rungs().contains(&(step as u64));
        if is_rung {
            self.curve.insert(step as u64, Rung { value: cost, best, mean });
        }
        is_rung
    }
}

/// Returns the rule, and the sign that turns values into costs.
fn rule(case: &Value) -> (Rule, f64) {
    let config = json!({
        "method": "random",
        "metric": {"name": "m", "goal": case["goal"]},
        "early_terminate": case["early_terminate"],
        "parameters": {"a": {"min": 0.0, "max": 1.0}},
    });
    let file = parse("f", "v", config.to_string().as_bytes()).unwrap();
    (file.early_terminate.unwrap(), if file.metric.unwrap().goal == Goal::Maximize { -1.0 } else { 1.0 })
}

#[test]
fn recorded_decisions_of_ray_agree() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/ray-schedulers/stopping.jsonl");
    let (mut decisions, mut stopped) = (0, 0);
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (rule, sign) = rule(&case);
        if let Some(rungs) = case["rungs"].as_array() {
            let rungs: Vec<u64> = rungs.iter().map(|rung| rung.as_f64().unwrap() as u64).collect();
            assert_eq!(rule.rungs(), rungs, "{}", case["id"]);
        }
        let events: Vec<(u64, usize, f64, bool, Option<f64>)> = serde_json::from_value(case["events"].clone()).unwrap();
        let mut trials: BTreeMap<u64, Trial> = BTreeMap::new();
        for (name, step, value, stops, cut) in events {
            let place = format!("{}: trial {name} at {step}", case["id"]);
            let own = trials.entry(name).or_default();
            let is_rung = own.report(sign * value, &rule);
            assert_eq!(own.costs.len(), step, "{place}");
            if !is_rung {
                assert!(!stops, "{place}");
                continue;
            }
            let peers = trials.iter().filter(|(other, _)| **other != name).map(|(_, trial)| &trial.curve);
            let verdict = rule.judge(&trials[&name].curve, None, peers).unwrap();
            assert_eq!(verdict.stops, stops, "{place}: {verdict:?}, {cut:?}");
            let distance = verdict.cut.zip(cut).map_or(0.0, |(ours, theirs)| (ours - sign * theirs).abs());
            assert!(verdict.cut.is_some() == cut.is_some() && distance < 1e-12, "{place}: {verdict:?}, {cut:?}");
            decisions += 1;
            stopped += u32::from(stops);
        }
    }
    println!("{decisions} decisions agree, {stopped} trials stop");
    assert!(decisions > 0 && stopped > 0);
}
