//! What a sweep comes to: `leaderboard.csv` and `summary.json`, from the trials alone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::results::cost::Cost;
use crate::results::diagnosis::Diagnosis;
use crate::sweep::spent::Spent;
use crate::sweep::{Plan, Ranking, Sweep};
use crate::trial::{JobStatus, Trial};
use spotsweep_protocol::claim::TrialLine;

/// Ranks a sweep whose file names no metric: the first of these that any trial has reported.
/// The names are those of Keras, the last column says whether larger is better.
const ASSUMED_METRICS: [(&str, bool); 4] =
    [("val_accuracy", true), ("accuracy", true), ("val_loss", false), ("loss", false)];

/// The metric that ranks: the file's own, else one of the usual names.
pub fn ranking(plan: &Plan, trials: &[Trial]) -> Option<Ranking> {
    let reported = |name: &str| trials.iter().any(|trial| trial.metrics.contains_key(name));
    let assumed = || ASSUMED_METRICS.iter().find(|(name, _)| reported(name));
    plan.metric
        .clone()
        .or_else(|| assumed().map(|(name, maximize)| Ranking { name: (*name).to_owned(), maximize: *maximize }))
}

/// Trials from best to worst: those that succeeded first, by the metric's last value (the one that
/// the collected model has), then the rest by index.
pub fn ranked<'a>(ranking: Option<&Ranking>, trials: &'a [Trial]) -> Vec<&'a Trial> {
    let key = |trial: &Trial| {
        let value = value_of(ranking, trial);
        let ascending = value.map(|value| if ranking.is_some_and(|by| by.maximize) { -value } else { value });
        (trial.status != JobStatus::Succeeded, ascending.is_none(), ascending.unwrap_or(0.0))
    };
    let mut ranked: Vec<&Trial> = trials.iter().collect();
    ranked.sort_by(|left, right| {
        let ((failed, unmeasured, value), (other_failed, other_unmeasured, other_value)) = (key(left), key(right));
        (failed, unmeasured)
            .cmp(&(other_failed, other_unmeasured))
            .then(value.total_cmp(&other_value))
            .then(left.index.cmp(&right.index))
    });
    ranked
}

fn value_of(ranking: Option<&Ranking>, trial: &Trial) -> Option<f64> {
    trial.metrics.get(&ranking?.name).map(|metric| metric.last)
}

/// One row a trial, best first: rank, index, status, metrics, parameters, attempts, seconds, cost, reason.
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
        let line = lines.get(trial.index as usize).and_then(Option::as_ref);
        let mut row =
            vec![i32::to_string(&rank), trial.index.to_string(), format!("{:?}", trial.status).to_lowercase()];
        row.extend(
            metrics.iter().map(|name| trial.metrics.get(*name).map_or(String::new(), |metric| metric.last.to_string())),
        );
        row.extend(
            names.iter().map(|name| line.and_then(|line| line.parameters.get(*name)).map_or(String::new(), plain)),
        );
        row.push(trial.attempts.len().to_string());
        row.push(format!("{:.1}", trial.run_seconds()));
        row.push(costs.get(&trial.index).map_or(String::new(), |cost| format!("{:.6}", cost.usd())));
        let diagnosed = diagnoses.get(&trial.index).and_then(|diagnosis| diagnosis.cause.clone());
        let is_good = trial.status == JobStatus::Succeeded;
        row.push(if is_good { String::new() } else { diagnosed.unwrap_or_else(|| why(trial)) });
        table.write_record(&row)?;
    }
    let bytes = table.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn why(trial: &Trial) -> String {
    trial
        .attempts
        .values()
        .next_back()
        .and_then(|attempt| attempt.reason.as_ref())
        .or(trial.reason.as_ref())
        .map(ToString::to_string)
        .unwrap_or_default()
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
) -> Result<String, csv::Error> {
    let by = ranking(plan, trials);
    let count = |status| trials.iter().filter(|trial| trial.status == status).count();
    let attempts = || trials.iter().flat_map(|trial| trial.attempts.values());
    let ended: Option<Timestamp> = trials.iter().filter_map(Trial::stopped_at).max();
    let best = ranked(by.as_ref(), trials).into_iter().find_map(|trial| best(by.as_ref()?, trial, parameters));
    let summary = json!({
        "sweep": sweep.id.as_str(),
        "file": sweep.upload.key,
        "trials": plan.trials,
        "succeeded": count(JobStatus::Succeeded),
        "failed": count(JobStatus::Failed),
        "best": best,
        "ranking": by.map(|by| json!({
            "metric": by.name,
            "goal": if by.maximize { "maximize" } else { "minimize" },
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
            "control_plane_usd": spent.control_plane_usd,
            "unpriced_seconds": spent.unpriced_seconds,
            "saving": spent.saving(),
        },
        "stopped": sweep.stopped.as_ref().map(ToString::to_string),
    });
    Ok(summary.to_string())
}

fn millis(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

fn best(by: &Ranking, trial: &Trial, parameters: &[u8]) -> Option<Value> {
    let value = value_of(Some(by), trial).filter(|_| trial.status == JobStatus::Succeeded)?;
    let line = parameters.split(|byte| *byte == b'\n').nth(trial.index as usize)?;
    let found: Map<String, Value> = serde_json::from_slice::<TrialLine>(line).ok()?.parameters;
    Some(json!({ "index": trial.index, "metric": by.name, "value": value, "parameters": found }))
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
