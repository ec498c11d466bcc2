//! `repeats`: each parameter set is trained once per value of one more parameter, such as a seed.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spotsweep_protocol::words::counted;

use super::fields::{Fields, mismatch};
use super::names::check_name;
use super::node::warn_about_value;
use super::problem::{Place, Report};
use super::tree::{Kind, Node};
use super::values::canonical;

/// The most values. Ten repeats reduce the standard error to a third of the deviation; more than a hundred are a grid.
const MOST: usize = 100;

/// How often each parameter set is trained, and the parameter that differs.
///
/// All sets come once with the first value, then once with the second, and so on. So each set has a result when the
/// first round is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// The parameter that differs between the trials of a set. The sets themselves do not have it.
    pub parameter: String,
    /// The parameter's values, at least one.
    pub values: Vec<Value>,
    /// The number of parameter sets, at least 1. The sweep has that many trials for each value.
    pub sets: u64,
}

impl Repeats {
    /// Returns the parameter set of a trial, from 0.
    pub fn set_of(&self, index: u64) -> u64 {
        index % self.sets.max(1)
    }

    /// Adds to the parameters of a trial's set the value that makes them the trial's.
    pub fn complete(&self, index: u64, parameters: &mut Map<String, Value>) {
        let round = usize::try_from(index / self.sets.max(1)).unwrap_or(usize::MAX);
        if let Some(value) = self.values.get(round) {
            parameters.insert(self.parameter.clone(), value.clone());
        }
    }
}

/// The file's `repeats`, before the number of sets is known.
pub(crate) struct Wanted {
    parameter: String,
    values: Vec<Value>,
    place: Place,
}

impl Wanted {
    pub(crate) fn read(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let fields = Fields::known(node, "`repeats`", &["parameter", "values"], report)?;
        for key in ["parameter", "values"].into_iter().filter(|key| !fields.has(key)) {
            let help = "write for example `repeats: {parameter: seed, values: [1, 2, 3]}`";
            report.add(fields.place(), format!("`repeats` has no `{key}`"), help);
        }
        let (parameter, values) = (fields.text("parameter", report), fields.get("values"));
        let (parameter, values) = (parameter?, values?);
        let place = fields.get("parameter").map_or(node.place, |node| node.place);
        check_name(parameter, place, report);
        let Kind::List(nodes) = &values.kind else {
            mismatch(values, "values", "a list", report);
            return None;
        };
        warn_about_value(values, report);
        let listed: Vec<Value> = nodes.iter().map(Node::to_json).collect();
        if !(1..=MOST).contains(&listed.len()) {
            let message = format!("`repeats` has {}", counted(listed.len(), "value"));
            report.add(values.place, message, format!("list 1 to {MOST}"));
            return None;
        }
        let mut seen = HashSet::new();
        if let Some(again) = nodes.iter().find(|node| !seen.insert(canonical(&node.to_json()))) {
            let help = "each repeat needs a value of its own, or it would be the same training";
            report.add(again.place, format!("`repeats` has {} twice", again.describe()), help);
        }
        Some(Self { parameter: parameter.to_owned(), values: listed, place })
    }

    /// Reports a parameter of the sets that has the same name.
    pub(crate) fn check<'a>(&self, mut names: impl Iterator<Item = &'a str>, report: &mut Report<'_>) {
        if names.any(|name| name == self.parameter) {
            let message = format!("`repeats` names `{}`, which is a parameter of the sets too", self.parameter);
            report.add(self.place, message, "delete it from the parameters: `repeats` has its values");
        }
    }

    /// Returns how many sets a sweep of at most `cap` trials has.
    pub(crate) fn sets(&self, cap: u64, report: &mut Report<'_>) -> u64 {
        let times = self.values.len() as u64;
        if cap < times {
            let message = format!("{} for each parameter set, and the sweep has {cap}", counted(times, "trial"));
            report.add(self.place, message, "raise `run_cap`, or list fewer values");
        } else if !cap.is_multiple_of(times) {
            let (sets, trials) = (counted(cap / times, "parameter set"), cap / times * times);
            let message = format!("{cap} is no multiple of {times}: the sweep has at most {sets} and {trials} trials");
            report.warn(self.place, message, format!("set `run_cap` to a multiple of {times}"));
        }
        (cap / times).max(1)
    }

    pub(crate) fn times(&self) -> u64 {
        self.values.len() as u64
    }

    pub(crate) fn of(&self, sets: u64) -> Repeats {
        Repeats { parameter: self.parameter.clone(), values: self.values.clone(), sets }
    }

    /// Returns the most bytes that the parameter adds to a trial as JSON.
    pub(crate) fn bytes(&self) -> u64 {
        let value = self.values.iter().map(|value| value.to_string().len()).max().unwrap_or(0);
        (self.parameter.len() + 6 + value) as u64
    }
}
