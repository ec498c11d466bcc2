//! Reads `parameters` and `when` into dimensions.

use serde_json::Value;

use super::conditions::Directory;
use super::distribution::{Curve, Distribution};
use super::fields::Fields;
use super::names::{Variables, check_name};
use super::parameter;
use super::problem::{Place, Report};
use super::space::{Condition, Dimension, Space, Values};
use super::tree::{Entry, Kind, Node};
use super::values::distinct;

/// The value of `method`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    Grid,
    Random,
    Bayes,
}

/// The most parameters, because each costs time in every trial and more are surely a mistake.
const MAX_PARAMETERS: usize = 1_000;

/// A parameter before its conditions are resolved.
struct Leaf<'n> {
    path: Vec<String>,
    place: Place,
    distribution: Distribution,
    /// The parameter's own `when` and those of the groups around it.
    when: Vec<&'n Node>,
}

/// Reads the `parameters` mapping, and reports its problems.
pub(crate) fn read(node: &Node, method: Method, report: &mut Report<'_>) -> Option<Space> {
    let fields = Fields::any(node, "`parameters`", report)?;
    if fields.entries().is_empty() {
        report.add(
            node.place,
            "`parameters` is empty",
            "add at least one parameter, for example `lr: {values: [0.1, 0.01]}`",
        );
        return None;
    }
    let mut leaves = Vec::new();
    collect(fields.entries(), &[], &[], &mut leaves, report);
    if leaves.len() > MAX_PARAMETERS {
        let message = format!("{} parameters; {MAX_PARAMETERS} is the most", leaves.len());
        report.add(node.place, message, "pass constants in a file of your own");
        return None;
    }
    warn_about_variables(&leaves, report);
    let dimensions: Vec<Dimension> = leaves.iter().filter_map(|leaf| dimension(leaf, method, report)).collect();
    if dimensions.len() < leaves.len() {
        return None;
    }
    let directory = Directory::new(&dimensions);
    let conditions: Vec<Vec<Condition>> = leaves
        .iter()
        .map(|leaf| leaf.when.iter().filter_map(|node| directory.pattern(node, "`when`", report)).flatten().collect())
        .collect();
    let mut space = Space { dimensions, conditional: Vec::new(), excluded: Vec::new(), first: Vec::new() };
    for (dimension, when) in space.dimensions.iter_mut().zip(conditions) {
        dimension.when = when;
    }
    space.conditional = in_order(&space, &leaves, report);
    Some(space)
}

/// Collects the parameters by code point at each level of nesting, as W&B sorts them. Rust sorts UTF-8 texts in the
/// same order.
fn collect<'n>(
    entries: &'n [Entry],
    group: &[String],
    conditions: &[&'n Node],
    leaves: &mut Vec<Leaf<'n>>,
    report: &mut Report<'_>,
) {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|a, b| a.key.cmp(&b.key));
    for entry in sorted {
        check_name(&entry.key, entry.key_place, report);
        let path = [group, std::slice::from_ref(&entry.key)].concat();
        let inner = match &entry.value.kind {
            Kind::Mapping(inner) => inner.as_slice(),
            Kind::Scalar(_) | Kind::List(_) => &[],
        };
        let find = |key: &str| inner.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
        let when: Vec<&Node> = conditions.iter().copied().chain(find("when")).collect();
        let Some(nested) = find("parameters") else {
            if let Some(distribution) = parameter::read(entry, report) {
                leaves.push(Leaf { path, place: entry.key_place, distribution, when });
            }
            continue;
        };
        let what = format!("the parameter group `{}`", entry.key);
        Fields::known(&entry.value, &what, &["parameters", "when"], report);
        let Some(fields) = Fields::any(nested, &format!("`parameters` of `{}`", entry.key), report) else { continue };
        if fields.entries().is_empty() {
            report.add(
                nested.place,
                format!("the parameter group `{}` is empty", entry.key),
                "add a parameter to it, or delete it",
            );
        }
        collect(fields.entries(), &path, &when, leaves, report);
    }
}

/// Warns about parameters that become the same variable. A value that is a mapping has variables of its own.
fn warn_about_variables(leaves: &[Leaf<'_>], report: &mut Report<'_>) {
    let mut variables = Variables::default();
    for leaf in leaves {
        let values = match &leaf.distribution {
            Distribution::Constant(value) => std::slice::from_ref(value),
            Distribution::Choice { values, .. } => values,
            Distribution::Integers { .. } | Distribution::Real { .. } => &[],
        };
        if !values.iter().all(Value::is_object) || values.is_empty() {
            variables.add(&leaf.path, &Value::Null, leaf.place, report);
        }
        for value in values.iter().filter(|value| value.is_object()) {
            variables.add(&leaf.path, value, leaf.place, report);
        }
    }
}

fn dimension(leaf: &Leaf<'_>, method: Method, report: &mut Report<'_>) -> Option<Dimension> {
    let name = leaf.path.join(".");
    let values = match method {
        Method::Random => random_values(&leaf.distribution, &name, leaf.place, report)?,
        Method::Bayes => random_values(&searched(&leaf.distribution), &name, leaf.place, report)?,
        Method::Grid => grid_values(&leaf.distribution, &name, leaf.place, report)?,
    };
    Some(Dimension { path: leaf.path.clone(), values, when: Vec::new() })
}

/// Returns the distribution for a search. A list has each possible value once, and its numbers ascend.
fn searched(distribution: &Distribution) -> Distribution {
    let Distribution::Choice { values, cumulated } = distribution else { return distribution.clone() };
    let is_possible = |index: &usize| {
        let until = |index: usize| cumulated.as_ref().map_or(index as f64 + 1.0, |cumulated| cumulated[index]);
        until(*index) > index.checked_sub(1).map_or(0.0, until)
    };
    let mut values = distinct((0..values.len()).filter(is_possible).map(|index| values[index].clone()).collect());
    if values.iter().all(Value::is_number) {
        values.sort_by(|first, second| f64::total_cmp(&number(first), &number(second)));
    }
    Distribution::Choice { values, cumulated: None }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn random_values(distribution: &Distribution, name: &str, place: Place, report: &mut Report<'_>) -> Option<Values> {
    let Distribution::Real { curve, step } = distribution else { return Some(Values::Counted(distribution.clone())) };
    if let Some(step) = step {
        let (least, greatest) = curve.multiples(*step);
        if least > greatest {
            let message = format!("parameter `{name}`: no multiple of q lies within its range");
            report.add(place, message, "make q smaller or the range wider");
            return None;
        }
    }
    Some(Values::Real(distribution.clone()))
}

fn grid_values(distribution: &Distribution, name: &str, place: Place, report: &mut Report<'_>) -> Option<Values> {
    match distribution {
        Distribution::Constant(_) | Distribution::Integers { .. } => Some(Values::Counted(distribution.clone())),
        Distribution::Choice { values, cumulated: None } => {
            Some(Values::Counted(Distribution::Choice { values: distinct(values.clone()), cumulated: None }))
        }
        Distribution::Real { curve: Curve::Uniform { min, max }, step: Some(step) } => {
            // As `numpy.arange` does, it counts the steps below max, and uses the distance between the first two
            // values.
            let count = ((max - min) / step.size).ceil();
            let step_as_added = (min + step.size) - min;
            Some(Values::Range { start: *min, step: step_as_added, count: count as u64, whole: step.whole_grid })
        }
        Distribution::Choice { cumulated: Some(_), .. } | Distribution::Real { .. } => {
            let message = format!("parameter `{name}` has a distribution that a grid cannot enumerate");
            let help = "list its `values`, use int_uniform or q_uniform, or choose `method: random` with a `run_cap`";
            report.add(place, message, help);
            None
        }
    }
}

/// Returns the conditional dimensions in an order in which each follows those that it depends on. Reports a circle.
fn in_order(space: &Space, leaves: &[Leaf<'_>], report: &mut Report<'_>) -> Vec<usize> {
    let mut waiting: Vec<usize> =
        (0..space.dimensions.len()).filter(|&index| !space.dimensions[index].when.is_empty()).collect();
    let mut unplaced: Vec<bool> = space.dimensions.iter().map(|dimension| !dimension.when.is_empty()).collect();
    let mut ordered = Vec::new();
    while !waiting.is_empty() {
        let depends = |index: usize| space.dimensions[index].when.iter().any(|condition| unplaced[condition.dimension]);
        let (stuck, ready): (Vec<usize>, Vec<usize>) = waiting.iter().partition(|&&index| depends(index));
        if ready.is_empty() {
            for index in stuck {
                let message = format!("the `when` of `{}` depends on itself in a circle", leaves[index].path.join("."));
                report.add(leaves[index].place, message, "remove one of the conditions");
            }
            return ordered;
        }
        for &index in &ready {
            unplaced[index] = false;
        }
        ordered.extend(ready);
        waiting = stuck;
    }
    ordered
}
