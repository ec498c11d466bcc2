//! The parameters as columns: which ones differ between trials, which ones are constant, and how each is drawn.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};
use spotsweep_protocol::redact::shown;

use super::importance::Observed;
use super::model::{Column, Constant, Kind};
use super::render::cut;

/// A positive number gets a logarithmic axis only if its largest value is at least so many times the smallest.
const LOG_FROM: f64 = 8.0;
/// Larger integers lose digits in a browser: 2^53.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
/// Most bytes of a value.
const MAX_CELL: usize = 80;

/// The parameters by trial index, for the trials that the page needs.
pub(super) type Parameters = BTreeMap<u32, Map<String, Value>>;

/// Unfolds groups of parameters: `{"optimizer": {"lr": 1}}` becomes `optimizer.lr`, as in the sweep file's plan.
pub(super) fn flat(parameters: Map<String, Value>) -> Map<String, Value> {
    let mut flat = Map::new();
    for (name, value) in parameters {
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                flat.extend(self::flat(inner).into_iter().map(|(rest, value)| (format!("{name}.{rest}"), value)));
            }
            Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                flat.insert(name, value);
            }
        }
    }
    flat
}

/// Returns the parameters that differ between these trials, and the constant ones, in the order of their first
/// occurrence.
pub(super) fn columns<'a>(trials: impl Iterator<Item = &'a Map<String, Value>>) -> (Vec<Column>, Vec<Constant>) {
    let mut names: Vec<&String> = Vec::new();
    let mut values: HashMap<&String, Vec<&Value>> = HashMap::new();
    let mut count = 0;
    for trial in trials {
        count += 1;
        for (name, value) in trial {
            values
                .entry(name)
                .or_insert_with(|| {
                    names.push(name);
                    Vec::new()
                })
                .push(value);
        }
    }
    let (mut columns, mut constants) = (Vec::new(), Vec::new());
    for name in names {
        let seen = &values[name];
        if seen.len() == count && seen.iter().all(|value| *value == seen[0]) {
            constants.push(Constant { name: name.clone(), value: cut(&plain(seen[0]), MAX_CELL) });
        } else {
            columns.push(Column { name: name.clone(), kind: kind(seen) });
        }
    }
    (columns, constants)
}

fn kind(values: &[&Value]) -> Kind {
    let numbers: Option<Vec<f64>> = values.iter().map(|value| number(value)).collect();
    let Some(mut numbers) = numbers else { return Kind::Category };
    numbers.sort_by(f64::total_cmp);
    // Each value counts once, because how often it was drawn says nothing about the scale.
    numbers.dedup();
    let (least, greatest) = (numbers[0], numbers[numbers.len() - 1]);
    if least <= 0.0 || greatest / least < LOG_FROM {
        return Kind::Linear;
    }
    if numbers.len() == 2 {
        return Kind::Log;
    }
    // Linearly spread values have their median at the midpoint, logarithmically spread ones at the geometric mean.
    let median = f64::midpoint(numbers[(numbers.len() - 1) / 2], numbers[numbers.len() / 2]);
    let (halfway, geometric) = (f64::midpoint(least, greatest).ln(), (least.ln() + greatest.ln()) / 2.0);
    if (median.ln() - geometric).abs() < (median.ln() - halfway).abs() { Kind::Log } else { Kind::Linear }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite() && (value.is_f64() || number.abs() <= MAX_EXACT))
}

/// Returns a trial's value in a column: a number, a text, or null if it has none.
pub(super) fn cell(column: &Column, trial: Option<&Map<String, Value>>) -> Value {
    match (trial.and_then(|trial| trial.get(&column.name)), column.kind) {
        (None, _) => Value::Null,
        (Some(value), Kind::Linear | Kind::Log) => value.clone(),
        (Some(value), Kind::Category) => Value::String(cut(&plain(value), MAX_CELL)),
    }
}

/// Returns a column's values with the metric's, for its importance.
pub(super) fn observed(column: &Column, trials: &[(&Map<String, Value>, f64)]) -> Observed {
    let seen = || trials.iter().filter_map(|(trial, metric)| Some((trial.get(&column.name)?, *metric)));
    match column.kind {
        Kind::Linear | Kind::Log => {
            Observed::Numbers(seen().filter_map(|(value, metric)| Some((value.as_f64()?, metric))).collect())
        }
        Kind::Category => Observed::Categories(seen().map(|(value, metric)| (value.to_string(), metric)).collect()),
    }
}

/// Returns a text without the credentials of a URL, and anything else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => shown(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
