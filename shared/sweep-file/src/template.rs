//! Makes one command template for all trials from the file's `program` and `command`.

use std::collections::HashSet;

use super::fields::mismatch;
use super::problem::{Place, Report, near_miss};
use super::runnable;
use super::scalar::Scalar;
use super::tree::{Kind, Node};
use spotsweep_protocol::command_line::{ENVIRONMENT_MACRO, HP_PREFIX, MACROS, nested_variable};
use spotsweep_protocol::python::display;

/// The most characters of a command. Batch takes 8 192 characters of container overrides in all (fact 18), and the rest
/// is for the environment.
const MAX_COMMAND_CHARS: usize = 6_000;

/// W&B's default command.
const DEFAULT: [&str; 4] = ["${env}", "${interpreter}", "${program}", "${args}"];

/// A word that W&B's agent takes for a macro by accident: it becomes the names of the parameters, without their values.
const NAMES_ONLY: &str = "${args_dict}";

/// Macros that pass the parameters in Hydra's form. Hydra fills in every other `${…}` itself.
const HYDRA: [&str; 3] = ["${args_no_hyphens}", "${args_append_hydra}", "${args_override_hydra}"];

/// The names that a command may refer to.
#[derive(Default)]
pub(crate) struct Context<'c> {
    pub(crate) program: Option<&'c str>,
    /// The names of parameters, as far as they are known.
    pub(crate) parameters: HashSet<String>,
}

/// The command that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// `command` under `spotsweep:`, which replaces the W&B `command` and need not run `program`.
    Own,
    /// The W&B `command` that trials run.
    Wandb,
    /// A command that trials may not run, or a part of one.
    Unused,
}

/// Returns the template for a file that names only its `program`.
pub(crate) fn of_program(program: &str) -> Vec<String> {
    DEFAULT.iter().map(|element| substituted(element, Some(program))).collect()
}

/// Reads a `command`, and fills in `${interpreter}` and `${program}`, so that only the parameters are left to the
/// container.
pub(crate) fn read(node: &Node, context: &Context<'_>, role: Role, report: &mut Report<'_>) -> Option<Vec<String>> {
    let Kind::List(nodes) = &node.kind else {
        let help = "write a list, for example `command: [\"first\", \"second\"]`";
        report.add(node.place, format!("`command` must be a list, and this is {}", node.describe()), help);
        return None;
    };
    if nodes.is_empty() {
        report.add(node.place, "`command` is empty", "list the program and its arguments, or delete the line");
        return None;
    }
    let is_long = |chars: usize| chars > MAX_COMMAND_CHARS;
    if is_long(nodes.len()) {
        too_long(node.place, report);
        return None;
    }
    let elements: Vec<Option<String>> = nodes.iter().map(|node| element(node, report)).collect();
    let elements: Vec<String> = elements.into_iter().collect::<Option<_>>()?;
    for (index, node) in nodes.iter().enumerate() {
        check(&elements, index, node.place, context, report);
    }
    if is_long(elements.iter().map(|element| element.chars().count() + 3).sum::<usize>()) {
        too_long(node.place, report);
    }
    if role != Role::Unused {
        runnable::check(&elements, nodes, context.program, role == Role::Wandb, report);
    }
    Some(elements.iter().map(|element| substituted(element, context.program)).collect())
}

fn too_long(place: Place, report: &mut Report<'_>) {
    let message = format!("the command is longer than {MAX_COMMAND_CHARS} characters");
    report.add(place, message, "move it into a script; Batch takes 8192 characters of overrides in all");
}

/// Returns one element as W&B passes it on: read by PyYAML, written by Python's `str`.
fn element(node: &Node, report: &mut Report<'_>) -> Option<String> {
    let Kind::Scalar(scalar) = &node.kind else {
        mismatch(node, "command", "a text", report);
        return None;
    };
    if let Some(value) = node.wandb_bool() {
        let written = display(&value.into());
        let message = format!("this is the boolean {value}, and so the argument {written}");
        report.warn(node.place, message, format!("write {value}, or put it in quotes for the text"));
        return Some(written);
    }
    if *scalar == Scalar::Null {
        let help = "delete it, or write \"\" for an empty argument and \"None\" for this one";
        report.warn(node.place, "this element is empty, and so the argument None", help);
    }
    Some(match (scalar, &node.text_to_wandb) {
        (Scalar::Text { text, .. }, _) => text.clone(),
        (_, Some(text)) => text.to_string(),
        (Scalar::Null | Scalar::Bool(_) | Scalar::Number(_), None) => display(&node.to_json()),
    })
}

fn substituted(element: &str, program: Option<&str>) -> String {
    match (element, program) {
        ("${interpreter}", _) => "python".to_owned(),
        ("${program}", Some(program)) => program.to_owned(),
        _ => element.to_owned(),
    }
}

fn check(elements: &[String], index: usize, place: Place, context: &Context<'_>, report: &mut Report<'_>) {
    let element = elements[index].as_str();
    if element == "${program}" && context.program.is_none() {
        report.add(
            place,
            "the command uses `${program}`, and no `program` is given here",
            "write the script's name instead, or add `program:` and `command:` at the top level",
        );
    }
    if MACROS.contains(&element) {
        return;
    }
    for part in element.split(ENVIRONMENT_MACRO).skip(1) {
        let name = part.split_once('}').map(|(name, _)| name);
        let valid = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !name.is_some_and(valid) {
            report.add(
                place,
                "`${envvar:` is not followed by a variable's name and `}`",
                "write for example `${envvar:DATA_DIR}`",
            );
        }
    }
    for part in element.split("${").skip(1) {
        let Some((name, _)) = part.split_once('}') else { continue };
        let whole = format!("${{{name}}}");
        if name.starts_with("envvar:") {
            continue;
        }
        if MACROS.contains(&whole.as_str()) {
            let help = format!("make `{whole}` an element of its own; it may become many arguments");
            report.add(place, format!("`{whole}` is part of a longer element"), help);
        } else if !is_for_others(elements, index, name, context) {
            let help = help_for(name, context);
            report.add(place, format!("there is no macro `{whole}`"), help);
        }
    }
}

/// Whether the program that gets the element fills in `name`: Hydra in a value, or a shell in its script.
fn is_for_others(elements: &[String], index: usize, name: &str, context: &Context<'_>) -> bool {
    let element = elements[index].as_str();
    let is_assignment = element.split_once("${").is_some_and(|(before, _)| before.contains('='));
    if is_assignment && !element.starts_with('-') && elements.iter().any(|other| HYDRA.contains(&other.as_str())) {
        return true;
    }
    runnable::is_shell_script(elements, index) && !context.parameters.contains(name)
}

fn help_for(name: &str, context: &Context<'_>) -> String {
    if context.parameters.contains(name) {
        let variable = name.split('.').fold(HP_PREFIX.to_owned(), |prefix, name| nested_variable(&prefix, name));
        return format!("write `${{args}}` for all parameters, or `${{envvar:{variable}}}` for this one");
    }
    if format!("${{{name}}}") == NAMES_ONLY {
        return "write `${args_json}` for names and values, or `${args}`".to_owned();
    }
    if let Some((word, variable)) = name.split_once(':')
        && near_miss(word, ["envvar"]).is_some()
    {
        return format!("did you mean `${{envvar:{variable}}}`?");
    }
    let known = MACROS.iter().filter_map(|name| name.strip_prefix("${")?.strip_suffix('}'));
    match near_miss(name, known) {
        Some(near) => format!("did you mean `${{{near}}}`?"),
        None => {
            let is_variable = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.is_empty();
            let variable = if is_variable { name } else { "NAME" };
            format!(
                "for an environment variable write `${{envvar:{variable}}}`; for all parameters `${{args}}`, for one of them `${{envvar:HP_NAME}}`"
            )
        }
    }
}
