//! Reads a whole sweep file: which of the two forms it has, and its top level.

use std::collections::{BTreeMap, HashSet};

use spotsweep_protocol::claim::WandbPlace;
use spotsweep_protocol::rungs::Unit;

use super::choice::{SAMPLING_KEYS, Sampling, WANDB_KEYS, list_plan, wandb, wrapped_list};
use super::early_terminate;
use super::fields::{Fields, text, written};
use super::meant;
use super::parameters::{self, Method};
use super::problem::{Place, Problem, Report, near_miss};
use super::program;
use super::scalar::Scalar;
use super::size;
use super::template::{self, Context, Role};
use super::tree::{self, Entry, Kind, Node, Parsed};

use super::{Defaults, MAX_TRIALS, Settings, SweepFile, metric, settings};

/// Top-level keys of a plain list that is wrapped in a mapping.
pub(crate) const LIST_KEYS: [&str; 11] = [
    "trials",
    "metric",
    "early_terminate",
    "metrics",
    "spotsweep",
    "program",
    "command",
    "name",
    "description",
    "project",
    "entity",
];

/// Settings of spotsweep that files for other programs may have at the top level with another meaning.
const OTHERS_KEYS: [&str; 2] = ["tags", "seed"];

/// W&B's keys at the top level that say what is run.
const OUTER_SETTINGS: [&str; 3] = ["program", "command", "image_uri"];

/// Keys at the top level that W&B's engine and agent take for absent if they are null.
const ABSENT_IF_NULL: [&str; 9] =
    ["run_cap", "metric", "command", "controller", "early_terminate", "metrics", "scheduler", "job", "image_uri"];

/// Keys under `metric` that they take for absent if they are null.
const ABSENT_IN_METRIC: [&str; 3] = ["name", "goal", "target"];

/// Words that limit the trials in the keys of other programs: `max_runs`, `n_trials`, `trial_count`.
const AMOUNTS: [&str; 10] = ["max", "maximum", "num", "n", "number", "numberof", "total", "count", "limit", "budget"];
const TRIALS: [&str; 6] = ["run", "runs", "trial", "trials", "experiment", "experiments"];

/// The most unknown keys at the top level that are looked at. A file with more has another format.
const MAX_UNKNOWN: usize = 100;

/// The number of unknown keys up to which each has a warning of its own.
const FEW_UNKNOWN: usize = 3;

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
    unknown_keys(fields, keys, report);
    let own = fields.get("spotsweep").and_then(|node| {
        let keys: Vec<&str> = settings::KEYS.iter().chain(&SAMPLING_KEYS).copied().collect();
        Fields::known_or_meant(node, "`spotsweep`", &keys, &meant::setting, report)
    });
    Some((fields, own))
}

/// Reports or warns about unknown keys. W&B ignores keys of other programs with a warning, but a slip in a key of the
/// file's own would cost GPU hours.
fn unknown_keys(fields: Fields<'_>, keys: &[&str], report: &mut Report<'_>) {
    let is_unknown = |entry: &&Entry| !keys.contains(&entry.key.as_str());
    let mut ignored = Vec::new();
    let all_keys = || WANDB_KEYS.into_iter().chain(LIST_KEYS);
    for (number, entry) in fields.entries().iter().filter(is_unknown).enumerate() {
        let (key, place) = (entry.key.as_str(), entry.key_place);
        let message = format!("unknown key `{key}`");
        if number >= MAX_UNKNOWN {
            let help = "a sweep file is a list of trials or a W&B sweep config";
            report.add(place, format!("the sweep file has more than {MAX_UNKNOWN} unknown keys"), help);
            return;
        }
        let is_setting = settings::KEYS.iter().chain(&SAMPLING_KEYS).any(|known| *known == key);
        if let Some(near) = near_miss(key, all_keys()) {
            let help = if near == key {
                format!("the keys here are: {}", keys.join(", "))
            } else {
                format!("did you mean `{near}`?")
            };
            report.add(place, message, help);
        } else if is_setting && !OTHERS_KEYS.contains(&key) {
            report.add(place, message, moved(entry));
        } else if let Some(help) = limit_help(fields, entry) {
            report.warn(place, format!("{message}: ignored, as by W&B"), help);
        } else {
            ignored.push(entry);
        }
    }
    warn_of_ignored(&ignored, report);
}

/// Warns about ignored keys. A few keys get a warning each. Many keys are another program's configuration and get one
/// warning together.
fn warn_of_ignored(ignored: &[&Entry], report: &mut Report<'_>) {
    let help = "delete the line, or put `#` before it";
    if let [first, others @ ..] = ignored
        && others.len() >= FEW_UNKNOWN
    {
        let listed: Vec<String> = ignored.iter().take(FEW_UNKNOWN).map(|entry| format!("`{}`", entry.key)).collect();
        let (count, listed) = (ignored.len(), listed.join(", "));
        let message = format!("{count} unknown keys: {listed}, … are ignored, as by W&B");
        report.warn(first.key_place, message, "delete these lines, or put `#` before them");
        return;
    }
    for entry in ignored {
        report.warn(entry.key_place, format!("unknown key `{}`: ignored, as by W&B", entry.key), help);
    }
}

/// Returns where one of spotsweep's own settings belongs. In other programs' files `budget` is a number.
fn moved(entry: &Entry) -> String {
    match &entry.value.kind {
        Kind::Scalar(Scalar::Number(number)) if entry.key == "budget" => format!(
            "to limit the cost in dollars write `spotsweep: {{budget: {{max_usd: {number}}}}}`, to limit the number of trials `spotsweep: {{trials: …}}`; or delete it"
        ),
        Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_) => "move it under `spotsweep:`, or delete it".to_owned(),
    }
}

/// Returns the help for a key that looks like a limit of the trials, if the file has no limit: ignoring the key would
/// cost money.
fn limit_help(fields: Fields<'_>, entry: &Entry) -> Option<String> {
    let is_capped = match fields.get("spotsweep").map(|node| &node.kind) {
        Some(Kind::Mapping(own)) => own.iter().any(|entry| entry.key == "trials"),
        Some(Kind::Scalar(_) | Kind::List(_)) | None => false,
    };
    if !is_like_a_limit(&entry.key) || is_capped || fields.has("run_cap") {
        return None;
    }
    let limit = match &entry.value.kind {
        Kind::Scalar(Scalar::Number(number)) => number.as_f64(),
        Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_) => None,
    };
    let limit = limit.filter(|limit| limit.fract() == 0.0 && (1.0..=MAX_TRIALS as f64).contains(limit));
    let written = match (limit, fields.has("trials")) {
        (Some(limit), true) => format!("`spotsweep: {{trials: {limit}}}`"),
        (Some(limit), false) => format!("`run_cap: {limit}`"),
        (None, true) => "`spotsweep: {trials: …}` with a number".to_owned(),
        (None, false) => "`run_cap:` and a number".to_owned(),
    };
    Some(format!(
        "W&B and spotsweep have no such key: to limit the number of trials write {written}, else delete the line"
    ))
}

/// Whether other programs limit their runs with this key: `max_runs`, `count`.
fn is_like_a_limit(key: &str) -> bool {
    let key: String = key.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    let is_amount = |word: &str| AMOUNTS.contains(&word);
    let is_of_trials =
        |word: &&str| key.strip_prefix(word).is_some_and(is_amount) || key.strip_suffix(word).is_some_and(is_amount);
    ["count", "runs"].contains(&key.as_str()) || TRIALS.iter().any(is_of_trials)
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
