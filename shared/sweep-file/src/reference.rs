//! Tests against the answers recorded from wandb/sweeps, and tests of sampling against the distributions themselves.
//!
//! Every deliberate difference from W&B is named here and explained in `docs/sweep-file.md`.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;

use serde_json::{Map, Value, json};
use statrs::distribution::{Beta, ContinuousCDF as _, LogNormal, Normal};

use super::distribution::{Curve, Distribution, Step};
use super::problem::Report;
use super::values::canonical;
use super::{Problem, SweepFile, parameter, parse, tree};

/// Returns the rows of one recording (`tests/data/wandb-sweeps`).
fn all_recorded(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/wandb-sweeps").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the question of a row as JSON. Python's tuples are recorded as `$tuple`, NaN and infinities as `$f`.
fn asked(row: &Value) -> String {
    row.get("config").or(row.get("param")).unwrap().to_string()
}

/// Returns the rows whose question a sweep file can ask. [`what_is_not_finite_is_refused`] has others, and tuples are
/// left out.
fn recorded(name: &str) -> Vec<Value> {
    let mut rows = all_recorded(name);
    let all = rows.len();
    rows.retain(|row| !asked(row).contains("$tuple") && !asked(row).contains("$f"));
    println!("{name}: {} of {all} rows", rows.len());
    rows
}

fn file(config: &Value) -> Result<SweepFile, Vec<Problem>> {
    parse("sweep.yaml", "version-1", config.to_string().as_bytes()).map_err(|rejected| rejected.problems)
}

fn distribution(parameter: &Value) -> Result<Distribution, Vec<Problem>> {
    let text = json!({ "p": parameter }).to_string();
    let mut report = Report::new("sweep.yaml", &text);
    let tree::Parsed::Whole(Some(root)) = tree::parse(&text, &mut report) else { unreachable!("written above") };
    let tree::Kind::Mapping(entries) = &root.kind else { unreachable!("written above") };
    let read = parameter::read(&entries[0], &mut report);
    if report.is_empty() { Ok(read.unwrap()) } else { Err(report.into_rejected().problems) }
}

/// Returns the distribution that a recorded type with its filled-in defaults means.
fn expected(kind: &str, filled: &Value) -> Distribution {
    let number = |key: &str| filled[key].as_f64().unwrap();
    let values = || filled["values"].as_array().unwrap().clone();
    let whole = |key: &str| !filled[key].is_f64();
    let step = || {
        Some(Step {
            size: number("q"),
            whole: whole("q"),
            whole_grid: whole("q") && whole("min") && whole("max") && filled["min"].is_i64() && filled["max"].is_i64(),
        })
    };
    let real = |curve, step| Distribution::Real { curve, step };
    let (uniform, log_uniform) = (
        || Curve::Uniform { min: number("min"), max: number("max") },
        || Curve::LogUniform { min: number("min"), max: number("max") },
    );
    let (normal, log_normal) = (
        || Curve::Normal { mu: number("mu"), sigma: number("sigma") },
        || Curve::LogNormal { mu: number("mu"), sigma: number("sigma") },
    );
    let exponential = |min: f64, max: f64| Curve::LogUniform { min: min.exp(), max: max.exp() };
    match kind {
        "param_single_value" => Distribution::Constant(filled["value"].clone()),
        "param_categorical" => Distribution::Choice { values: values(), cumulated: None },
        "param_categorical_w_probabilities" => {
            let mut sum = 0.0;
            let add = |probability: &Value| {
                sum += probability.as_f64().unwrap();
                sum
            };
            let cumulated = filled["probabilities"].as_array().unwrap().iter().map(add).collect();
            Distribution::Choice { values: values(), cumulated: Some(cumulated) }
        }
        "param_int_uniform" => {
            Distribution::Integers { min: filled["min"].as_i64().unwrap(), max: filled["max"].as_i64().unwrap() }
        }
        "param_uniform" => real(uniform(), None),
        "param_quniform" => real(uniform(), step()),
        "param_loguniform" => real(exponential(number("min"), number("max")), None),
        "param_inv_loguniform" => real(exponential(-number("max"), -number("min")), None),
        "param_qloguniform" => real(exponential(number("min"), number("max")), step()),
        "param_loguniform_v2" | "param_inv_loguniform_v2" => real(log_uniform(), None),
        "param_qloguniform_v2" => real(log_uniform(), step()),
        "param_normal" => real(normal(), None),
        "param_qnormal" => real(normal(), step()),
        "param_lognormal" => real(log_normal(), None),
        "param_qlognormal" => real(log_normal(), step()),
        "param_beta" => real(Curve::Beta { a: number("a"), b: number("b") }, None),
        "param_qbeta" => real(Curve::Beta { a: number("a"), b: number("b") }, step()),
        other => unreachable!("unknown recorded type {other}"),
    }
}

#[test]
fn parameters_mean_what_they_mean_to_wandb() {
    for row in recorded("param_type.jsonl") {
        let parameter = &row["param"];
        if parameter.get("parameters").is_some() {
            // The recorded function refuses a group, because its caller handles groups.
            let config = json!({"method": "grid", "parameters": {"p": parameter}});
            assert!(file(&config).is_ok(), "{row}");
            continue;
        }
        let read = distribution(parameter);
        match row["type"].as_str() {
            // W&B still infers the type, and refuses the lengths or the sum later.
            Some("param_categorical_w_probabilities")
                if parameter["probabilities"].as_array().unwrap().len() != 3
                    && parameter["values"].as_array().unwrap().len() == 3 =>
            {
                assert!(read.is_err(), "{row}");
            }
            Some(kind) => assert_eq!(read.unwrap(), expected(kind, &row["filled"]), "{row}"),
            None => assert!(read.is_err(), "{row}"),
        }
    }
}

#[test]
fn quantiles_are_wandbs() {
    for row in recorded("ppf.jsonl") {
        let (kind, filled) = (row["type"].as_str().unwrap(), &row["filled"]);
        let distribution = distribution(&row["param"]).unwrap();
        let limit =
            |key: &str| filled[key].as_f64().map(|limit| if kind == "param_qloguniform" { limit.exp() } else { limit });
        for (q, theirs) in row["q"].as_array().unwrap().iter().zip(row["ppf"].as_array().unwrap()) {
            let ours = distribution.quantile(q.as_f64().unwrap());
            let context = format!("{kind} {filled} at {q}: {ours}, and W&B {theirs}");
            // spotsweep never draws at this end. W&B returns the number below the first value, the last category, or
            // minus infinity.
            let is_odd = ["param_int_uniform", "param_categorical", "param_normal", "param_qnormal"].contains(&kind);
            if q.as_f64() == Some(0.0) && is_odd {
                continue;
            }
            let (Some(ours), Some(theirs)) = (ours.as_f64(), theirs.as_f64()) else {
                assert_eq!(&ours, theirs, "{context}");
                continue;
            };
            // W&B rounds to multiples of q that may lie outside of the limits; spotsweep takes the nearest multiple
            // inside.
            let outside = limit("min").is_some_and(|min| theirs < min) || limit("max").is_some_and(|max| theirs > max);
            if outside && filled.get("q").is_some() {
                assert!(ours >= limit("min").unwrap() && ours <= limit("max").unwrap(), "{context}");
                assert!((ours - theirs).abs() <= filled["q"].as_f64().unwrap() * 1.000_001, "{context}");
                continue;
            }
            assert!((ours - theirs).abs() <= 1e-9 * theirs.abs().max(1e-9), "{context}");
        }
    }
}

/// Whether the goal has another spelling. W&B's validation refuses it, but its scheduler takes it for minimize, as a
/// recorded case in `tests/recorded_hyperband.rs` shows.
fn has_other_spelling(config: &Value) -> bool {
    config["metric"]["goal"] == "minimise"
}

/// Returns the config without what spotsweep refuses on purpose, so that the rest can be compared.
fn without_refused(config: &Value) -> Value {
    let mut config = config.clone();
    config.as_object_mut().unwrap().remove("job");
    config
}

#[test]
fn grids_have_wandbs_trials_in_wandbs_order() {
    for row in recorded("grid_full.jsonl") {
        let parsed = file(&without_refused(&row["config"]));
        if row.get("raises").is_some() {
            assert!(parsed.is_err(), "{row}");
            continue;
        }
        let parsed = parsed.unwrap();
        assert_eq!(parsed.trial_count(), row["count"].as_u64().unwrap(), "{row}");
        let ours: Vec<Value> = parsed.trials().take(300).map(Value::Object).collect();
        let theirs = row["order"].as_array().unwrap();
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(theirs) {
            assert_eq!(ours, theirs);
        }
    }
}

/// Whether a prior run is this trial. Its mappings may have additional entries.
fn covers(prior: &Value, trial: &Value) -> bool {
    match (prior, trial) {
        (Value::Object(prior), Value::Object(trial)) => {
            trial.iter().all(|(key, value)| prior.get(key).is_some_and(|prior| covers(prior, value)))
        }
        _ => canonical(prior) == canonical(trial),
    }
}

#[test]
fn what_is_left_of_a_grid_after_prior_runs_is_what_wandb_runs_next() {
    for row in recorded("grid.jsonl") {
        let parsed = file(&without_refused(&row["config"]));
        if row.get("raises").is_some() {
            assert_eq!(parsed.is_ok(), has_other_spelling(&row["config"]), "{row}");
            continue;
        }
        let plain = |run: &Value| -> Value {
            let entries = run.as_object().unwrap().iter().filter(|(name, _)| *name != "_wandb");
            Value::Object(entries.map(|(name, entry)| (name.clone(), entry["value"].clone())).collect::<Map<_, _>>())
        };
        let prior: Vec<Value> = row["prior"].as_array().unwrap().iter().map(plain).collect();
        let parsed = parsed.unwrap();
        let left = parsed.trials().map(Value::Object).filter(|trial| !prior.iter().any(|prior| covers(prior, trial)));
        let asked = usize::try_from(row["n"].as_u64().unwrap()).unwrap();
        let mut ours: Vec<Value> = left.take(asked).collect();
        if ours.len() < asked {
            ours.push(Value::Null);
        }
        let next = row["next"].as_array().unwrap();
        let theirs: Vec<Value> = next.iter().map(|run| if run.is_null() { Value::Null } else { plain(run) }).collect();
        assert_eq!(
            ours.iter().map(canonical).collect::<Vec<_>>(),
            theirs.iter().map(canonical).collect::<Vec<_>>(),
            "{row}"
        );
    }
}

#[test]
fn configs_are_valid_where_wandb_says_so() {
    for row in recorded("validate.jsonl") {
        let config = row["config"].clone();
        let parsed = file(&config);
        let refused_here = config["method"] == "custom" || config.get("scheduler").is_some();
        // W&B's validation accepts it, but its grid search refuses it.
        let weighted_grid = row["test"].as_str().unwrap().contains("categorical_prob_grid");
        if refused_here || weighted_grid {
            assert!(parsed.is_err(), "{row}");
            continue;
        }
        // W&B warns about deprecated distributions but runs them.
        let is_warning = |violation: &Value| violation.as_str().unwrap().contains("base-e exponents");
        let is_valid = row["violations"].as_array().unwrap().iter().all(is_warning) || has_other_spelling(&config);
        assert_eq!(parsed.is_ok(), is_valid, "{row}: {:?}", parsed.err());
    }
}

#[test]
fn what_is_not_finite_is_refused() {
    for row in ["param_type.jsonl", "grid.jsonl"].into_iter().flat_map(all_recorded) {
        let mut written = asked(&row);
        if !written.contains("$f") {
            continue;
        }
        for number in ["nan", "inf", "-inf"] {
            let yaml = number.replace("nan", ".nan").replace("inf", ".inf");
            written = written.replace(&json!({ "$f": number }).to_string(), &yaml);
        }
        let problems = parse("sweep.yaml", "v", written.as_bytes()).unwrap_err().problems;
        assert!(problems.iter().any(|problem| problem.message.contains("not a finite number")), "{problems:?}");
    }
}

#[test]
fn probabilities_add_up_as_exactly_as_for_wandb() {
    for (probability, is_valid) in [(1.0 / 3.0, true), (0.33333, true), (0.3333, false), (0.33334, false)] {
        let weighted = json!({"values": ["a", "b", "c"], "probabilities": vec![probability; 3]});
        assert_eq!(distribution(&weighted).is_ok(), is_valid, "{probability}");
    }
}

/// Returns draws of one parameter of a sweep file.
fn draws(parameter: &Value) -> Vec<f64> {
    let config =
        json!({"method": "random", "run_cap": 20_000, "parameters": {"p": parameter}, "spotsweep": {"seed": 7}});
    let parsed = file(&config).unwrap();
    let mut drawn: Vec<f64> = parsed.trials().map(|trial| trial["p"].as_f64().unwrap()).collect();
    assert_eq!(drawn.len(), 20_000);
    drawn.sort_by(f64::total_cmp);
    drawn
}

/// Returns the Kolmogorov-Smirnov statistic: the largest distance between the draws' distribution and `cdf`, times the
/// root of their number. One of a thousand correct seeds exceeds 1.95. Steps in `cdf` do not make the statistic larger.
fn fits(drawn: &[f64], cdf: &dyn Fn(f64) -> f64) -> f64 {
    let count = drawn.len() as f64;
    let mut largest = 0.0_f64;
    let mut index = 0;
    while index < drawn.len() {
        let value = drawn[index];
        let after = drawn[index..].iter().take_while(|other| **other <= value).count() + index;
        largest = largest.max((after as f64 / count - cdf(value)).abs());
        index = after;
    }
    largest * count.sqrt()
}

#[test]
fn draws_follow_their_distribution() {
    let log_uniform = |min: f64, max: f64| move |x: f64| (x.ln() - min.ln()) / (max.ln() - min.ln());
    let normal = Normal::new(2.0, 4.0).unwrap();
    let log_normal = LogNormal::new(2.0, 1.0).unwrap();
    let beta = Beta::new(2.0, 5.0).unwrap();
    // Rounding to multiples moves values up to half a step above a multiple down to it.
    let stepped = |cdf: &dyn Fn(f64) -> f64, q: f64, least: f64, greatest: f64, x: f64| match x {
        _ if x < least - q / 2.0 => 0.0,
        _ if x > greatest - q / 2.0 => 1.0,
        _ => cdf(x + q / 2.0),
    };
    type Cdf<'c> = Box<dyn Fn(f64) -> f64 + 'c>;
    let cases: Vec<(Value, Cdf<'_>)> = vec![
        (json!({"values": [0, 1, 2, 3]}), Box::new(|x| (x + 1.0) / 4.0)),
        (json!({"values": [0, 1, 2], "probabilities": [0.5, 0.2, 0.3]}), Box::new(|x| [0.5, 0.7, 1.0][x as usize])),
        (json!({"min": -5, "max": 5}), Box::new(|x| (x + 6.0) / 11.0)),
        (json!({"min": 3.0, "max": 5}), Box::new(|x| (x - 3.0) / 2.0)),
        (
            json!({"distribution": "q_uniform", "min": -1, "max": 1, "q": 0.25}),
            Box::new(|x| stepped(&|x| (x + 1.0) / 2.0, 0.25, -1.0, 1.0, x)),
        ),
        (json!({"distribution": "log_uniform_values", "min": 1e-4, "max": 1}), Box::new(log_uniform(1e-4, 1.0))),
        (json!({"distribution": "inv_log_uniform_values", "min": 1e-3, "max": 1}), Box::new(log_uniform(1e-3, 1.0))),
        (
            json!({"distribution": "q_log_uniform_values", "min": 1, "max": 1000, "q": 10}),
            Box::new(|x| stepped(&log_uniform(1.0, 1000.0), 10.0, 10.0, 1000.0, x)),
        ),
        (json!({"distribution": "normal", "mu": 2, "sigma": 4}), Box::new(|x| normal.cdf(x))),
        (json!({"distribution": "q_normal", "mu": 2, "sigma": 4, "q": 2}), Box::new(|x| normal.cdf(x + 1.0))),
        (json!({"distribution": "log_normal", "mu": 2, "sigma": 1}), Box::new(|x| log_normal.cdf(x))),
        (json!({"distribution": "q_log_normal", "mu": 2, "sigma": 1, "q": 1}), Box::new(|x| log_normal.cdf(x + 0.5))),
        (json!({"distribution": "beta", "a": 2, "b": 5}), Box::new(|x| beta.cdf(x))),
        (
            json!({"distribution": "q_beta", "a": 2, "b": 5, "q": 0.1}),
            Box::new(|x| stepped(&|x| beta.cdf(x), 0.1, 0.0, 1.0, x)),
        ),
    ];
    for (parameter, cdf) in cases {
        let distance = fits(&draws(&parameter), &cdf);
        assert!(distance < 1.95, "{parameter}: {distance}");
    }
    // The test can fail, because a neighbouring distribution does not fit.
    assert!(fits(&draws(&json!({"distribution": "normal", "mu": 2.2, "sigma": 4})), &|x| normal.cdf(x)) > 1.95);
}

#[test]
fn stepped_draws_stay_inside_their_limits() {
    for (min, max, q) in [(-9.211, 23.23, 2.341), (0.1, 0.75, 0.1), (0.3, 0.3 + 1e-9, 0.1), (1.0, 1000.0, 10.0)] {
        let drawn = draws(&json!({"distribution": "q_uniform", "min": min, "max": max, "q": q}));
        assert!(drawn[0] >= min && drawn[drawn.len() - 1] <= max, "{min} {max} {q}");
    }
    let narrow = json!({"method": "random", "run_cap": 5, "parameters": {"p": {"distribution": "q_uniform", "min": 0.1, "max": 0.75, "q": 1}}});
    assert!(file(&narrow).unwrap_err()[0].message.contains("no multiple of q"));
}

#[test]
fn the_version_or_the_seed_decides_random_trials() {
    let trials = |version: &str, own: &str, run_cap: u32| {
        let text = format!(
            "method: random\nrun_cap: {run_cap}\nspotsweep: {own}\nparameters: {{a: {{min: 0.0, max: 1.0}}, b: {{min: 1, max: 9}}}}\n"
        );
        parse("sweep.yaml", version, text.as_bytes()).unwrap().trials().collect::<Vec<_>>()
    };
    assert_eq!(trials("v1", "{}", 20), trials("v1", "{}", 20));
    assert_ne!(trials("v1", "{}", 20), trials("v2", "{}", 20));
    assert_eq!(trials("v1", "{seed: 3}", 20), trials("v2", "{seed: 3}", 20));
    assert_ne!(trials("v1", "{seed: 3}", 20), trials("v1", "{seed: 4}", 20));
    // A longer sweep keeps the trials of the shorter one.
    assert_eq!(trials("v1", "{seed: 3}", 20), trials("v1", "{seed: 3}", 30)[..20]);
}
