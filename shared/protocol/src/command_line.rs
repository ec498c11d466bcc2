//! Expands the training command of one trial: fills in W&B's macros with its parameters.
//!
//! It follows W&B's agent (`wandb/wandb_agent.py`, `wandb/sdk/launch/sweeps/utils.py`), so that a script gets the same
//! arguments, including Python's way of writing values.

use serde_json::{Map, Value};
use thiserror::Error;

use super::python::{display, dumps};

/// Macros that become whole arguments. Each must be an element of its own.
pub const MACROS: [&str; 11] = [
    "${env}",
    "${interpreter}",
    "${program}",
    "${args}",
    "${args_no_boolean_flags}",
    "${args_no_hyphens}",
    "${args_no_equals}",
    "${args_append_hydra}",
    "${args_override_hydra}",
    "${args_json}",
    "${args_json_file}",
];

/// The start of a macro that may be anywhere in an element: `${envvar:NAME}`.
pub const ENVIRONMENT_MACRO: &str = "${envvar:";

/// The prefix of every parameter's variable.
pub const HP_PREFIX: &str = "HP";

/// A command that cannot be filled in.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum MacroError {
    /// The container does not have the variable.
    #[error("the command refers to ${{envvar:{0}}}, and the container has no environment variable {0}")]
    NoVariable(String),
    /// The template has a macro that this version does not know.
    #[error("the command has the unknown macro {0}")]
    UnknownMacro(String),
    /// The command has no elements left.
    #[error("the command is empty once its macros are filled in")]
    Empty,
}

/// Fills in the macros of `template` with a trial's `parameters`.
///
/// `environment` returns a variable's value, and `json_file` is the path of a file with the parameters as JSON. W&B
/// passes the bare name of a missing variable on. Here a missing variable is an error.
pub fn expand(
    template: &[String],
    parameters: &Map<String, Value>,
    environment: &dyn Fn(&str) -> Option<String>,
    json_file: &str,
) -> Result<Vec<String>, MacroError> {
    let mut command = Vec::new();
    for element in template {
        match element.as_str() {
            "${env}" => command.push("/usr/bin/env".to_owned()),
            "${args}" => command.extend(assignments("--", parameters)),
            "${args_no_boolean_flags}" => {
                command.extend(parameters.iter().filter_map(|(name, value)| match value {
                    Value::Bool(true) => Some(format!("--{name}")),
                    Value::Bool(false) => None,
                    _ => Some(format!("--{name}={}", display(value))),
                }));
            }
            "${args_no_hyphens}" => command.extend(assignments("", parameters)),
            "${args_append_hydra}" => command.extend(assignments("+", parameters)),
            "${args_override_hydra}" => command.extend(assignments("++", parameters)),
            "${args_no_equals}" => {
                command.extend(parameters.iter().flat_map(|(name, value)| [format!("--{name}"), display(value)]));
            }
            "${args_json}" => command.push(dumps(&Value::Object(parameters.clone()))),
            "${args_json_file}" => command.push(json_file.to_owned()),
            "${interpreter}" | "${program}" => return Err(MacroError::UnknownMacro(element.clone())),
            _ => command.push(with_variables(element, environment)?),
        }
    }
    if command.is_empty() { Err(MacroError::Empty) } else { Ok(command) }
}

/// Returns one argument for each parameter: `name=value` after `prefix`.
fn assignments<'p>(prefix: &'p str, parameters: &'p Map<String, Value>) -> impl Iterator<Item = String> + 'p {
    parameters.iter().map(move |(name, value)| format!("{prefix}{name}={}", display(value)))
}

fn with_variables(element: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, MacroError> {
    let mut filled = String::new();
    let mut rest = element;
    while let Some((before, after)) = rest.split_once(ENVIRONMENT_MACRO) {
        let Some((name, tail)) = after.split_once('}') else { break };
        filled.push_str(before);
        filled.push_str(&environment(name).ok_or_else(|| MacroError::NoVariable(name.to_owned()))?);
        rest = tail;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Returns the trial's parameters as environment variables: `learning_rate: 0.1` is `HP_LEARNING_RATE=0.1`.
///
/// Names are in upper case, every character outside `[A-Z0-9_]` becomes `_`, and nested parameters are joined by `_`.
/// Texts are unchanged, and other values are JSON. If two parameters have the same variable, the later one is left out.
pub fn hp_variables(parameters: &Map<String, Value>) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    collect_variables(HP_PREFIX, parameters, &mut variables);
    variables
}

/// Returns the variable of a parameter `name` in a group with the variable `prefix`, which is [`HP_PREFIX`] outside of
/// groups.
pub fn nested_variable(prefix: &str, name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("{prefix}_{}", name.chars().map(allowed).collect::<String>())
}

fn collect_variables(prefix: &str, parameters: &Map<String, Value>, variables: &mut Vec<(String, String)>) {
    for (name, value) in parameters {
        let variable = nested_variable(prefix, name);
        let written = match value {
            Value::Object(nested) => {
                collect_variables(&variable, nested, variables);
                continue;
            }
            Value::String(text) => text.clone(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => value.to_string(),
        };
        if !variables.iter().any(|(known, _)| *known == variable) {
            variables.push((variable, written));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parameters(json: &str) -> Map<String, Value> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn macros_are_filled_in_as_wandb_does() {
        let parameters =
            parameters(r#"{"lr":1e-5,"flip":true,"cut":false,"net":{"kind":"cnn","w":[1,2.0]},"none":null}"#);
        let environment = |name: &str| (name == "DATA").then(|| "/data".to_owned());
        let cases: [(&str, &[&str]); 11] = [
            ("${env}", &["/usr/bin/env"]),
            (
                "${args}",
                &["--lr=1e-05", "--flip=True", "--cut=False", "--net={'kind': 'cnn', 'w': [1, 2.0]}", "--none=None"],
            ),
            (
                "${args_no_boolean_flags}",
                &["--lr=1e-05", "--flip", "--net={'kind': 'cnn', 'w': [1, 2.0]}", "--none=None"],
            ),
            (
                "${args_no_hyphens}",
                &["lr=1e-05", "flip=True", "cut=False", "net={'kind': 'cnn', 'w': [1, 2.0]}", "none=None"],
            ),
            (
                "${args_append_hydra}",
                &["+lr=1e-05", "+flip=True", "+cut=False", "+net={'kind': 'cnn', 'w': [1, 2.0]}", "+none=None"],
            ),
            (
                "${args_override_hydra}",
                &["++lr=1e-05", "++flip=True", "++cut=False", "++net={'kind': 'cnn', 'w': [1, 2.0]}", "++none=None"],
            ),
            (
                "${args_no_equals}",
                &[
                    "--lr",
                    "1e-05",
                    "--flip",
                    "True",
                    "--cut",
                    "False",
                    "--net",
                    "{'kind': 'cnn', 'w': [1, 2.0]}",
                    "--none",
                    "None",
                ],
            ),
            (
                "${args_json}",
                &[r#"{"lr": 1e-05, "flip": true, "cut": false, "net": {"kind": "cnn", "w": [1, 2.0]}, "none": null}"#],
            ),
            ("${args_json_file}", &["/tmp/p.json"]),
            ("--data=${envvar:DATA}/x/${envvar:DATA}", &["--data=/data/x//data"]),
            ("${HOME} stays", &["${HOME} stays"]),
        ];
        for (template, expected) in cases {
            let command = expand(&[template.to_owned()], &parameters, &environment, "/tmp/p.json").unwrap();
            assert_eq!(command, expected, "{template}");
        }
    }

    #[test]
    fn what_cannot_be_filled_in_is_an_error() {
        let none = |_: &str| None;
        let run = |template: &[&str]| {
            let template: Vec<String> = template.iter().map(|&element| element.to_owned()).collect();
            expand(&template, &Map::new(), &none, "p.json")
        };
        assert_eq!(run(&["a", "x${envvar:TOKEN}"]), Err(MacroError::NoVariable("TOKEN".to_owned())));
        assert_eq!(run(&["${program}"]), Err(MacroError::UnknownMacro("${program}".to_owned())));
        assert_eq!(run(&["${args}"]), Err(MacroError::Empty));
    }

    #[test]
    fn parameters_become_variables() {
        let parameters = parameters(r#"{"learning-rate":0.1,"net":{"kind":"cnn","w":[1,"a"]},"on":true,"NET.kind":1}"#);
        let variables = hp_variables(&parameters);
        let joined: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(joined, ["HP_LEARNING_RATE=0.1", "HP_NET_KIND=cnn", r#"HP_NET_W=[1,"a"]"#, "HP_ON=true"]);
    }
}
