//! The sweep file's JSON Schema, for editors that complete and check the file.
//!
//! It is generated from what the parser uses: the [`Settings`] types, the table of distributions, the lists of keys. It
//! cannot express everything that [`super::parse`] checks. It refuses no valid file, except where W&B reads a number or
//! boolean and editors read a text (`run_cap: 1_000`).

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::choice::{LIST_KEYS, METHODS, WANDB_KEYS};
use super::early_terminate;
use super::names::MAX_NAME_CHARS;
use super::parameter::{FORMS, Form};
use super::{MAX_TRIALS, Settings};
use spotsweep_protocol::command_line::MACROS;
use spotsweep_protocol::metric::MOST_METRIC_PATTERNS;

/// The path of the published schema in the repository.
pub const PATH: &str = "docs/sweep-file.schema.json";

/// Returns the schema in its published form.
pub fn json_schema() -> String {
    let mut settings = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Settings>().to_value();
    without_null(&mut settings);
    let mut definitions = settings.as_object_mut().and_then(|root| root.remove("$defs")).unwrap_or_else(|| json!({}));
    if let Some(root) = settings.as_object_mut() {
        root.remove("$schema");
        root.remove("title");
        if let Some(Value::Object(properties)) = root.get_mut("properties") {
            properties.append(&mut object(sampling()));
        }
    }
    if let Value::Object(definitions) = &mut definitions {
        definitions.append(&mut object(json!({
            "spotsweep": settings,
            "trials": {"type": "array", "minItems": 1, "items": {"type": "object"}, "description": "One mapping of parameters per trial."},
            "parameters": parameters(),
            "parameter": parameter(),
            "pattern": pattern("Parameters with a value, or a list of values of which any will do."),
        })));
    }
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "spotsweep sweep file",
        "anyOf": [
            {"$ref": "#/$defs/trials"},
            form("A list of trials with settings.", &LIST_KEYS, &["trials"]),
            form("A W&B sweep config.", &WANDB_KEYS, &["method", "parameters"]),
        ],
        "$defs": definitions,
    });
    format!("{schema:#}\n")
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// Removes `null` from the types of a setting: spotsweep's own settings have a value or are left out.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
                choices.retain(|choice| *choice != json!({"type": "null"}));
                if let [Value::Object(only)] = choices.as_slice() {
                    let mut only = only.clone();
                    map.remove("anyOf");
                    map.append(&mut only);
                }
            }
            map.values_mut().for_each(without_null);
        }
        Value::Array(values) => values.iter_mut().for_each(without_null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the schema of a form that is a mapping at the top level.
fn form(description: &str, keys: &[&str], required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        keys.iter().filter_map(|key| Some(((*key).to_owned(), top_level(key)?))).collect();
    json!({
        "type": "object",
        "description": description,
        "required": required,
        "properties": properties,
    })
}

/// Returns the schema of a key; `None` for one that spotsweep refuses.
fn top_level(key: &str) -> Option<Value> {
    match key {
        "trials" => Some(json!({"$ref": "#/$defs/trials"})),
        "parameters" => Some(json!({"$ref": "#/$defs/parameters"})),
        "spotsweep" => Some(json!({"$ref": "#/$defs/spotsweep"})),
        "method" => Some(
            json!({"enum": METHODS, "description": "All combinations, random draws, or a search that learns from its trials."}),
        ),
        "run_cap" => Some(
            json!({"type": ["integer", "null"], "minimum": 1, "maximum": MAX_TRIALS, "description": "Most trials to run. Without it random and bayes have the deployment's default number."}),
        ),
        "metric" => Some(json!({
            "type": ["object", "null"],
            "description": "What makes one trial better than another.",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "description": "Name as the training code reports it."},
                "goal": {"enum": ["minimize", "maximize", null], "default": "minimize"},
                "over": {"enum": ["last", "best"], "default": "last", "description": "Which of a trial's values counts."},
                "target": {"type": ["number", "null"], "description": "Once a trial has reached it, no further one starts."},
                "impute": true,
                "impute_while_running": true,
            },
            "additionalProperties": false,
        })),
        "early_terminate" => Some(early_terminate::schema()),
        "metrics" => Some(json!({
            "type": ["array", "null"],
            "description": "Patterns that find metrics in the trainings' output.",
            "maxItems": MOST_METRIC_PATTERNS,
            "items": {
                "type": "object",
                "required": ["name", "regex"],
                "properties": {
                    "name": {"type": "string", "description": "The metric's name."},
                    "regex": {"type": "string", "description": "A regular expression; its first group is the value."},
                },
                "additionalProperties": false,
            },
        })),
        "program" => Some(json!({"type": ["string", "null"], "description": "Training script, run with Python."})),
        "command" => Some(json!({
            "type": ["array", "null"],
            "items": {"not": {"type": ["array", "object"]}},
            "description": format!("Command of a trial. Macros: {}, ${{envvar:NAME}}.", MACROS.join(" ")),
        })),
        "name" => Some(json!({"not": {"type": ["array", "object"]}, "description": "The sweep's name for people."})),
        "project" => Some(json!({"description": "W&B's project of the trials' runs: WANDB_PROJECT."})),
        "entity" => Some(json!({"description": "W&B's entity of the trials' runs: WANDB_ENTITY."})),
        "description" | "apiVersion" | "kind" => Some(json!({"description": "For W&B; has no effect here."})),
        "controller" => Some(json!({"type": ["object", "null"], "properties": {"type": {"const": "cloud"}}})),
        _ => None,
    }
}

/// Returns the schema of the keys of `spotsweep:` that choose, order and compare trials.
fn sampling() -> Value {
    let patterns = |description: &str| {
        json!({
            "description": description,
            "anyOf": [{"$ref": "#/$defs/pattern"}, {"type": "array", "items": {"$ref": "#/$defs/pattern"}}],
        })
    };
    json!({
        "trials": {"type": "integer", "minimum": 1, "maximum": MAX_TRIALS, "description": "Most trials to run."},
        "seed": {"type": "integer", "minimum": 0, "description": "Fixes random draws and the shuffled order across uploads."},
        "order": {"enum": ["sorted", "shuffled"], "default": "sorted", "description": "Order of the trials."},
        "repeats": {
            "type": "object",
            "description": "Each parameter set is trained once per value.",
            "required": ["parameter", "values"],
            "properties": {
                "parameter": {"type": "string", "description": "What differs between the trials of a set."},
                "values": {"type": "array", "minItems": 1, "maxItems": 100, "uniqueItems": true},
            },
            "additionalProperties": false,
        },
        "rungs_by": {"enum": early_terminate::UNITS, "default": "reports", "description": "What early termination counts."},
        "exclude": patterns("Combinations that are no trials."),
        "first": patterns("Trials that run before all others."),
    })
}

fn pattern(description: &str) -> Value {
    json!({"type": "object", "minProperties": 1, "description": description})
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": "^[^=\\x00-\\x1f\\x7f-\\x9f]+$", "maxLength": MAX_NAME_CHARS},
        "additionalProperties": {"$ref": "#/$defs/parameter"},
    })
}

fn parameter() -> Value {
    let mut choices: Vec<Value> = FORMS.iter().map(distribution).collect();
    choices.push(json!({
        "type": "object",
        "description": "A group of parameters.",
        "required": ["parameters"],
        "properties": {"parameters": {"$ref": "#/$defs/parameters"}, "when": {"$ref": "#/$defs/pattern"}},
        "additionalProperties": false,
    }));
    json!({"anyOf": choices})
}

fn distribution(form: &Form) -> Value {
    let mut properties = object(json!({
        "distribution": {"const": form.name},
        "when": {"$ref": "#/$defs/pattern", "description": "The parameter is there only in trials that match."},
    }));
    for key in form.needs.iter().chain(form.may_have) {
        properties.insert((*key).to_owned(), distribution_key(key, form.name));
    }
    let mut required: Vec<&str> = form.needs.to_vec();
    if !form.is_inferred {
        required.push("distribution");
    }
    json!({
        "type": "object",
        "description": form.doc,
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}

fn distribution_key(key: &str, form: &str) -> Value {
    match key {
        "value" => json!(true),
        "values" => json!({"type": "array", "minItems": 1}),
        "probabilities" => json!({"type": "array", "minItems": 1, "items": {"type": "number", "minimum": 0}}),
        "min" | "max" if form == "int_uniform" => json!({"type": "integer"}),
        "min" if form.ends_with("log_uniform_values") => json!({"type": "number", "exclusiveMinimum": 0}),
        "q" | "sigma" => json!({"type": "number", "exclusiveMinimum": 0, "default": 1}),
        "a" | "b" => json!({"type": "number", "minimum": 0.001, "maximum": 10_000, "default": 1}),
        _ => json!({"type": "number"}),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    #![allow(clippy::disallowed_methods, reason = "the published schema is a file")]
    use super::*;
    use crate::choice::SAMPLING_KEYS;
    use crate::settings;
    use std::collections::BTreeSet;

    /// Each key that the parser takes is in the schema, and the other way round.
    #[test]
    fn the_schema_has_the_parsers_keys() {
        let schema: Value = serde_json::from_str(&json_schema()).unwrap();
        let described: BTreeSet<&str> =
            schema["$defs"]["spotsweep"]["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let taken: BTreeSet<&str> = settings::KEYS.into_iter().chain(SAMPLING_KEYS).collect();
        assert_eq!(described, taken);
        assert!(!schema["$defs"]["spotsweep"].to_string().contains("\"null\""));
    }

    /// `UPDATE_SCHEMA=1 cargo test -p spotsweep schema` writes it.
    #[test]
    fn the_published_schema_is_current() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PATH);
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(&path, json_schema()).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(published == json_schema(), "{PATH} is out of date; run the tests once with UPDATE_SCHEMA=1");
    }
}
