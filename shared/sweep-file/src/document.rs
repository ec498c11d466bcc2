//! Reads a whole sweep file: which of the two forms it has, and its top level.

use std::collections::{BTreeMap, HashSet};

use spotsweep_protocol::claim::WandbPlace;
use spotsweep_protocol::rungs::Unit;

use super::choice::{LIST_KEYS, SAMPLING_KEYS, Sampling, WANDB_KEYS, list_plan, wandb, wrapped_list};
use super::early_terminate;
use super::fields::{Fields, text, written};
use super::meant;
use super::parameters::{self, Method};
use super::problem::{Place, Problem, Report};
use super::program;
use super::scalar::Scalar;
use super::size;
use super::template::{self, Context, Role};
use super::tree::{self, Entry, Kind, Node, Parsed};

use super::{Defaults, Settings, SweepFile, metric, settings, unknown_keys};

/// W&B's keys at the top level that say what is run.
const OUTER_SETTINGS: [&str; 3] = ["program", "command", "image_uri"];

/// Keys at the top level that W&B's engine and agent take for absent if they are null.
const ABSENT_IF_NULL: [&str; 9] =
    ["run_cap", "metric", "command", "controller", "early_terminate", "metrics", "scheduler", "job", "image_uri"];

/// Keys under `metric` that they take for absent if they are null.
const ABSENT_IN_METRIC: [&str; 3] = ["name", "goal", "target"];

/// The number of listed trials whose names a command's messages know.
const NAMED_TRIALS: usize = 100;

/// Reads the file. If problems remain, they are in the report, and the result must not be used. The report also keeps
/// the warnings.
pub(crate) fn read(text: &str, version: &str, defaults: &Defaults, report: &mut Report<'_>) -> Option<SweepFile> {
    let root = match tree::parse(text, report) {
        Parsed::Whole(Some(root)) => without_absent(root),
        Parsed::Whole(None) => {
            empty(report);
            return None;
        }
        Parsed::Broken(entries) => {
            check_part(entries, report);
            return None;
        }
    };
    match &root.kind {
        Kind::Scalar(Scalar::Null) => {
            empty(report);
            None
        }
        Kind::Scalar(_) => {
            let message =
                format!("a sweep file is a list of trials or a W&B sweep config, and this is {}", root.describe());
            report.add(root.place, message, "start with `- lr: 0.1` for a list, or with `method: grid`");
            None
        }
        Kind::List(nodes) => {
            let plan = list_plan(nodes, &Sampling::default(), root.place, report)?;
            let places = BTreeMap::from([(String::new(), report.locate(root.place, "", ""))]);
            let (settings, warnings) = (Settings::default(), Vec::new());
            Some(SweepFile {
                settings,
                metric: None,
                early_terminate: None,
                early_terminate_written: None,
                rungs_by: Unit::default(),
                metrics: Vec::new(),
                name: None,
                wandb: WandbPlace::default(),
                warnings,
                hidden: report.hidden(),
                plan,
                places,
            })
        }
        Kind::Mapping(_) => read_mapping(&root, version, defaults, report),
    }
}

fn empty(report: &mut Report<'_>) {
    let help = "list one mapping of parameters per trial, or write a W&B sweep config";
    report.add(Place::START, "the file is empty: it has no trials", help);
}

/// Drops the entries that W&B takes for absent. An empty `command` is one of them for its agent.
fn without_absent(mut root: Node) -> Node {
    let Kind::Mapping(entries) = &mut root.kind else { return root };
    let is_empty = |node: &Node| match &node.kind {
        Kind::List(nodes) => nodes.is_empty(),
        Kind::Scalar(_) | Kind::Mapping(_) => node.is_null(),
    };
    entries.retain(|Entry { key, value, .. }| {
        let is_absent = if key == "command" { is_empty(value) } else { value.is_null() };
        !(is_absent && ABSENT_IF_NULL.contains(&key.as_str()))
    });
    for metric in entries.iter_mut().filter(|entry| entry.key == "metric") {
        if let Kind::Mapping(inner) = &mut metric.value.kind {
            inner.retain(|entry| !(entry.value.is_null() && ABSENT_IN_METRIC.contains(&entry.key.as_str())));
        }
    }
    root
}

/// Checks the complete entries of a file that cannot be read to its end. Each is checked by itself, because what it
/// refers to may follow in the unread part.
fn check_part(entries: Vec<Entry>, report: &mut Report<'_>) {
    let root = without_absent(Node { place: Place::START, kind: Kind::Mapping(entries), text_to_wandb: None });
    let Some((fields, own)) = top_level(&root, report) else { return };
    // The unread part may have a `program` and a `method`, so their absence is no problem.
    let context = Context { program: Some(""), ..Context::default() };
    settings::image::read(own, fields, report);
    if let Some(own) = own {
        settings::read(own, &context, Role::Unused, report);
        Sampling::read(own, "", report);
        early_terminate::unit(own, true, report);
    }
    fields.get("command").and_then(|node| template::read(node, &context, Role::Unused, report));
    fields.get("metric").and_then(|node| metric::goal(node, fields.get("metrics"), report));
    fields.entry("early_terminate").and_then(|entry| early_terminate::read(entry, true, report));
    fields.get("metrics").map(|node| metric::patterns(node, report));
    fields.get("parameters").and_then(|node| parameters::read(node, Method::Random, report));
}

/// Returns the top level and the mapping under `spotsweep:`, and reports their unknown keys.
fn top_level<'n>(root: &'n Node, report: &mut Report<'_>) -> Option<(Fields<'n>, Option<Fields<'n>>)> {
    let is_list = Fields::any(root, "the sweep file", report)?.has("trials");
    let keys = if is_list { LIST_KEYS.as_slice() } else { WANDB_KEYS.as_slice() };
    let fields = Fields::any(root, "the sweep file", report)?;
    unknown_keys::check(fields, keys, report);
    let own = fields.get("spotsweep").and_then(|node| {
        let keys: Vec<&str> = settings::KEYS.iter().chain(&SAMPLING_KEYS).copied().collect();
        Fields::known_or_meant(node, "`spotsweep`", &keys, &meant::setting, report)
    });
    Some((fields, own))
}

/// Returns the names that a command's macros may use as parameters, those of groups as `group.name`.
fn parameter_names(fields: Fields<'_>) -> HashSet<String> {
    let mut names = HashSet::new();
    fields.get("parameters").into_iter().for_each(|node| add_names(node, "", &mut names));
    if let Some(Kind::List(trials)) = fields.get("trials").map(|node| &node.kind) {
        trials.iter().take(NAMED_TRIALS).for_each(|trial| add_names(trial, "", &mut names));
    }
    names
}

/// Adds the names of a trial or of `parameters`. The names within a group are one level below.
fn add_names(node: &Node, group: &str, names: &mut HashSet<String>) {
    let Kind::Mapping(entries) = &node.kind else { return };
    for Entry { key, value, .. } in entries {
        let name = format!("{group}{key}");
        let inner = match &value.kind {
            Kind::Mapping(inner) => inner.iter().find(|entry| entry.key == "parameters").map(|entry| &entry.value),
            Kind::Scalar(_) | Kind::List(_) => None,
        };
        add_names(inner.unwrap_or(value), &format!("{name}."), names);
        names.insert(name);
    }
}

fn read_mapping(root: &Node, version: &str, defaults: &Defaults, report: &mut Report<'_>) -> Option<SweepFile> {
    let (fields, own) = top_level(root, report)?;
    if fields.entries().is_empty() {
        empty(report);
        return None;
    }
    let role = if own.is_some_and(|own| own.has("command")) { Role::Unused } else { Role::Wandb };
    let program = program(fields, own, report);
    if let (Some(program), Some(node), Role::Wandb) = (program, fields.get("program"), role) {
        program::check(program, before_program(fields), node.place, report);
    }
    let context = Context { program, parameters: parameter_names(fields) };
    let mut settings = own.map(|own| settings::read(own, &context, Role::Own, report)).unwrap_or_default();
    settings.image = settings::image::read(own, fields, report);
    let wandb_command = fields.get("command").and_then(|node| template::read(node, &context, role, report));
    settings.command = settings.command.or(wandb_command).or_else(|| program.map(template::of_program));
    let metric = fields.get("metric").and_then(|node| metric::goal(node, fields.get("metrics"), report));
    let written = fields.entry("early_terminate");
    let rule = written.and_then(|entry| early_terminate::read(entry, fields.has("metric"), report));
    let has_rule = fields.has("early_terminate");
    let rungs_by = own.map(|own| early_terminate::unit(own, has_rule, report)).unwrap_or_default();
    let metrics = fields.get("metrics").map(|node| metric::patterns(node, report)).unwrap_or_default();
    let sampling = own.map(|own| Sampling::read(own, version, report)).unwrap_or_else(|| Sampling::unset(version));
    let plan = if fields.has("trials") {
        wrapped_list(fields, &sampling, report)
    } else {
        wandb(fields, sampling, defaults, report)
    };
    if let (Some(own), Some(plan)) = (own, &plan) {
        settings::check_trials(own, plan.trial_count(), report);
    }
    if let (Some(rule), Some(plan)) = (&rule, &plan) {
        early_terminate::reach::check(fields, rule, plan, report);
        size::check_compared(plan.trial_count(), written.map_or(root.place, |entry| entry.key_place), report);
    }
    let mut label = |key: &str| fields.get(key).and_then(|node| label(node, key, report));
    let name = label("name");
    let wandb = WandbPlace { project: label("project"), entity: label("entity") };
    let (plan, places, warnings) = (plan?, places(fields, own, root.place, report), Vec::new());
    let early_terminate_written = rule.as_ref().and(written).and_then(|entry| match &entry.value.kind {
        Kind::Mapping(entries) => Some(tree::to_json_map(entries)),
        Kind::Scalar(_) | Kind::List(_) => None,
    });
    Some(SweepFile {
        settings,
        metric,
        early_terminate: rule,
        early_terminate_written,
        rungs_by,
        metrics,
        name,
        wandb,
        warnings,
        hidden: report.hidden(),
        plan,
        places,
    })
}

/// Returns the script, if it has a value. A blank `program` needs a command, which then runs something else.
fn program<'n>(fields: Fields<'n>, own: Option<Fields<'_>>, report: &mut Report<'_>) -> Option<&'n str> {
    let node = fields.get("program")?;
    let has_command = fields.has("command") || own.is_some_and(|own| own.has("command"));
    if node.is_blank() && !has_command {
        let help = "write the script's name, for example `program: train.py`, or delete the line to run the job definition's command";
        report.add(node.place, "`program` has no value, and there is no `command`", help);
    }
    if node.is_blank() {
        return None;
    }
    let program = text(node, "program", report)?;
    if program.contains("${") {
        report.add(node.place, "`program` has a macro, which is filled in only in `command`", "write the file's name");
    }
    Some(program)
}

fn as_text(node: &Node) -> Option<&str> {
    match &node.kind {
        Kind::Scalar(Scalar::Text { text, .. }) => Some(text.as_str()),
        Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_) => None,
    }
}

/// Returns the element before `${program}` in the W&B command.
fn before_program(fields: Fields<'_>) -> Option<&str> {
    let Some(node) = fields.get("command") else { return Some("${interpreter}") };
    let Kind::List(nodes) = &node.kind else { return None };
    let at = nodes.iter().position(|node| as_text(node) == Some("${program}"))?;
    as_text(nodes.get(at.checked_sub(1)?)?)
}

/// Reads a label for people or for W&B. No trial depends on it, so any scalar is valid, and a blank one counts as
/// absent.
fn label(node: &Node, key: &str, report: &mut Report<'_>) -> Option<String> {
    if node.is_blank() { None } else { written(node, key, report) }
}

/// Returns the place of each setting, for problems that are found later.
fn places(fields: Fields<'_>, own: Option<Fields<'_>>, root: Place, report: &Report<'_>) -> BTreeMap<String, Problem> {
    let outer = fields.entries().iter().filter(|entry| OUTER_SETTINGS.contains(&entry.key.as_str()));
    let inner = own.map(|own| own.entries()).unwrap_or_default();
    let mut places = BTreeMap::from([(String::new(), report.locate(root, "", ""))]);
    for entry in outer.chain(inner) {
        let setting = if entry.key == "image_uri" { "image" } else { &entry.key };
        places.insert(setting.to_owned(), report.locate(entry.value.place, "", ""));
    }
    places
}
