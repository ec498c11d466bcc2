//! Chooses the trials: the plain list, or the grid, the random draws and the search of a W&B config.

use std::collections::HashSet;

use serde_json::{Map, Value};
use spotsweep_protocol::words::counted;

use super::conditions::{Directory, MAX_NAMES, alternatives};
use super::fields::Fields;
use super::names::{Variables, check_name};
use super::node::warn_about_value;
use super::parameters::{self, Method};
use super::plan::{Candidates, ListPattern, Plan, Search, Shuffle, seed};
use super::problem::{Place, Report, near_miss, nearest};
use super::repeats::Wanted;
use super::search_space::SearchSpace;
use super::size::{self, Limits};
use super::space::Space;
use super::tree::{self, Kind, Node};
use super::values::canonical;
use super::{Defaults, MAX_COMPARED_TRIALS, MAX_TRIALS};

pub(crate) const WANDB_KEYS: [&str; 19] = [
    "method",
    "parameters",
    "metric",
    "run_cap",
    "program",
    "command",
    "spotsweep",
    "name",
    "description",
    "project",
    "entity",
    "apiVersion",
    "kind",
    "controller",
    "early_terminate",
    "metrics",
    "scheduler",
    "job",
    "image_uri",
];

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

/// Keys under `spotsweep:` that choose, order and compare trials.
pub(crate) const SAMPLING_KEYS: [&str; 7] = ["trials", "seed", "exclude", "first", "order", "repeats", "rungs_by"];

/// The keys of W&B that spotsweep refuses, so that nothing is ignored silently: key, reason, and remedy.
const REFUSED: [(&str, &str, &str); 2] = [
    ("scheduler", "custom schedulers are not supported", "delete it and choose `method: grid`, random or bayes"),
    (
        "job",
        "`job` names a W&B Launch job, which spotsweep does not run",
        "delete it, and name the image under `spotsweep: {image: …}` and what it runs under `command`",
    ),
];

/// The values that `method` takes.
pub(crate) const METHODS: [&str; 3] = ["grid", "random", "bayes"];

/// The most bytes that a search space may have as JSON, because each trial's claim reads it.
const MAX_SEARCH_BYTES: usize = 1 << 20;

/// The most patterns under `exclude` and `first`. Each is compared with every trial, and each of `first` needs a pass
/// of its own.
const MAX_EXCLUDED: usize = 100;
const MAX_FIRST: usize = 16;

/// The keys under `spotsweep:` that choose the trials.
#[derive(Default)]
pub(crate) struct Sampling<'n> {
    cap: Option<u64>,
    seed: [u8; 32],
    exclude: Vec<&'n Node>,
    first: Vec<&'n Node>,
    shuffled: bool,
    /// The place of `order`, for messages about it.
    order: Option<&'n Node>,
    repeats: Option<Wanted>,
}

impl<'n> Sampling<'n> {
    pub(crate) fn unset(version: &str) -> Self {
        Self { seed: seed(None, version), ..Self::default() }
    }

    pub(crate) fn read(own: Fields<'n>, version: &str, report: &mut Report<'_>) -> Self {
        let cap = own.integer("trials", 1..=i64::MAX, report).and_then(|cap| u64::try_from(cap).ok());
        let fixed = own.integer("seed", 0..=i64::MAX, report);
        let mut patterns = |key: &str, most: usize| {
            let Some(node) = own.get(key) else { return Vec::new() };
            let mut nodes: Vec<&Node> = alternatives(node).iter().collect();
            if nodes.len() > most {
                report.add(
                    node.place,
                    format!("`{key}` has more than {most} entries"),
                    "combine some: a value may be a list of values",
                );
                nodes.truncate(most);
            }
            nodes
        };
        let (exclude, first) = (patterns("exclude", MAX_EXCLUDED), patterns("first", MAX_FIRST));
        let order = own.text("order", report);
        if let (Some(node), Some(other)) =
            (own.get("order"), order.filter(|order| !["sorted", "shuffled"].contains(order)))
        {
            let help = "write sorted (the default) or shuffled; to run some trials before others use `first`";
            report.add(node.place, format!("there is no order `{other}`"), help);
        }
        let shuffled = order == Some("shuffled");
        let repeats = own.get("repeats").and_then(|node| Wanted::read(node, report));
        Self { cap, seed: seed(fixed, version), exclude, first, shuffled, order: own.get("order"), repeats }
    }

    /// Returns how many parameter sets make `trials` trials.
    fn sets(&self, trials: u64, report: &mut Report<'_>) -> u64 {
        self.repeats.as_ref().map_or(trials, |repeats| repeats.sets(trials, report))
    }

    fn limits(&self, points: Option<u64>, cap: Option<u64>, place: Place, report: &mut Report<'_>) -> Limits<'_> {
        Limits { points, cap: cap.map(|cap| self.sets(cap, report)), place, repeats: self.repeats.as_ref() }
    }
}

pub(crate) fn wrapped_list(fields: Fields<'_>, sampling: &Sampling<'_>, report: &mut Report<'_>) -> Option<Plan> {
    let node = fields.get("trials")?;
    if let Kind::List(nodes) = &node.kind {
        return list_plan(nodes, sampling, node.place, report);
    }
    let help = "list one mapping of parameters per trial, or replace `trials` by `method` and `parameters`";
    report.add(node.place, format!("`trials` must be a list, and this is {}", node.describe()), help);
    None
}

pub(crate) fn list_plan(
    nodes: &[Node],
    sampling: &Sampling<'_>,
    place: Place,
    report: &mut Report<'_>,
) -> Option<Plan> {
    if nodes.is_empty() {
        report.add(
            place,
            "the list is empty: it has no trials",
            "add one mapping of parameters per trial, for example `- lr: 0.1`",
        );
        return None;
    }
    let mut trials: Vec<Map<String, Value>> = Vec::with_capacity(nodes.len());
    let mut variables = Variables::default();
    for (index, node) in nodes.iter().enumerate() {
        let Kind::Mapping(entries) = &node.kind else {
            let message = format!("trial {index} must be a mapping of parameters, and this is {}", node.describe());
            let help = match node.with_space() {
                Some(meant) => format!("write `- {meant}`, with a space after the colon"),
                None => "write `- name: value`, further parameters below it with the same indentation".to_owned(),
            };
            report.add(node.place, message, help);
            continue;
        };
        for entry in entries {
            check_name(&entry.key, entry.key_place, report);
            warn_about_value(&entry.value, report);
            let path = std::slice::from_ref(&entry.key);
            variables.add(path, &entry.value.to_json(), entry.key_place, report);
        }
        trials.push(tree::to_json_map(entries));
    }
    if trials.len() < nodes.len() {
        return None;
    }
    let names: HashSet<&str> = trials.iter().flat_map(|trial| trial.keys().map(String::as_str)).collect();
    let mut patterns = |what: &str, nodes: &[&Node]| -> Option<Vec<ListPattern>> {
        all(nodes.iter().map(|node| list_pattern(node, what, &names, report)))
    };
    let (excluded, first) = (patterns("`exclude`", &sampling.exclude), patterns("`first`", &sampling.first));
    if let Some(repeats) = &sampling.repeats {
        repeats.check(names.iter().copied(), report);
    }
    let points = trials.len() as u64;
    let candidates = Candidates::List { trials, excluded: excluded?, first: first? };
    let limits = sampling.limits(Some(points), sampling.cap, place, report);
    size::plan(candidates, &limits, shuffle(sampling, points), report)
}

/// Reads a pattern like [`Directory::pattern`], over the names that the list uses.
fn list_pattern(node: &Node, what: &str, names: &HashSet<&str>, report: &mut Report<'_>) -> Option<ListPattern> {
    let fields = Fields::any(node, what, report)?;
    if fields.entries().len() > MAX_NAMES {
        report.add(node.place, format!("{what} names more than {MAX_NAMES} parameters"), "name fewer");
        return None;
    }
    let mut pattern = ListPattern::new();
    for entry in fields.entries() {
        if !names.contains(entry.key.as_str()) {
            let message = format!("{what} names `{}`, which no trial has", entry.key);
            report.add(entry.key_place, message, "name a parameter of the list");
        }
        let wanted = alternatives(&entry.value).iter().map(|node| canonical(&node.to_json())).collect();
        pattern.push((entry.key.clone(), wanted));
    }
    if pattern.is_empty() {
        report.add(
            node.place,
            format!("{what} is empty"),
            "name a parameter and its value, for example {optimizer: sgd}",
        );
    }
    Some(pattern)
}

/// Returns all items if none of them has a problem. It reads every item, so that every problem is reported.
fn all<T>(read: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    let read: Vec<Option<T>> = read.collect();
    read.into_iter().collect()
}

fn shuffle(sampling: &Sampling<'_>, points: u64) -> Option<Shuffle> {
    sampling.shuffled.then(|| Shuffle::new(points, sampling.seed))
}

pub(crate) fn wandb(
    fields: Fields<'_>,
    mut sampling: Sampling<'_>,
    defaults: &Defaults,
    report: &mut Report<'_>,
) -> Option<Plan> {
    for (key, why, help) in REFUSED {
        if let Some(entry) = fields.entry(key) {
            report.add(entry.key_place, why, help);
        }
    }
    if let Some(node) = fields.get("controller") {
        controller(node, report);
    }
    let run_cap = fields.integer("run_cap", 1..=i64::MAX, report).and_then(|cap| u64::try_from(cap).ok());
    if let (Some(run_cap), Some(own), Some(node)) = (run_cap, sampling.cap, fields.get("run_cap"))
        && run_cap != own
    {
        let message = format!("`run_cap` is {run_cap}, and `spotsweep: {{trials: {own}}}` says otherwise");
        report.add(node.place, message, "keep one of the two");
    }
    sampling.cap = defaults.run_cap.or(sampling.cap).or(run_cap);
    let method = method(fields, report);
    let Some(entry) = fields.entry("parameters") else {
        if method.is_some() {
            let help = "add `parameters:` with at least one parameter, or list the trials under `trials:`";
            report.add(fields.place(), "the sweep file has no `parameters`", help);
        }
        return None;
    };
    // Without a method the parameters are still checked, by the more lenient rules.
    let mut space = parameters::read(&entry.value, method.unwrap_or(Method::Random), report)?;
    if let Some(repeats) = &sampling.repeats {
        repeats.check(space.dimensions.iter().filter_map(|dimension| Some(dimension.path.first()?.as_str())), report);
    }
    let directory = Directory::new(&space.dimensions);
    let mut patterns = |what: &str, nodes: &[&Node]| -> Option<Vec<_>> {
        all(nodes.iter().map(|node| directory.pattern(node, what, report)))
    };
    let (excluded, first) = (patterns("`exclude`", &sampling.exclude), patterns("`first`", &sampling.first));
    (space.excluded, space.first) = (excluded?, first?);
    let place = entry.key_place;
    match method? {
        Method::Grid => {
            let points = space.grid_points();
            let limits = sampling.limits(points, sampling.cap, place, report);
            size::plan(Candidates::Grid(space), &limits, shuffle(&sampling, points.unwrap_or(u64::MAX)), report)
        }
        Method::Bayes => {
            let cap =
                sampling.cap.unwrap_or_else(|| default_cap(("bayes", MAX_COMPARED_TRIALS), fields, defaults, report));
            bayes(fields, space, &sampling, (cap, place), report)
        }
        Method::Random => {
            let cap =
                sampling.cap.unwrap_or_else(|| default_cap(("random search", MAX_TRIALS), fields, defaults, report));
            let limits = sampling.limits(None, Some(cap), place, report);
            size::plan(Candidates::Random { space, seed: sampling.seed }, &limits, None, report)
        }
    }
}

/// Plans a search that learns from its trials. The space may have fewer points than the file asks trials for.
fn bayes(
    fields: Fields<'_>,
    space: Space,
    sampling: &Sampling<'_>,
    (cap, place): (u64, Place),
    report: &mut Report<'_>,
) -> Option<Plan> {
    if let (false, Some(node)) = (fields.has("metric"), fields.get("method")) {
        let help = "add what makes a trial better, for example `metric: {name: val_loss, goal: minimize}`";
        report.add(node.place, "`method: bayes` needs a `metric`, and the file has none", help);
    }
    if let Some(node) = sampling.order.filter(|_| sampling.shuffled) {
        report.warn(node.place, "`order` has no effect with `method: bayes`", "delete it");
    }
    let limits = sampling.limits(space.grid_points(), Some(cap), place, report);
    let search = Search { space: SearchSpace::new(space), seed: sampling.seed };
    let bytes = serde_json::to_vec(&search.space).map_or(usize::MAX, |json| json.len());
    if bytes > MAX_SEARCH_BYTES {
        let message =
            format!("the parameters take {bytes} bytes as JSON; with `method: bayes` {MAX_SEARCH_BYTES} is the most");
        report.add(place, message, "list fewer values, or give `min` and `max`; each trial reads them when it begins");
        return None;
    }
    let plan = size::plan(Candidates::Bayes(search), &limits, None, report)?;
    if limits.cap.is_some_and(|cap| plan.count < cap) {
        let message = format!("the parameters have {}, and so has the sweep", counted(plan.count, "combination"));
        let help = format!("set `run_cap: {}`, or `method: grid` to run each of them", plan.trial_count());
        report.warn(place, message, help);
    }
    Some(plan)
}

/// Returns the number of trials for a file without one. W&B draws until it is stopped, but a sweep here must end.
fn default_cap((what, most): (&str, u64), fields: Fields<'_>, defaults: &Defaults, report: &mut Report<'_>) -> u64 {
    let trials = defaults.trials.clamp(1, most);
    let place = fields.get("method").map_or(fields.place(), |node| node.place);
    let message = format!("{what} without `run_cap`: {}, the deployment's default", counted(trials, "trial"));
    report.warn(place, message, format!("set the number, for example `run_cap: {trials}` at the top level"));
    trials
}

fn controller(node: &Node, report: &mut Report<'_>) {
    let Some(fields) = Fields::known(node, "`controller`", &["type"], report) else { return };
    match fields.text("type", report) {
        Some("cloud") => {}
        Some(other) => report.add(
            node.place,
            format!("the controller `{other}` is not supported"),
            "delete `controller`; spotsweep chooses the trials itself",
        ),
        None => report.add(
            node.place,
            "`controller` has no `type`",
            "delete `controller`; spotsweep chooses the trials itself",
        ),
    }
}

fn method(fields: Fields<'_>, report: &mut Report<'_>) -> Option<Method> {
    let Some(node) = fields.get("method") else {
        // A misspelt key has been reported as unknown already.
        let is_unknown = |key: &str| !WANDB_KEYS.contains(&key);
        if fields.entries().iter().any(|entry| is_unknown(&entry.key) && near_miss(&entry.key, ["method"]).is_some()) {
            return None;
        }
        let help = "add `method: grid`, random or bayes above `parameters`, or list the trials under `trials:`";
        report.add(fields.place(), "the sweep file has no `method`", help);
        return None;
    };
    if node.is_null() {
        report.add(node.place, "`method` has no value", "write `method: grid`, `method: random` or `method: bayes`");
        return None;
    }
    match fields.text("method", report)? {
        "grid" => Some(Method::Grid),
        "random" => Some(Method::Random),
        "bayes" => Some(Method::Bayes),
        "custom" => {
            report.add(node.place, "`method: custom` is not supported", "choose grid, random or bayes");
            None
        }
        other => {
            let help = match nearest(other, METHODS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "choose grid, random or bayes".to_owned(),
            };
            report.add(node.place, format!("there is no method `{other}`"), help);
            None
        }
    }
}
