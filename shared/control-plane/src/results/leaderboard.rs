//! What a sweep comes to: `leaderboard.csv` and `summary.json`, from the trials alone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::results::cost::Cost;
use crate::results::diagnosis::Diagnosis;
use crate::results::ranking::{best, has_rank, ranked, ranking};
use crate::sweep::spent::Spent;
use crate::sweep::{Plan, Sweep};
use crate::trial::{Standing, Trial};
use spotsweep_protocol::claim::TrialLine;
use spotsweep_protocol::number::to_json;

/// One row a trial, best first: rank (empty for a trial without one), index, status, metrics, parameters, attempts, seconds, cost, reason.
///
/// # Errors
/// `parameters` is not the sweep's `trials.jsonl`.
pub fn leaderboard_csv(
    plan: &Plan,
    trials: &[Trial],
    parameters: &[u8],
    costs: &BTreeMap<u32, Cost>,
    diagnoses: &BTreeMap<u32, Diagnosis>,
) -> Result<String, csv::Error> {
    let lines = lines(parameters);
    let by = ranking(plan, trials);
    let names: BTreeSet<&String> = lines.iter().flatten().flat_map(|line| line.parameters.keys()).collect();
    let mut metrics: Vec<&String> =
        trials.iter().flat_map(|trial| trial.metrics.keys()).collect::<BTreeSet<_>>().into_iter().collect();
    metrics.sort_by_key(|name| by.as_ref().is_none_or(|by| by.name != **name));

    let mut table = csv::Writer::from_writer(Vec::new());
    let mut header = vec!["rank".to_owned(), "index".into(), "status".into()];
    header.extend(metrics.iter().map(|name| (*name).clone()));
    header.extend(names.iter().map(|name| format!("parameters.{name}")));
    header.extend(["attempts", "run_seconds", "usd", "reason"].map(str::to_owned));
    table.write_record(&header)?;
    for (rank, trial) in (1..).zip(ranked(by.as_ref(), trials)) {
        let rank = if has_rank(by.as_ref(), trial) { i32::to_string(&rank) } else { String::new() };
        let line = lines.get(trial.index as usize).and_then(Option::as_ref);
        let mut row = vec![rank, trial.index.to_string(), trial.standing().name().to_owned()];
        row.extend(
            metrics.iter().map(|name| trial.metrics.get(*name).map_or(String::new(), |metric| metric.last.to_string())),
        );
        row.extend(
            names.iter().map(|name| line.and_then(|line| line.parameters.get(*name)).map_or(String::new(), plain)),
        );
        row.push(trial.attempts.len().to_string());
        row.push(format!("{:.1}", trial.run_seconds()));
        row.push(costs.get(&trial.index).map_or(String::new(), |cost| format!("{:.6}", cost.usd())));
        row.push(diagnoses.get(&trial.index).map(|diagnosis| diagnosis.cause_of(trial)).unwrap_or_default());
        table.write_record(&row)?;
    }
    let bytes = table.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The summary, on one line.
///
/// # Errors
/// Never, but for a parameter line that is not JSON.
pub fn summary_json(
    sweep: &Sweep,
    plan: &Plan,
    trials: &[Trial],
    parameters: &[u8],
    spent: &Spent,
    warnings: &[String],
) -> Result<String, csv::Error> {
    let by = ranking(plan, trials);
    let count = |standing| trials.iter().filter(|trial| trial.standing() == standing).count();
    let attempts = || trials.iter().flat_map(|trial| trial.attempts.values());
    let ended: Option<Timestamp> = trials.iter().filter_map(Trial::stopped_at).max();
    let best = by.as_ref().and_then(|by| {
        let (trial, value) = best(by, trials)?;
        let line = parameters.split(|byte| *byte == b'\n').nth(trial.index as usize)?;
        let found: Map<String, Value> = serde_json::from_slice::<TrialLine>(line).ok()?.parameters;
        Some(json!({ "index": trial.index, "metric": by.name, "value": to_json(value), "parameters": found }))
    });
    let summary = json!({
        "sweep": sweep.id.as_str(),
        "file": sweep.upload.key,
        "trials": plan.trials,
        "succeeded": count(Standing::Succeeded),
        "failed": count(Standing::Failed),
        "cancelled": count(Standing::Cancelled),
        "best": best,
        "ranking": by.map(|by| json!({
            "metric": by.name,
            "goal": if by.maximize { "maximize" } else { "minimize" },
            "over": by.over,
            "stated": plan.metric.is_some(),
        })),
        "outputs": format!("s3://{}/{}", sweep.upload.bucket, sweep.id.results_prefix()),
        "wall_seconds": ended.map(|ended| millis(sweep.seconds_until(ended))),
        "run_seconds": millis(trials.iter().map(Trial::run_seconds).fold(0.0, |sum, seconds| sum + seconds)),
        "attempts": attempts().count(),
        "interruptions": attempts().filter(|attempt| attempt.was_interrupted()).count(),
        "cost": {
            "usd": spent.usd,
            "on_demand_usd": spent.on_demand_usd,
            "storage_usd": spent.storage_usd,
            "initialization_usd": spent.initialization_usd,
            "kept_usd": spent.kept_usd,
            "control_plane_usd": spent.control_plane_usd,
            "unpriced_seconds": spent.unpriced_seconds,
            "saving": spent.saving(),
        },
        "warnings": warnings,
        "stopped": sweep.stopped.as_ref().map(ToString::to_string),
    });
    Ok(summary.to_string())
}

fn millis(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// By trial index.
fn lines(parameters: &[u8]) -> Vec<Option<TrialLine>> {
    parameters.split(|byte| *byte == b'\n').map(|line| serde_json::from_slice(line).ok()).collect()
}

/// A value as a cell: text as it is, the rest as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
