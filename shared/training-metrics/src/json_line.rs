//! Reads lines that are JSON objects.

use serde_json::{Map, Value as Json};
use spotsweep_protocol::metric::Source;

use crate::data_set;
use crate::logged::Logged;
use crate::names::Named;
use crate::number::of_member;
use crate::object::{Nested, Scanner};
use crate::step;

/// The name that Katib gives to a line's time.
const TIMESTAMP: &str = "timestamp";

/// Returns the numbers of an object, including numbers in strings, as Katib writes them. The named metric may be in an
/// inner object. `None` if the line is no JSON object.
pub(crate) fn parse(line: &str, source: Source, named: &Named) -> Option<Logged> {
    if !line.trim_start().starts_with('{') {
        return None;
    }
    let object: Map<String, Json> =
        serde_json::from_str(line).or_else(|_| serde_json::from_str(&with_quoted_numbers(line))).ok()?;
    let mut found = of_object(&object, source);
    let set = object.iter().find_map(|(name, value)| data_set::of_member(name, value.as_str()?));
    set.into_iter().for_each(|set| named.in_set(set, &mut found));
    if named.name().is_some() && !found.values.iter().any(|value| named.is(&value.name)) {
        let mut nested = Nested::default();
        Scanner::default().scan(line, |names, value| nested.take(names, of_member(value), named));
        nested.add(&mut found, named, source, set);
    }
    Some(found)
}

/// Returns the numbers of a parsed object, except for those in inner objects.
pub(crate) fn of_object(object: &Map<String, Json>, source: Source) -> Logged {
    let mut found = Logged::default();
    for (name, value) in object.iter().filter(|(name, _)| *name != TIMESTAMP && !name.is_empty()) {
        match value {
            Json::Number(number) => found.add(name, number.as_f64().unwrap_or(f64::NAN), source),
            Json::String(text) => {
                if let Ok(number) = text.trim().parse() {
                    found.add(name, number, source);
                }
            }
            // Null means that a line has no value of a metric.
            Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => {}
        }
    }
    found.step = step::take(&mut found.values);
    found
}

/// Quotes the numbers that JSON does not have: Python's json module writes NaN and Infinity, and 1e309 is out of range.
pub(crate) fn with_quoted_numbers(line: &str) -> String {
    let mut quoted = String::with_capacity(line.len() + 16);
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let length = if first == '"' { string_length(rest) } else { rest.find(|c| !inner(c)).unwrap_or(rest.len()) };
        let (word, after) = rest.split_at(if length == 0 { first.len_utf8() } else { length });
        let is_other_number = first != '"' && word.parse::<f64>().is_ok_and(|number| !number.is_finite());
        quoted.push_str(&if is_other_number { format!("\"{word}\"") } else { word.to_owned() });
        rest = after;
    }
    quoted
}

/// Returns the length of the JSON string that a text begins with, quotes included.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}
