//! `setup:` under `spotsweep:`: what each attempt runs before the training command.

use schemars::JsonSchema;

use super::super::fields::{texts, written};
use super::super::problem::Report;
use super::super::tree::{Kind, Node};

/// The most commands, and the most bytes of all: the sweep's record has them, and each event of a trial reads it.
const MOST: usize = 50;
const MOST_BYTES: usize = 16 * 1024;

/// One command, or a list of commands.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
pub(super) enum SetupSchema {
    One(String),
    List(Vec<String>),
}

/// Reads the commands.
pub(super) fn read(node: &Node, report: &mut Report<'_>) -> Vec<String> {
    let commands = match &node.kind {
        Kind::List(_) => texts(node, "setup", report),
        Kind::Scalar(_) | Kind::Mapping(_) => written(node, "setup", report).map(|command| vec![command]),
    };
    let commands = commands.unwrap_or_default();
    if commands.iter().any(|command| command.trim().is_empty()) {
        report.add(node.place, "`setup` has an empty command", "delete it");
    }
    if commands.iter().any(|command| command.contains('\0')) {
        report.add(node.place, "`setup` has a null character", "delete it");
    }
    let bytes: usize = commands.iter().map(String::len).sum();
    if commands.len() > MOST || bytes > MOST_BYTES {
        let message = format!("`setup` has {} commands of {bytes} bytes", commands.len());
        let help = format!("at most {MOST} commands and {MOST_BYTES} bytes: put them into a script of the code");
        report.add(node.place, message, help);
    }
    commands
}
