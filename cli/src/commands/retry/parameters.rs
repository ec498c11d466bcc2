//! The parameters of the retried trials, with the changes of `--set`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use spotsweep_protocol::claim::TrialLine;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_records::sweep::Plan;
use spotsweep_records::trial::Trial;

/// A parameter and its new value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Set {
    name: String,
    value: Value,
}

impl std::str::FromStr for Set {
    type Err = String;

    /// Parses `name=value`. The value is JSON if it can be read as such, and a text otherwise.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write NAME=VALUE")?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        Ok(Self { name: name.to_owned(), value })
    }
}

/// Checks that each trial has its parameters. Those of a search get them when they begin.
///
/// # Errors
/// Some trials never began. The message says what to do.
pub(super) fn check_given(plan: &Plan, trials: &[Trial], indices: &BTreeSet<u32>) -> Result<(), Failure> {
    let is_given = |index: &u32| trials.iter().any(|trial| trial.index == *index && trial.suggested.is_some());
    let missing: Vec<String> =
        indices.iter().filter(|index| plan.suggests && !is_given(index)).map(u32::to_string).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "nothing was started: a search gives a trial its parameters when it begins, and these never began: {}\nname the \
         others by their index; for further suggestions drop the sweep file again",
        missing.join(", ")
    )))
}

/// Reads the trials' lines of `trials.jsonl`.
pub(super) fn read(lines: &[u8], indices: &BTreeSet<u32>) -> Result<Vec<TrialLine>, Failure> {
    let lines = (0..).zip(lines.split(|byte| *byte == b'\n')).filter(|(index, _)| indices.contains(index));
    let lines: Result<Vec<TrialLine>, _> = lines.map(|(_, line)| serde_json::from_slice(line)).collect();
    let lines = lines.context(|| "trials.jsonl is not what sweep-upload has written")?;
    if lines.len() == indices.len() { Ok(lines) } else { Err(Failure::new("trials.jsonl ends before its last trial")) }
}

/// Replaces values of parameters that each trial has. A name with dots is also looked up in groups.
pub(super) fn set(lines: &mut [TrialLine], changes: &[Set]) -> Result<(), Failure> {
    for TrialLine { index, parameters } in lines {
        for Set { name, value } in changes {
            let Some(held) = find(parameters, name) else {
                let names: Vec<&str> = parameters.keys().map(String::as_str).collect();
                let names = names.join(", ");
                return Err(Failure::usage(format!(
                    "trial {index} has no parameter {name:?} to set; it has {names}\n`--add {name}={value}` gives it \
                     this one, too"
                )));
            };
            held.clone_from(value);
        }
    }
    Ok(())
}

/// Gives each trial parameters that it does not have.
pub(super) fn add(lines: &mut [TrialLine], additions: &[Set]) -> Result<(), Failure> {
    for TrialLine { index, parameters } in lines {
        for Set { name, value } in additions {
            if find(parameters, name).is_some() {
                let message = format!("trial {index} has the parameter {name:?}: `--set {name}={value}` changes it");
                return Err(Failure::usage(message));
            }
            parameters.insert(name.clone(), value.clone());
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
    use spotsweep_records::trial::{JobStatus, Suggested};

    use super::*;
    use crate::live::samples::trial;

    #[test]
    fn trials_that_a_search_never_began_are_not_tried_again() {
        let plan = |suggests: bool| -> Plan {
            let plan = json!({ "trials": 3, "queue": "q", "definition": "d:1", "attempts": 10, "parts": [],
                "suggests": suggests });
            serde_json::from_value(plan).unwrap()
        };
        let mut given = trial(1, JobStatus::Failed);
        given.suggested = Some(Suggested::new(&Map::new(), None));
        let trials = [trial(0, JobStatus::Failed), given];
        assert!(check_given(&plan(false), &trials, &[0, 1, 2].into()).is_ok());
        assert!(check_given(&plan(true), &trials, &[1].into()).is_ok());
        let said = check_given(&plan(true), &trials, &[0, 1, 2].into()).unwrap_err().to_string();
        assert!(said.contains("these never began: 0, 2\nname the others by their index"), "{said}");
    }

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
        assert!(unknown.contains("`--add epoch=5`"), "{unknown}");

        add(&mut lines, &["warmup=3".parse().unwrap()]).unwrap();
        let mut longer = expected;
        longer["warmup"] = json!(3);
        assert_eq!(lines, [line(&longer)]);
        let held = add(&mut lines, &["optimizer.lr=1".parse().unwrap()]).unwrap_err().to_string();
        assert!(held.contains("`--set optimizer.lr=1`"), "{held}");
        for malformed in ["epochs", "=5"] {
            assert!(malformed.parse::<Set>().is_err());
        }
    }
}
