//! The parts of a parsed sweep file, each with the place where it was written.

use serde_json::{Map, Value};

use super::problem::{Place, Report};
use super::scalar::{Scalar, wandb_bool};
use super::slips::with_space;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) kind: Kind,
    /// For a number, the text that PyYAML reads instead: `1e-3`. W&B passes a parameter's value on without quotes, so
    /// that it becomes a number again, but passes the text to a command.
    pub(crate) text_to_wandb: Option<Box<str>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Scalar(Scalar),
    List(Vec<Node>),
    Mapping(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) value: Node,
}

impl Node {
    /// Returns how messages describe this node.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            Kind::Scalar(Scalar::Null) => "nothing".to_owned(),
            Kind::Scalar(Scalar::Bool(value)) => format!("the boolean {value}"),
            Kind::Scalar(Scalar::Number(number)) => format!("the number {number}"),
            Kind::Scalar(Scalar::Text { text, .. }) if text.chars().count() <= 40 => format!("the text `{text}`"),
            Kind::Scalar(Scalar::Text { .. }) => "a long text".to_owned(),
            Kind::List(_) => "a list".to_owned(),
            Kind::Mapping(_) => "a mapping".to_owned(),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Scalar(Scalar::Null))
    }

    /// Whether the node has no value, or a text without a visible character.
    pub(crate) fn is_blank(&self) -> bool {
        match &self.kind {
            Kind::Scalar(Scalar::Text { text, .. }) => text.trim().is_empty(),
            Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_) => self.is_null(),
        }
    }

    /// Returns a text such as `lr:0.1` with the space behind its colon that may be missing: `lr: 0.1`.
    pub(crate) fn with_space(&self) -> Option<String> {
        match &self.kind {
            Kind::Scalar(Scalar::Text { text, plain: true }) => with_space(text),
            Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_) => None,
        }
    }

    /// Returns the boolean that W&B and this crate read in a value's place, where YAML 1.2 reads a text: `yes`.
    pub(crate) fn wandb_bool(&self) -> Option<bool> {
        match &self.kind {
            Kind::Scalar(Scalar::Text { text, plain: true }) => wandb_bool(text),
            Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_) => None,
        }
    }

    /// Whether the other node has the same value, both here and in W&B. The place does not count.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Scalar(Scalar::Text { text, .. }), Kind::Scalar(Scalar::Text { text: other_text, .. })) => {
                text == other_text && self.wandb_bool() == other.wandb_bool()
            }
            (Kind::Scalar(scalar), Kind::Scalar(other_scalar)) => {
                scalar == other_scalar && self.text_to_wandb == other.text_to_wandb
            }
            (Kind::List(nodes), Kind::List(others)) => {
                nodes.len() == others.len() && nodes.iter().zip(others).all(|(node, other)| node.is_same(other))
            }
            (Kind::Mapping(entries), Kind::Mapping(others)) => {
                let is_same =
                    |(entry, other): (&Entry, &Entry)| entry.key == other.key && entry.value.is_same(&other.value);
                entries.len() == others.len() && entries.iter().zip(others).all(is_same)
            }
            (Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_), _) => false,
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Scalar(_) if self.wandb_bool().is_some() => self.wandb_bool().map_or(Value::Null, Value::Bool),
            Kind::Scalar(Scalar::Null) => Value::Null,
            Kind::Scalar(Scalar::Bool(value)) => Value::Bool(*value),
            Kind::Scalar(Scalar::Number(number)) => Value::Number(number.clone()),
            Kind::Scalar(Scalar::Text { text, .. }) => Value::String(text.clone()),
            Kind::List(nodes) => Value::Array(nodes.iter().map(Self::to_json).collect()),
            Kind::Mapping(entries) => Value::Object(to_json_map(entries)),
        }
    }
}

/// Returns a node as the value of a parameter in a W&B config. W&B's client sends mappings with sorted keys
/// (`yaml.dump`).
pub(crate) fn to_wandb_json(node: &Node) -> Value {
    sorted(node.to_json())
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Array(values) => Value::Array(values.into_iter().map(sorted).collect()),
        Value::Object(entries) => {
            let mut entries: Vec<(String, Value)> = entries.into_iter().collect();
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(entries.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

pub(crate) fn to_json_map(entries: &[Entry]) -> Map<String, Value> {
    entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect()
}

/// Returns the number of nodes and the bytes of text in a subtree.
pub(crate) fn weight(node: &Node) -> (usize, usize) {
    let sum = |(nodes, bytes), (more_nodes, more_bytes)| (nodes + more_nodes, bytes + more_bytes);
    match &node.kind {
        Kind::Scalar(Scalar::Text { text, .. }) => (1, text.len()),
        Kind::Scalar(Scalar::Null | Scalar::Bool(_) | Scalar::Number(_)) => (1, 0),
        Kind::List(nodes) => nodes.iter().map(weight).fold((1, 0), sum),
        Kind::Mapping(entries) => {
            entries.iter().map(|entry| sum(weight(&entry.value), (0, entry.key.len()))).fold((1, 0), sum)
        }
    }
}

/// Reports a key's second value if it differs from the first one, because W&B takes the second.
pub(crate) fn repeated(first: &Entry, second: &Node, place: Place, report: &mut Report<'_>) {
    let Entry { key, key_place, value } = first;
    let line = key_place.line;
    if value.is_same(second) {
        let message = format!("the key `{key}` is here again, with the same value as on line {line}");
        report.warn(place, message, "delete one of the two");
    } else {
        let message = format!("the key `{key}` is here again, with another value than on line {line}");
        report.add(place, message, "keep one of the two");
    }
}

/// Warns about words in a parameter's value that are booleans in W&B and texts in YAML 1.2.
pub(crate) fn warn_about_value(node: &Node, report: &mut Report<'_>) {
    match &node.kind {
        Kind::Scalar(scalar) => {
            if let (Some(value), Scalar::Text { text, .. }) = (node.wandb_bool(), scalar) {
                let message = format!("`{text}` is the boolean {value}, as it is to W&B");
                report.warn(node.place, message, format!("write {value}, or put it in quotes for the text"));
            }
        }
        Kind::List(nodes) => nodes.iter().for_each(|node| warn_about_value(node, report)),
        Kind::Mapping(entries) => entries.iter().for_each(|entry| warn_about_value(&entry.value, report)),
    }
}

/// Warns about a list of scalars: it is one value here, but people often mean several.
pub(crate) fn warn_about_list(name: &str, node: &Node, report: &mut Report<'_>) {
    let Kind::List(nodes) = &node.kind else { return };
    if nodes.len() > 1 && nodes.iter().all(|node| matches!(node.kind, Kind::Scalar(_))) {
        let message = format!("`{name}` is this whole list in every trial");
        let help = "did you mean `values`, to try one after the other? If the list is the value, leave it as it is";
        report.warn(node.place, message, help);
    }
}
