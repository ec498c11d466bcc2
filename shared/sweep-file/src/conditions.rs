//! Resolves what `when`, `exclude` and `first` say about parameters.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::distribution::Distribution;
use super::fields::Fields;
use super::problem::{Report, nearest};
use super::scalar::Scalar;
use super::space::{Condition, Dimension, Values};
use super::tree::{Entry, Kind, Node};
use super::values::canonical;

/// The most parameters that one pattern may name.
pub(crate) const MAX_NAMES: usize = 100;

/// Finds dimensions by name, and indexes by value, each in constant time.
pub(crate) struct Directory<'d> {
    dimensions: &'d [Dimension],
    by_name: HashMap<String, usize>,
    /// Names that two parameters share: `a.b`, and `b` in the group `a`.
    ambiguous: HashSet<String>,
    by_value: Vec<OnceCell<HashMap<String, Vec<u64>>>>,
}

impl<'d> Directory<'d> {
    pub(crate) fn new(dimensions: &'d [Dimension]) -> Self {
        let (mut by_name, mut ambiguous) = (HashMap::new(), HashSet::new());
        for (index, dimension) in dimensions.iter().enumerate() {
            let name = dimension.path.join(".");
            if by_name.insert(name.clone(), index).is_some() {
                ambiguous.insert(name);
            }
        }
        Self { dimensions, by_name, ambiguous, by_value: vec![OnceCell::new(); dimensions.len()] }
    }

    /// Reads a pattern such as `{optimizer: sgd, batch_size: [32, 64]}`: every named parameter has one of the values.
    pub(crate) fn pattern(&self, node: &Node, what: &str, report: &mut Report<'_>) -> Option<Vec<Condition>> {
        let fields = Fields::any(node, what, report)?;
        let named = fields.entries().len();
        if named == 0 {
            report.add(
                node.place,
                format!("{what} is empty"),
                "name a parameter and its value, for example {optimizer: sgd}",
            );
            return None;
        }
        if named > MAX_NAMES {
            report.add(node.place, format!("{what} names more than {MAX_NAMES} parameters"), "name fewer");
            return None;
        }
        let conditions: Vec<Option<Condition>> =
            fields.entries().iter().map(|entry| self.condition(entry, what, report)).collect();
        conditions.into_iter().collect()
    }

    fn condition(&self, entry: &Entry, what: &str, report: &mut Report<'_>) -> Option<Condition> {
        let Some(&dimension) = self.by_name.get(&entry.key) else {
            if report.is_full() {
                return None;
            }
            let names: Vec<String> = self.dimensions.iter().map(|dimension| dimension.path.join(".")).collect();
            let help = match nearest(&entry.key, names.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "name a parameter of this file; a nested one as `group.name`".to_owned(),
            };
            report.add(entry.key_place, format!("{what} names the unknown parameter `{}`", entry.key), help);
            return None;
        };
        if self.ambiguous.contains(&entry.key) {
            let message = format!("{what} names `{}`, which is a parameter, and one of a group too", entry.key);
            report.add(entry.key_place, message, "rename one of the two");
            return None;
        }
        let Values::Counted(distribution) = &self.dimensions[dimension].values else {
            let message = format!("{what} cannot name `{}`, whose values cannot be listed", entry.key);
            report.add(
                entry.key_place,
                message,
                "name a parameter with `value`, `values` or whole numbers from min to max",
            );
            return None;
        };
        let mut indexes = Vec::new();
        let mut is_whole = true;
        for alternative in alternatives(&entry.value) {
            let found = self.indexes(dimension, distribution, &canonical(&alternative.to_json()));
            is_whole &= !found.is_empty();
            if found.is_empty() && !report.is_full() {
                let message = format!("`{}` never is {}", entry.key, alternative.describe());
                report.add(alternative.place, message, offered(alternative, distribution));
            }
            indexes.extend(found);
        }
        indexes.sort_unstable();
        indexes.dedup();
        is_whole.then_some(Condition { dimension, indexes })
    }

    fn indexes(&self, dimension: usize, distribution: &Distribution, wanted: &str) -> Vec<u64> {
        let values = match distribution {
            Distribution::Constant(value) => std::slice::from_ref(value),
            Distribution::Choice { values, .. } => values.as_slice(),
            Distribution::Integers { min, max } => {
                let number = wanted.parse::<i64>().ok().filter(|number| (*min..=*max).contains(number));
                return number.map(|number| number.abs_diff(*min)).into_iter().collect();
            }
            Distribution::Real { .. } => &[],
        };
        let by_value = self.by_value[dimension].get_or_init(|| {
            let mut by_value: HashMap<String, Vec<u64>> = HashMap::new();
            for (index, value) in (0_u64..).zip(values) {
                by_value.entry(canonical(value)).or_default().push(index);
            }
            by_value
        });
        by_value.get(wanted).cloned().unwrap_or_default()
    }
}

/// Returns the values that a node allows: a list allows each of its values.
pub(crate) fn alternatives(node: &Node) -> &[Node] {
    match &node.kind {
        Kind::List(nodes) => nodes,
        Kind::Scalar(_) | Kind::Mapping(_) => std::slice::from_ref(node),
    }
}

fn offered(node: &Node, distribution: &Distribution) -> String {
    let texts: Vec<&str> = match distribution {
        Distribution::Constant(value) => value.as_str().into_iter().collect(),
        Distribution::Choice { values, .. } => values.iter().take(1_000).filter_map(Value::as_str).collect(),
        Distribution::Integers { min, max } => return format!("write a whole number from {min} to {max}"),
        Distribution::Real { .. } => Vec::new(),
    };
    let written = match &node.kind {
        Kind::Scalar(Scalar::Text { text, .. }) => text.as_str(),
        Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_) => "",
    };
    match nearest(written, texts) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write one of the parameter's values, or add this one to them".to_owned(),
    }
}
