//! `secrets:` under `spotsweep:`: variables of the trainings whose values the runner reads for each attempt, from SSM
//! Parameter Store or AWS Secrets Manager. The file has only names, paths and ARNs.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;

use super::environment::{variable_problem, warn_about_parameter};
use super::{Settings, Written};
use crate::fields::{Fields, secret};
use crate::problem::{Place, Report};
use crate::secret_name::{secret_name_problem, start};
use crate::secret_source::SecretSource;
use crate::tree::{Kind, Node};

/// The most secrets of a sweep, with that of its code. Each is a tag of the session whose credentials read it, and the
/// roles' policies name each tag (TrialRole in infra/control-plane.yaml).
const MOST_SECRETS: usize = 10;

/// A list of names, each of a variable and of its secret. Or for each variable the secret's name, path or ARN.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
pub(super) enum SecretsSchema {
    Same(Vec<Written>),
    Named(BTreeMap<String, Written>),
}

/// Reads what names the secret of each variable ([`SecretSource::of`]). `parameters` are the variables of the parameters.
pub(super) fn read(
    node: &Node,
    env: &BTreeMap<String, String>,
    parameters: &[String],
    report: &mut Report<'_>,
) -> BTreeMap<String, String> {
    let mut secrets = BTreeMap::new();
    let mut add = |variable: &str, at: Place, name: String, report: &mut Report<'_>| {
        check_variable(variable, at, env, report);
        warn_about_parameter(variable, at, parameters, report);
        secrets.insert(variable.to_owned(), name);
    };
    match &node.kind {
        Kind::List(nodes) => {
            for node in nodes {
                let Some(text) = secret(node, "secrets", report) else { continue };
                match SecretSource::of(&text) {
                    SecretSource::Own(name) => add(name, node.place, name.to_owned(), report),
                    SecretSource::Path(_) | SecretSource::Managed(_) => {
                        let message = format!("`{}…` is no name, and a list has no variable for it", start(&text));
                        report.add(node.place, message, "name the variable too: `secrets: {VARIABLE: /PATH}`");
                    }
                }
            }
        }
        Kind::Mapping(_) => {
            let fields = Fields::any(node, "`secrets`", report);
            for entry in fields.iter().flat_map(Fields::entries) {
                let is_name = secret_name_problem(&entry.key).is_none();
                if !is_name {
                    let message = format!("`{}…` is no name of a variable", start(&entry.key));
                    let help = "write the variable first, then its secret: `VARIABLE: NAME`";
                    report.add(entry.key_place, message, help);
                }
                let what = if is_name { &entry.key } else { "secrets" };
                if let (Some(name), true) = (secret(&entry.value, what, report), is_name) {
                    add(&entry.key, entry.key_place, name, report);
                }
            }
        }
        // The text may be a secret, so the message does not have it.
        Kind::Scalar(_) => {
            let help = "write `secrets: [NAME]`, or `secrets: {VARIABLE: NAME}`";
            report.add(node.place, "`secrets` is neither a list of names nor a mapping", help);
        }
    }
    secrets
}

fn check_variable(name: &str, at: Place, env: &BTreeMap<String, String>, report: &mut Report<'_>) {
    if let Some((message, help)) = variable_problem(name, "") {
        report.add(at, message, help);
    } else if env.contains_key(name) {
        report.add(at, format!("`{name}` is in `env` too"), "delete one of the two");
    }
}

/// Checks how many secrets there are, with that of the code.
pub(super) fn check_number(fields: Fields<'_>, settings: &Settings, report: &mut Report<'_>) {
    let number = settings.secret_sources().len();
    if let (true, Some(node)) = (number > MOST_SECRETS, fields.get("secrets")) {
        let message = format!("the sweep has {number} secrets");
        report.add(node.place, message, format!("at most {MOST_SECRETS} are possible, with the `token` of `code`"));
    }
}

impl Settings {
    /// Returns what names the secrets that an attempt reads, each once: those of variables, and that of the code.
    pub fn secret_sources(&self) -> BTreeSet<&str> {
        let token = self.code.as_ref().and_then(super::Code::token);
        self.secrets.values().map(String::as_str).chain(token).collect()
    }
}
