//! `program` and `command` of the file become one command template for all trials.

use super::fields::texts;
use super::problem::{Place, Report, nearest};
use super::tree::{Kind, Node};
use spotsweep_protocol::command_line::{ENVIRONMENT_MACRO, MACROS};

/// Batch takes 8 192 characters of container overrides in all (fact 18); the rest is for the environment.
const MAX_COMMAND_CHARS: usize = 6_000;

/// W&B's default command.
const DEFAULT: [&str; 4] = ["${env}", "${interpreter}", "${program}", "${args}"];

/// The template for a file that names only its `program`.
pub(crate) fn of_program(program: &str) -> Vec<String> {
    DEFAULT.iter().map(|element| substituted(element, Some(program))).collect()
}

/// Reads a `command`, with `${interpreter}` and `${program}` filled in: the container needs nothing but parameters.
pub(crate) fn read(node: &Node, program: Option<&str>, report: &mut Report<'_>) -> Option<Vec<String>> {
    let elements = texts(node, "command", report)?;
    let Kind::List(nodes) = &node.kind else { return None };
    if elements.is_empty() {
        report.add(node.place, "`command` is empty", "list the program and its arguments, or delete the line");
        return None;
    }
    for (element, node) in elements.iter().zip(nodes) {
        check(element, node.place, program, report);
    }
    if elements.iter().map(|element| element.chars().count() + 3).sum::<usize>() > MAX_COMMAND_CHARS {
        let message = format!("the command is longer than {MAX_COMMAND_CHARS} characters");
        report.add(node.place, message, "move it into a script; Batch takes 8192 characters of overrides in all");
    }
    Some(elements.iter().map(|element| substituted(element, program)).collect())
}

fn substituted(element: &str, program: Option<&str>) -> String {
    match (element, program) {
        ("${interpreter}", _) => "python".to_owned(),
        ("${program}", Some(program)) => program.to_owned(),
        _ => element.to_owned(),
    }
}

fn check(element: &str, place: Place, program: Option<&str>, report: &mut Report<'_>) {
    if element == "${program}" && program.is_none() {
        report.add(
            place,
            "the command uses `${program}`, and no `program` is given here",
            "write the script's name instead, or add `program:` and `command:` at the top level",
        );
    }
    if MACROS.contains(&element) {
        return;
    }
    if let Some(inside) = MACROS.iter().find(|name| element.contains(*name)) {
        let help = format!("make `{inside}` an element of its own; it may stand for many arguments");
        report.add(place, format!("`{inside}` is part of a longer element"), help);
    } else if let Some(rest) = element.strip_prefix("${").filter(|rest| rest.ends_with('}') && !rest.contains("${"))
        && !element.starts_with(ENVIRONMENT_MACRO)
    {
        let help = match nearest(element, MACROS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("for an environment variable write `${{envvar:{rest}`"),
        };
        report.add(place, format!("there is no macro `{element}`"), help);
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
}
