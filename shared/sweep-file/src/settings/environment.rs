//! `env:` under `spotsweep:`: environment variables of the trainings.

use std::collections::BTreeMap;

use super::super::fields::{Fields, written};
use super::super::problem::{Place, Report};
use super::super::tree::{Entry, Node};

/// The most variables, and the most bytes of all names and values: the sweep's record has them, and each event of a
/// trial reads it.
const MOST: usize = 100;
const MOST_BYTES: usize = 16 * 1024;

/// The owner of variables that a file may not set.
struct Owner {
    /// Prefixes of names.
    prefixes: &'static [&'static str],
    names: &'static [&'static str],
    /// Why the file may not set them.
    why: &'static str,
    help: &'static str,
}

const IN_IMAGE: &str = "set it in the image (`ENV` in its Dockerfile)";

/// The dynamic loader's variables are those of ld.so(8), the shells' those that bash(1) and POSIX `sh` read at their
/// start.
const OWNERS: [Owner; 4] = [
    Owner {
        prefixes: &["SPOTSWEEP_"],
        names: &["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"],
        why: "the runner sets it for each trial",
        help: "delete it",
    },
    Owner {
        prefixes: &["AWS_", "ECS_"],
        names: &[],
        why: "AWS Batch and the trial's credentials use this prefix",
        help: "delete it, or set it in the script",
    },
    Owner {
        prefixes: &["LD_"],
        names: &["GLIBC_TUNABLES", "GCONV_PATH"],
        why: "the dynamic loader reads it in every program that the trial starts",
        help: IN_IMAGE,
    },
    Owner {
        prefixes: &["BASH_FUNC_"],
        names: &["BASH_ENV", "ENV", "BASHOPTS", "SHELLOPTS", "PROMPT_COMMAND", "PS4", "ZDOTDIR"],
        why: "shells run it, or what it names, at their start",
        help: IN_IMAGE,
    },
];

/// Parts of names whose values are usually secret.
const SECRET: [&str; 5] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY"];

/// Reads the variables. A value is a text; numbers and booleans count as they are written. `parameters` are the
/// variables of the parameters.
pub(super) fn read(node: &Node, parameters: &[String], report: &mut Report<'_>) -> BTreeMap<String, String> {
    let Some(fields) = Fields::any(node, "`env`", report) else { return BTreeMap::new() };
    let mut variables = BTreeMap::new();
    for entry in fields.entries() {
        let Some(value) = written(&entry.value, &entry.key, report) else { continue };
        check(entry, &value, report);
        warn_about_parameter(&entry.key, entry.key_place, parameters, report);
        variables.insert(entry.key.clone(), value);
    }
    let bytes: usize = variables.iter().map(|(name, value)| name.len() + value.len()).sum();
    if variables.len() > MOST || bytes > MOST_BYTES {
        let message = format!("`env` has {} variables of {bytes} bytes", variables.len());
        let help = format!("at most {MOST} variables and {MOST_BYTES} bytes: put the rest into a file of the code");
        report.add(fields.place(), message, help);
    }
    variables
}

/// Warns about a variable that a parameter becomes too.
pub(super) fn warn_about_parameter(name: &str, at: Place, parameters: &[String], report: &mut Report<'_>) {
    if parameters.iter().any(|parameter| parameter == name) {
        let message = format!("a parameter sets `{name}` too, and replaces this value");
        report.warn(at, message, "rename one of the two");
    }
}

/// Returns why a trial cannot have this variable, and what to do.
pub fn variable_problem(name: &str, value: &str) -> Option<(String, &'static str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') || !name.chars().all(is_name) {
        let help = "use letters, digits and `_`, and no digit at the beginning";
        return Some((format!("`{name}` is no name of an environment variable"), help));
    }
    if let Some(Owner { why, help, .. }) = owner(name) {
        return Some((format!("`{name}` cannot be set: {why}"), help));
    }
    value.contains('\0').then(|| (format!("the value of `{name}` has a null character"), "delete it"))
}

fn check(entry: &Entry, value: &str, report: &mut Report<'_>) {
    let name = entry.key.as_str();
    if let Some((message, help)) = variable_problem(name, value) {
        report.add(entry.key_place, message, help);
    } else if SECRET.iter().any(|part| name.to_ascii_uppercase().contains(part)) && !value.is_empty() {
        let message = format!("`{name}` looks like a secret: the bucket and the table keep its value as it is written");
        let help = "store it with `spotsweep secret set NAME`, and write `secrets: [NAME]`";
        report.warn(entry.key_place, message, help);
    }
}

fn owner(name: &str) -> Option<&'static Owner> {
    OWNERS
        .iter()
        .find(|owner| owner.names.contains(&name) || owner.prefixes.iter().any(|prefix| name.starts_with(prefix)))
}
