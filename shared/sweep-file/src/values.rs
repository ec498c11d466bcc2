//! Compares parameter values.

use serde_json::{Map, Value};

/// Returns a text that is the same for equal values, as in W&B's grid search: 1 equals 1.0, `true` differs from 1, and
/// the order of a mapping's keys does not count.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            // Adding 0.0 turns -0.0 into 0.0.
            Some(float) if float.fract() == 0.0 => format!("{:.0}", float + 0.0),
            Some(_) | None => number.to_string(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => sorted(value).to_string(),
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let mut names: Vec<&String> = entries.keys().collect();
            names.sort_unstable();
            let pairs = names.into_iter().filter_map(|name| Some((name.clone(), sorted(entries.get(name)?))));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
        Value::Array(values) => Value::Array(values.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Removes repeated values as W&B does: a value keeps the position of its first occurrence and the writing of its last.
pub(crate) fn distinct(values: Vec<Value>) -> Vec<Value> {
    let mut positions = std::collections::HashMap::new();
    let mut kept: Vec<Value> = Vec::new();
    for value in values {
        match positions.entry(canonical(&value)) {
            std::collections::hash_map::Entry::Occupied(position) => kept[*position.get()] = value,
            std::collections::hash_map::Entry::Vacant(position) => {
                position.insert(kept.len());
                kept.push(value);
            }
        }
    }
    kept
}
