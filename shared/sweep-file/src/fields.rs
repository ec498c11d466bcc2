//! Reads mappings with known keys. Each helper takes what is valid and reports the rest.

use std::ops::RangeInclusive;

use spotsweep_protocol::number::is_stored;

use super::problem::{Place, Report, nearest};
use super::scalar::Scalar;
use super::secret_source::secret_source_problem;
use super::slips::with_space;
use super::tree::{Entry, Kind, Node};

/// The bound below which a 64-bit float holds every whole number exactly: 2^53.
const EXACT_BELOW: f64 = (1_u64 << 53) as f64;

/// The entries of a mapping whose keys have been checked.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'n> {
    entries: &'n [Entry],
    place: Place,
}

impl<'n> Fields<'n> {
    /// Reads a mapping, and reports keys that are not in `keys`. `what` names the mapping in messages, e.g. `the sweep
    /// file`.
    pub(crate) fn known(node: &'n Node, what: &str, keys: &[&str], report: &mut Report<'_>) -> Option<Self> {
        Self::known_or_meant(node, what, keys, &|_, _| None, report)
    }

    /// Reads a mapping like [`Self::known`]. `meant` returns the help for an unknown key, given its value as written.
    pub(crate) fn known_or_meant(
        node: &'n Node,
        what: &str,
        keys: &[&str],
        meant: &dyn Fn(&Entry, &str) -> Option<String>,
        report: &mut Report<'_>,
    ) -> Option<Self> {
        let fields = Self::any(node, what, report)?;
        for entry in fields.entries.iter().filter(|entry| !keys.contains(&entry.key.as_str())) {
            if report.is_full() {
                break;
            }
            let without_space = with_space(&entry.key).filter(|_| entry.value.is_null());
            let help = match (without_space, nearest(&entry.key, keys.iter().copied())) {
                (Some(meant), _) => format!("write `{meant}`, with a space after the colon"),
                (None, near) => meant(entry, &report.written(entry.value.place)).unwrap_or_else(|| match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the keys here are: {}", keys.join(", ")),
                }),
            };
            report.add(entry.key_place, format!("unknown key `{}` in {what}", entry.key), help);
        }
        Some(fields)
    }

    /// Reads a mapping whose keys the person may choose.
    pub(crate) fn any(node: &'n Node, what: &str, report: &mut Report<'_>) -> Option<Self> {
        let Kind::Mapping(entries) = &node.kind else {
            let help = match node.with_space() {
                Some(meant) => format!("write `{meant}`, with a space after the colon"),
                None => "write `key: value` lines, indented below it".to_owned(),
            };
            report.add(node.place, format!("{what} must be a mapping, and this is {}", node.describe()), help);
            return None;
        };
        Some(Self { entries, place: node.place })
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    pub(crate) fn entries(&self) -> &'n [Entry] {
        self.entries
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&'n Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'n Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    pub(crate) fn text(&self, key: &str, report: &mut Report<'_>) -> Option<&'n str> {
        text(self.get(key)?, key, report)
    }

    pub(crate) fn integer(&self, key: &str, range: RangeInclusive<i64>, report: &mut Report<'_>) -> Option<i64> {
        integer(self.get(key)?, key, range, report)
    }

    /// Reads an integer like [`Self::integer`], but without a point or an exponent, because W&B takes no others as
    /// limits of whole numbers.
    pub(crate) fn plain_integer(&self, key: &str, report: &mut Report<'_>) -> Option<i64> {
        let node = self.get(key)?;
        if let Kind::Scalar(Scalar::Number(number)) = &node.kind
            && number.is_f64()
        {
            let message = format!("`{key}` must be a whole number, and this is {number}");
            report.add(node.place, message, "write it without a decimal point or exponent");
            return None;
        }
        integer(node, key, i64::MIN..=i64::MAX, report)
    }

    /// Reads a finite number, whole or not.
    pub(crate) fn number(&self, key: &str, report: &mut Report<'_>) -> Option<f64> {
        let node = self.get(key)?;
        if let Kind::Scalar(Scalar::Number(number)) = &node.kind {
            return number.as_f64();
        }
        mismatch(node, key, "a number", report);
        None
    }

    /// Reads a number like [`Self::number`] that DynamoDB can hold as a number.
    pub(crate) fn figure(&self, key: &str, report: &mut Report<'_>) -> Option<f64> {
        let number = self.number(key, report)?;
        if let (false, Some(node)) = (is_stored(number), self.get(key)) {
            let message = format!("`{key}` is out of range: {number:e}");
            report.add(node.place, message, "write a number whose size is 1e-130 to below 1e126");
            return None;
        }
        Some(number)
    }
}

pub(crate) fn text<'n>(node: &'n Node, what: &str, report: &mut Report<'_>) -> Option<&'n str> {
    match &node.kind {
        Kind::Scalar(Scalar::Text { text, .. }) if !text.trim().is_empty() => Some(text),
        Kind::Scalar(Scalar::Text { .. }) => {
            report.add(node.place, format!("`{what}` is empty"), "give it a value, or delete the line");
            None
        }
        Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_) => {
            mismatch(node, what, "a text", report);
            None
        }
    }
}

/// Reads a boolean. The words `yes` and `off` and their kind are booleans too, as to W&B.
pub(crate) fn boolean(node: &Node, what: &str, report: &mut Report<'_>) -> Option<bool> {
    if let (Kind::Scalar(Scalar::Bool(value)), _) | (_, Some(value)) = (&node.kind, &node.wandb_bool()) {
        return Some(*value);
    }
    mismatch(node, what, "true or false", report);
    None
}

/// Reads a whole number. It may have a point or an exponent, because JSON Schema takes `10.0` for an integer.
pub(crate) fn integer(node: &Node, what: &str, range: RangeInclusive<i64>, report: &mut Report<'_>) -> Option<i64> {
    let Kind::Scalar(Scalar::Number(number)) = &node.kind else {
        mismatch(node, what, "a whole number", report);
        return None;
    };
    let real = number.as_f64().filter(|_| number.is_f64());
    if real.is_some_and(|real| real.fract() != 0.0) {
        let message = format!("`{what}` must be a whole number, and this is {number}");
        report.add(node.place, message, "write it without a fraction");
        return None;
    }
    let whole = real.filter(|real| real.abs() < EXACT_BELOW).map(|real| real as i64).or(number.as_i64());
    let found = whole.filter(|value| range.contains(value));
    if found.is_none() {
        let (first, last) = range.into_inner();
        let help = if last < i64::MAX {
            format!("write {first} to {last}")
        } else if number.as_f64().is_some_and(|number| number > 1.0) {
            "write a smaller number".to_owned()
        } else {
            format!("write {first} or more")
        };
        report.add(node.place, format!("`{what}` is out of range: {number}"), help);
    }
    found
}

/// Reads a list of texts. Numbers and booleans count as they are written.
pub(crate) fn texts(node: &Node, what: &str, report: &mut Report<'_>) -> Option<Vec<String>> {
    let Kind::List(nodes) = &node.kind else {
        let help = format!("write a list, for example `{what}: [\"first\", \"second\"]`");
        report.add(node.place, format!("`{what}` must be a list, and this is {}", node.describe()), help);
        return None;
    };
    let written: Vec<Option<String>> = nodes.iter().map(|node| written(node, what, report)).collect();
    written.into_iter().collect()
}

/// Returns a scalar as the person wrote it.
pub(crate) fn written(node: &Node, what: &str, report: &mut Report<'_>) -> Option<String> {
    match &node.kind {
        Kind::Scalar(Scalar::Text { text, .. }) => Some(text.clone()),
        Kind::Scalar(Scalar::Number(_) | Scalar::Bool(_)) => Some(report.written(node.place)),
        Kind::Scalar(Scalar::Null) | Kind::List(_) | Kind::Mapping(_) => {
            mismatch(node, what, "a text", report);
            None
        }
    }
}

/// Reads what names a secret.
pub(crate) fn secret(node: &Node, what: &str, report: &mut Report<'_>) -> Option<String> {
    let text = written(node, what, report)?;
    let Some((message, help)) = secret_source_problem(&text) else { return Some(text) };
    report.add(node.place, message, help);
    None
}

/// Reports that `node` is not `wanted`, with the likeliest slip as the help. A node that has a problem is not reported
/// again.
pub(crate) fn mismatch(node: &Node, what: &str, wanted: &str, report: &mut Report<'_>) {
    if report.has_problem_at(node.place) {
        return;
    }
    let help = match (&node.kind, wanted) {
        (Kind::Scalar(Scalar::Text { plain: false, text }), "a number" | "a whole number")
            if text.parse::<f64>().is_ok() =>
        {
            "remove the quotes".to_owned()
        }
        (Kind::Scalar(Scalar::Text { plain: true, text }), "true or false")
            if matches!(text.to_lowercase().as_str(), "yes" | "no" | "on" | "off") =>
        {
            format!("in YAML 1.2 `{text}` is a text; write true or false")
        }
        (Kind::Scalar(Scalar::Number(_) | Scalar::Bool(_)), "a text") => "put it in quotes".to_owned(),
        (Kind::Scalar(Scalar::Null), _) => format!("write {wanted} after `{what}:`, or delete the line"),
        (Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_), _) => format!("write {wanted}"),
    };
    report.add(node.place, format!("`{what}` must be {wanted}, and this is {}", node.describe()), help);
}
