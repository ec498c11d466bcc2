//! Which files of a trial are collected.

use schemars::JsonSchema;
use spotsweep_protocol::claim::{Checkpoints, Patterns};
use spotsweep_protocol::patterns::{Unusable, check};

use super::{Written, keys_of};
use crate::fields::{Fields, text, texts};
use crate::problem::Report;
use crate::tree::{Kind, Node};

/// Which files of a trial are collected: patterns such as `model/*.pt`, relative to the trial's storage folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Outputs {
    /// Only these; everything if empty.
    #[schemars(default, with = "Vec<Written>")]
    pub include: Vec<String>,
    /// None of these.
    #[schemars(default, with = "Vec<Written>")]
    pub exclude: Vec<String>,
    /// Which checkpoints of a trial that has succeeded are collected with them.
    #[schemars(with = "Option<CheckpointsSchema>")]
    pub checkpoints: Option<Checkpoints>,
}

impl From<Outputs> for Patterns {
    /// Uses the default if the file does not set `checkpoints`.
    fn from(Outputs { include, exclude, checkpoints }: Outputs) -> Self {
        Self { include, exclude, checkpoints: checkpoints.unwrap_or_default() }
    }
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
enum CheckpointsSchema {
    Newest,
    All,
    None,
}

pub(super) fn read(node: &Node, report: &mut Report<'_>) -> Option<Outputs> {
    let fields = Fields::known(node, "`outputs`", keys_of("outputs"), report)?;
    let checkpoints = fields.get("checkpoints").and_then(|node| checkpoints(node, report));
    let mut of = |key| fields.get(key).map(|node| patterns(node, key, report)).unwrap_or_default();
    Some(Outputs { include: of("include"), exclude: of("exclude"), checkpoints })
}

fn checkpoints(node: &Node, report: &mut Report<'_>) -> Option<Checkpoints> {
    match text(node, "checkpoints", report)? {
        "newest" => Some(Checkpoints::Newest),
        "all" => Some(Checkpoints::All),
        "none" => Some(Checkpoints::None),
        other => {
            report.add(node.place, format!("unknown `checkpoints`: `{other}`"), "write `newest`, `all` or `none`");
            None
        }
    }
}

/// Reads a list of patterns that the runner can compile.
pub(super) fn patterns(node: &Node, key: &str, report: &mut Report<'_>) -> Vec<String> {
    let help =
        "write patterns as in .gitignore, for example `model/*.pt`, and \\ before a special character that is meant";
    let list = texts(node, key, report).unwrap_or_default();
    let (Err(Unusable { place, reason }), Kind::List(nodes)) = (check(&list), &node.kind) else { return list };
    if place.is_none() {
        report.add(node.place, format!("the patterns of `{key}` are not usable: {reason}"), help);
        return list;
    }
    for (pattern, node) in list.iter().zip(nodes) {
        if let Err(Unusable { reason, .. }) = check(std::slice::from_ref(pattern)) {
            report.add(node.place, format!("`{pattern}` is not a usable pattern: {reason}"), help);
        }
    }
    list
}
