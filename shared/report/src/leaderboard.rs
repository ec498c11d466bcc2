//! `leaderboard.csv` and `summary.json`, which are made from the trials alone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::cost::Cost;
use crate::csv_cell::csv_cell;
use crate::diagnosis::Diagnosis;
use crate::page::cut;
use spotsweep_protocol::claim::TrialLine;
use spotsweep_protocol::number::to_json;
use spotsweep_protocol::words::figure;
use spotsweep_ranking::sets::{Mean, Set, sets};
use spotsweep_ranking::{Best, Ranked, best, ranked, ranking};
use spotsweep_records::sweep::spent::Spent;
use spotsweep_records::sweep::{Plan, Sweep};
use spotsweep_records::trial::{Standing, Trial};
use spotsweep_sweep_file::Repeats;

/// Most bytes of a reason in the leaderboard. `explain` shows all of it.
const MOST_REASON: usize = 500;
/// The leaderboard's columns about a trial's parameter set, where the sweep has repeats.
const SET_COLUMNS: [&str; 5] = ["set.index", "set.mean", "set.standard_error", "set.results", "set.lacks"];

/// Returns the leaderboard with one row for each trial, best first: rank (empty for a trial without one), index,
/// status, metrics, parameters, attempts, seconds, cost, reason. No spreadsheet program takes a cell for a formula.
/// Where the sweep repeats its parameter sets, the rows of a set are together and have its rank, mean, standard error,
/// number of results, and what it lacks.
///
/// # Errors
/// Returns an error if `parameters` is not the sweep's `trials.jsonl`.
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
    let sets = by_number(plan, trials);
    if plan.repeats.is_some() {
        header.extend(SET_COLUMNS.map(str::to_owned));
    }
    header.extend(metrics.iter().map(|name| csv_cell(name).into_owned()));
    header.extend(names.iter().map(|name| format!("parameters.{name}")));
    header.extend(["attempts", "run_seconds", "usd", "reason"].map(str::to_owned));
    table.write_record(&header)?;
    for Ranked { trial, rank } in ranked(plan, trials) {
        let line = lines.get(trial.index as usize).and_then(Option::as_ref);
        let mut row = vec![
            rank.map_or(String::new(), |rank| rank.to_string()),
            trial.index.to_string(),
            trial.standing().name().to_owned(),
        ];
        if let Some(repeats) = &plan.repeats {
            row.extend(set_cells(sets.get(&repeats.set_of(trial.index.into()))));
        }
        row.extend(
            metrics.iter().map(|name| trial.metrics.get(*name).map_or(String::new(), |metric| figure(metric.last))),
        );
        row.extend(
            names.iter().map(|name| line.and_then(|line| line.parameters.get(*name)).map_or(String::new(), plain)),
        );
        row.push(trial.attempts.len().to_string());
        row.push(format!("{:.1}", trial.run_seconds()));
        row.push(costs.get(&trial.index).map_or(String::new(), |cost| format!("{:.6}", cost.usd())));
        row.push(
            diagnoses
                .get(&trial.index)
                .map(|diagnosis| cut(&diagnosis.cause_of(trial), MOST_REASON))
                .unwrap_or_default(),
        );
        table.write_record(row.iter().map(|text| csv_cell(text).into_owned()))?;
    }
    let bytes = table.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the sets of a sweep with repeats by their number.
fn by_number<'a>(plan: &Plan, trials: &'a [Trial]) -> BTreeMap<u64, Set<'a>> {
    let (by, repeats) = (ranking(plan, trials), plan.repeats.as_ref());
    let sets = repeats.map(|repeats| sets(by.as_ref(), repeats, trials)).unwrap_or_default();
    sets.into_iter().map(|set| (set.number.into(), set)).collect()
}

fn set_cells(set: Option<&Set<'_>>) -> [String; 5] {
    let Some(Set { number, mean, lacks, .. }) = set else { return Default::default() };
    let figure = |pick: fn(&Mean) -> Option<f64>| mean.as_ref().and_then(pick).map_or(String::new(), figure);
    let results = mean.map_or(0, |mean| mean.results).to_string();
    [number.to_string(), figure(|it| Some(it.mean)), figure(|it| it.standard_error), results, lacks.to_string()]
}

/// Returns the summary on one line.
///
/// # Errors
/// Returns none at present, because a parameter line that cannot be read only leaves the best trial out.
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
    let best = best(plan, trials).and_then(|best| best_json(&best, parameters));
    let mut summary = json!({
        "sweep": sweep.id.as_str(),
        "file": sweep.upload.key,
        "trials": plan.trials,
        "succeeded": count(Standing::Succeeded),
        "failed": count(Standing::Failed),
        "cancelled": count(Standing::Cancelled),
        "stopped_early": count(Standing::Stopped),
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
        "interruptions": trials.iter().map(|trial| trial.interruptions().count()).sum::<usize>(),
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
    if let Some(repeats) = &plan.repeats {
        summary["repeats"] = repeats_json(repeats, &by_number(plan, trials));
    }
    Ok(summary.to_string())
}

fn best_json(best: &Best<'_>, parameters: &[u8]) -> Option<Value> {
    let Best { by, trial, value, set } = best;
    let line = parameters.split(|byte| *byte == b'\n').nth(trial.index as usize)?;
    let found: Map<String, Value> = serde_json::from_slice::<TrialLine>(line).ok()?.parameters;
    let mut json = json!({ "index": trial.index, "metric": by.name, "value": to_json(*value), "parameters": found });
    if let Some((set, mean)) = set {
        json["set"] = json!({ "index": set.number, "trials": set.indexes(), "mean": mean.mean,
            "standard_error": mean.standard_error, "results": mean.results });
    }
    Some(json)
}

fn repeats_json(repeats: &Repeats, sets: &BTreeMap<u64, Set<'_>>) -> Value {
    let count = |is_such: fn(&Set<'_>) -> bool| sets.values().filter(|set| is_such(set)).count();
    json!({ "parameter": repeats.parameter, "sets": repeats.sets, "complete": count(|set| set.is_complete()),
        "incomplete": count(|set| set.lacks.is_final()) })
}

fn millis(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// Returns the lines of `trials.jsonl` by trial index; `None` for one that cannot be read.
fn lines(parameters: &[u8]) -> Vec<Option<TrialLine>> {
    parameters.split(|byte| *byte == b'\n').map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Returns a value as a cell: a text unchanged, anything else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use spotsweep_protocol::ids::{JobId, SweepId};
    use spotsweep_protocol::metric::{Metric, Source};

    use super::*;

    /// The training chooses metric names and the sweep file chooses texts, so both can try to be formulas.
    #[test]
    fn no_cell_is_a_formula() {
        let plan = json!({ "trials": 1, "queue": "q", "definition": "d:1", "attempts": 1, "parts": [] });
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), 0, JobId::from("j".to_owned()));
        let names = ["=1+1", "@SUM(1)", "Performance/Test accuracy", "정확도"];
        trial.metrics = names.map(|name| (name.to_owned(), Metric::of(-0.5, None, Source::Stated))).into();
        trial.reason = Some("+1+1".into());
        let parameters =
            json!({ "index": 0, "parameters": { "v": "-1-1", "w": "-1", "x": -2, "y": "=x" } }).to_string();
        let plan: Plan = serde_json::from_value(plan).unwrap();
        let diagnosis = Diagnosis { cause: Some("@cause".into()), advice: None, log_lines: vec![] };
        let diagnoses = BTreeMap::from([(0, diagnosis)]);
        let table = leaderboard_csv(&plan, &[trial], parameters.as_bytes(), &BTreeMap::new(), &diagnoses).unwrap();
        let expected = "rank,index,status,'=1+1,'@SUM(1),Performance/Test accuracy,정확도,parameters.v,parameters.w,\
            parameters.x,parameters.y,attempts,run_seconds,usd,reason\n\
            ,0,waiting,-0.5,-0.5,-0.5,-0.5,'-1-1,-1,-2,'=x,0,0.0,,'@cause\n";
        assert_eq!(table, expected);
    }
}
