//! The parameters of the trials that are tried again, with what `--set` changes.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use spotsweep_protocol::claim::TrialLine;
use spotsweep_protocol::failure::{Context, Failure};

/// A parameter and its new value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Set {
    name: String,
    value: Value,
}

impl std::str::FromStr for Set {
    type Err = String;

    /// `name=value`. The value is JSON where it can be read so, and a text elsewhere.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write NAME=VALUE")?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        Ok(Self { name: name.to_owned(), value })
    }
}

/// The trials' lines of `trials.jsonl`.
pub(super) fn read(lines: &[u8], indices: &BTreeSet<u32>) -> Result<Vec<TrialLine>, Failure> {
    let lines = (0..).zip(lines.split(|byte| *byte == b'\n')).filter(|(index, _)| indices.contains(index));
    let lines: Result<Vec<TrialLine>, _> = lines.map(|(_, line)| serde_json::from_slice(line)).collect();
    let lines = lines.context(|| "trials.jsonl is not what sweep-upload has written")?;
    if lines.len() == indices.len() { Ok(lines) } else { Err(Failure::new("trials.jsonl ends before its last trial")) }
}

/// Replaces values of parameters that each trial has; a name with dots is looked for in groups, too.
pub(super) fn set(lines: &mut [TrialLine], changes: &[Set]) -> Result<(), Failure> {
    for TrialLine { index, parameters } in lines {
        for Set { name, value } in changes {
            let Some(held) = find(parameters, name) else {
                let names: Vec<&str> = parameters.keys().map(String::as_str).collect();
                let names = names.join(", ");
                return Err(Failure::usage(format!("trial {index} has no parameter {name:?} to set; it has {names}")));
            };
            held.clone_from(value);
        }
    }
    Ok(())
}

fn find<'a>(parameters: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Value> {
    if parameters.contains_key(name) {
        return parameters.get_mut(name);
    }
    let (group, rest) = name.split_once('.')?;
    find(parameters.get_mut(group)?.as_object_mut()?, rest)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_set_where_the_parameter_is() {
        let parameters = json!({ "epochs": 10, "optimizer": { "lr": 0.1 }, "a.b": 1, "name": "x" });
        let line = |parameters: &Value| TrialLine { index: 3, parameters: parameters.as_object().unwrap().clone() };
        let mut lines = [line(&parameters)];
        let changes = ["epochs=50", "optimizer.lr=1e-3", "a.b=2", "name=new model"].map(|text| text.parse().unwrap());
        set(&mut lines, &changes).unwrap();
        let expected = json!({ "epochs": 50, "optimizer": { "lr": 1e-3 }, "a.b": 2, "name": "new model" });
        assert_eq!(lines, [line(&expected)]);

        let unknown = set(&mut lines, &["epoch=5".parse().unwrap()]).unwrap_err().to_string();
        assert!(unknown.contains("trial 3 has no parameter \"epoch\"") && unknown.contains("epochs"), "{unknown}");
        for malformed in ["epochs", "=5"] {
            assert!(malformed.parse::<Set>().is_err());
        }
    }
}
