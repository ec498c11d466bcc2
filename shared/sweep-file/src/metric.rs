//! Reads `metric`, which ranks the trials, and `metrics`, the patterns that find metrics in the output.

use spotsweep_protocol::metric::{MAX_METRIC_NAME, MOST_METRIC_PATTERNS, MetricPattern, is_metric_name};

use super::fields::Fields;
use super::problem::{Place, Report, nearest};
use super::scalar::Scalar;
use super::tree::{Kind, Node};
use super::{Goal, MetricGoal, Over};

/// Reads `metric`. `patterns` is the value of `metrics`.
pub(crate) fn goal(node: &Node, patterns: Option<&Node>, report: &mut Report<'_>) -> Option<MetricGoal> {
    let keys = ["name", "goal", "over", "target", "impute", "impute_while_running"];
    let fields = Fields::known(node, "`metric`", &keys, report)?;
    if !fields.has("name") {
        report.add(
            fields.place(),
            "`metric` has no `name`",
            "add the name that the training code prints, for example `name: val_loss`",
        );
    }
    let goal = match fields.text("goal", report) {
        None | Some("minimize") => Goal::Minimize,
        Some("maximize") => Goal::Maximize,
        Some("minimise") => {
            let place = fields.get("goal").map_or(node.place, |node| node.place);
            report.warn(place, "`minimise` counts as minimize, as to W&B", "write minimize");
            Goal::Minimize
        }
        Some(other) => {
            let place = fields.get("goal").map_or(node.place, |node| node.place);
            let help = match nearest(other, ["minimize", "maximize"]) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write minimize or maximize".to_owned(),
            };
            report.add(place, format!("`goal` is neither minimize nor maximize: {other}"), help);
            return None;
        }
    };
    let over = match fields.text("over", report) {
        None | Some("last") => Over::Last,
        Some("best") => Over::Best,
        Some(other) => {
            let place = fields.get("over").map_or(node.place, |node| node.place);
            let help = "write last (the newest value of each trial) or best (its best value)";
            report.add(place, format!("`over` is neither last nor best: {other}"), help);
            return None;
        }
    };
    let name = fields.text("name", report)?;
    check_name(name, fields.get("name"), report);
    let target = fields.figure("target", report);
    let place = fields.get("name").map_or(node.place, |node| node.place);
    let is_own = fields.has("over") || patterns.is_some_and(|patterns| has_pattern(patterns, name));
    let summary = if is_own { None } else { summary(name, goal, place, report) };
    let (name, over) = summary.unwrap_or((name, over));
    Some(MetricGoal { name: name.to_owned(), goal, over, target })
}

/// Returns the metric, and which of its values counts, if a name is W&B's name of a summary: after
/// `define_metric("val_acc", summary="max")` that is `val_acc.max`
/// (<https://docs.wandb.ai/models/track/log/log-summary>). With `over`, or with a pattern of that name, the name is the
/// script's own.
fn summary<'n>(name: &'n str, goal: Goal, place: Place, report: &mut Report<'_>) -> Option<(&'n str, Over)> {
    let (metric, kind) = name.rsplit_once('.').filter(|(metric, _)| !metric.is_empty())?;
    let over = match (kind, goal) {
        ("last", _) => Over::Last,
        ("best", _) | ("max", Goal::Maximize) | ("min", Goal::Minimize) => Over::Best,
        ("max" | "min" | "mean", _) => {
            let message = format!("only a value that the script itself logs as `{name}` counts, and no summary of W&B");
            let help = format!("to rank by `{metric}`, write `name: {metric}`, and `over: best` for its best value");
            report.warn(place, message, help);
            return None;
        }
        (_, _) => return None,
    };
    let (which, value) = if over == Over::Best { ("best", "best value") } else { ("last", "newest value") };
    let message = format!("`{name}` counts as the {value} of `{metric}`, as in W&B's summary");
    let help = format!("write `name: {metric}, over: {which}`; if the script itself logs `{name}`, add `over: last`");
    report.warn(place, message, help);
    Some((metric, over))
}

fn has_pattern(node: &Node, name: &str) -> bool {
    let is_of = |node: &Node| match &node.kind {
        Kind::Mapping(entries) => {
            let mut names = entries.iter().filter(|entry| entry.key == "name");
            names.any(|entry| matches!(&entry.value.kind, Kind::Scalar(Scalar::Text { text, .. }) if text == name))
        }
        Kind::Scalar(_) | Kind::List(_) => false,
    };
    matches!(&node.kind, Kind::List(nodes) if nodes.iter().any(is_of))
}

/// Reads SageMaker's metric definitions. W&B's `metrics`, which has goals instead of patterns, is refused.
pub(crate) fn patterns(node: &Node, report: &mut Report<'_>) -> Vec<MetricPattern> {
    let help = "write for example `metrics: [{name: val_loss, regex: 'validation loss: (\\S+)'}]`";
    let Kind::List(nodes) = &node.kind else {
        report.add(node.place, format!("`metrics` must be a list, and this is {}", node.describe()), help);
        return Vec::new();
    };
    if nodes.len() > MOST_METRIC_PATTERNS {
        let message = format!("`metrics` has {} entries, and {MOST_METRIC_PATTERNS} are the most", nodes.len());
        report.add(node.place, message, "keep the metrics that you need");
        return Vec::new();
    }
    nodes.iter().filter_map(|node| pattern(node, help, report)).collect()
}

fn pattern(node: &Node, help: &str, report: &mut Report<'_>) -> Option<MetricPattern> {
    if let Kind::Mapping(entries) = &node.kind
        && let Some(goal) = entries.iter().find(|entry| entry.key == "goal")
    {
        report.add(goal.key_place, "several goals at once are not supported", "name one `metric`");
        return None;
    }
    let fields = Fields::known(node, "an entry of `metrics`", &["name", "regex"], report)?;
    for key in ["name", "regex"] {
        if !fields.has(key) {
            report.add(fields.place(), format!("an entry of `metrics` has no `{key}`"), help);
        }
    }
    let (name, regex) = (fields.text("name", report), fields.text("regex", report));
    let pattern = MetricPattern { name: name?.to_owned(), regex: regex?.to_owned() };
    check_name(&pattern.name, fields.get("name"), report);
    if let (Err(error), Some(node)) = (pattern.check(), fields.get("regex")) {
        let help = "write a regular expression with one group for the value, for example 'loss = (\\S+)'; \
                    look-around and back-references are not supported";
        report.add(node.place, format!("`{}` is not a usable regular expression: {error}", pattern.regex), help);
    }
    Some(pattern)
}

fn check_name(name: &str, node: Option<&Node>, report: &mut Report<'_>) {
    if let (false, Some(node)) = (is_metric_name(name), node) {
        let help = format!("write a name of 1 to {MAX_METRIC_NAME} bytes without tabs and other control characters");
        report.add(node.place, "the metric's name cannot be recorded", help);
    }
}
