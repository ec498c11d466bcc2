//! Reads objects in lines: JSON behind a prefix, and dictionaries as Python prints them, such as the lines of Hugging
//! Face's Trainer: `{'loss': 0.69, 'epoch': 1.0}`.

use std::ops::Range;

use spotsweep_protocol::metric::Source;

use crate::data_set;
use crate::logged::Logged;
use crate::names::Named;

/// The deepest nesting of objects that is read, and the longest name in them, in bytes.
const MOST_DEPTH: usize = 8;
const MOST_NAME_BYTES: usize = 256;

/// Scans the text of an object, which may have several lines. It only follows brackets and quotes, so the text need not
/// be valid JSON or Python.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scanner {
    open: Vec<Open>,
}

/// A bracket that has been opened and not closed.
#[derive(Debug, Clone)]
enum Open {
    /// An object, with the name of its newest member.
    Object(String),
    List,
}

impl Open {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Object(name) => Some(name).filter(|name| name.len() <= MOST_NAME_BYTES).map(String::as_str),
            Self::List => None,
        }
    }
}

impl Scanner {
    /// Scans a text, and returns where the outermost object ends in it. `take` gets each member: the names of the
    /// objects around it with its own name last, and the text that its value begins.
    pub(crate) fn scan(&mut self, text: &str, mut take: impl FnMut(&[&str], &str)) -> Option<usize> {
        let mut at = 0;
        while let Some(byte) = text.as_bytes().get(at) {
            at += 1;
            match byte {
                b'{' => self.open.push(Open::Object(String::new())),
                b'[' | b'(' => self.open.push(Open::List),
                b'}' | b']' | b')' => {
                    self.open.pop();
                    if self.open.is_empty() {
                        return Some(at);
                    }
                }
                b'"' | b'\'' => {
                    let end = at + quoted_length(&text[at..], *byte)?;
                    let name = &text[at..end];
                    at = end + 1;
                    let value = text[at..].trim_start().strip_prefix(':');
                    if let (Some(Open::Object(newest)), Some(value)) = (self.open.last_mut(), value) {
                        name.clone_into(newest);
                        at = text.len() - value.len();
                        self.member(value, &mut take);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn member(&self, value: &str, take: &mut impl FnMut(&[&str], &str)) {
        if self.open.len() > MOST_DEPTH {
            return;
        }
        // Members of objects in a list belong to one of many.
        if let Some(names) = self.open.iter().map(Open::name).collect::<Option<Vec<_>>>() {
            take(&names, value);
        }
    }

    /// Whether a line may continue what is open, because it begins like a member, an element or an end.
    pub(crate) fn may_go_on(&self, line: &str) -> bool {
        let line = line.trim_start();
        let is_in_list = matches!(self.open.last(), Some(Open::List));
        line.starts_with(['"', '\'', '}', ']', ')'])
            || is_in_list && line.starts_with(|c: char| "{[(-".contains(c) || c.is_ascii_digit())
    }
}

/// Returns the number of bytes before the quote that ends a text.
fn quoted_length(text: &str, quote: u8) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == quote && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

/// Returns the letters that a member's value begins with, in quotes or not.
pub(crate) fn word(value: &str) -> &str {
    let value = value.trim_start().trim_start_matches(['"', '\'']);
    &value[..value.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(value.len())]
}

/// Returns where the first object begins in a text: a brace that is followed by the quote of a name.
pub(crate) fn start(text: &str) -> Option<usize> {
    let is_start = |at: &usize| text[at + 1..].trim_start_matches(' ').starts_with(['"', '\'']);
    text.match_indices('{').map(|(at, _)| at).find(is_start)
}

/// Returns the ranges of the objects in a text. The last one may have no end.
pub(crate) fn all(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut end) = (Vec::new(), 0);
    while let Some(start) = start(&text[end..]).map(|at| end + at) {
        end = Scanner::default().scan(&text[start..], |_, _| ()).map_or(text.len(), |length| start + length);
        found.push(start..end);
    }
    found
}

/// The named metric in an object. Values with fewer objects around them take precedence.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nested {
    depth: usize,
    /// The values, and whether they are less reliable, as those of the training data are.
    values: Vec<(f64, bool)>,
}

impl Nested {
    /// Adds a member if it is the named metric: `acc`, or `acc` in `val` for `val_acc`.
    pub(crate) fn take(&mut self, names: &[&str], value: Option<f64>, named: &Named) {
        let first = || (0..names.len()).rev().find(|first| named.is(&names[*first..].join("/")));
        let is_better = self.values.is_empty() || names.len() <= self.depth;
        let Some((value, first)) = value.filter(|_| is_better).and_then(|value| Some((value, first()?))) else {
            return;
        };
        if names.len() < self.depth {
            self.values.clear();
        }
        self.depth = names.len();
        // Only the text around the name counts, because the name itself may be that of the training data or of the best
        // epoch.
        let is_own = |set| named.name().is_some_and(|name| data_set::is_of_own(name, set));
        let mut around = names[..first].iter().filter_map(|name| data_set::in_words(name));
        self.values.push((value, around.any(|set| data_set::is_less_reliable(set) && !is_own(set))));
    }

    /// Adds the values under the named metric's name. `set` is the data set that the whole object states.
    pub(crate) fn add(&self, found: &mut Logged, named: &Named, source: Source, set: Option<&str>) {
        let (Some(name), mut own) = (named.name(), Logged::default()) else { return };
        for (value, is_less_reliable) in &self.values {
            own.add(name, *value, if *is_less_reliable { Source::OfTraining } else { source });
        }
        set.into_iter().for_each(|set| named.in_set(set, &mut own));
        found.values.append(&mut own.values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(lines: &[&str]) -> (Vec<String>, Option<usize>) {
        let (mut scanner, mut found, mut end) = (Scanner::default(), Vec::new(), None);
        for line in lines {
            end = scanner.scan(line, |names, value| {
                let value: String = value.trim_start().chars().take_while(|c| !",]}".contains(*c)).collect();
                found.push(format!("{}={value}", names.join(".")));
            });
        }
        (found, end)
    }

    #[test]
    fn members_have_the_names_around_them() {
        let of = |lines: &[&str], expected: &[&str], end| {
            let found = members(lines);
            assert_eq!(found, (expected.iter().map(|text| (*text).to_owned()).collect(), end), "{lines:?}");
        };
        of(&["{'loss': '0.5', \"it's\": 1} x"], &["loss='0.5'", "it's=1"], Some(26));
        of(
            &[r#"{"a\"b": 1, "c": {"d": 2}, "e": [{"f": 3}], "g": (1, 2)}"#],
            &["a\\\"b=1", "c={\"d\": 2", "c.d=2", "e=[{\"f\": 3", "g=(1"],
            Some(56),
        );
        of(&["{", "  \"a\": {", "    \"b\": 1", "  },", "  \"c\": 2", "}"], &["a={", "a.b=1", "c=2"], Some(1));
        of(&["{'a': tensor(0.5, device='cuda:0'), 'b': 1"], &["a=tensor(0.5", "b=1"], None);
        of(&["{'a': 1, 'b"], &["a=1"], None);
    }

    #[test]
    fn an_object_begins_with_a_name() {
        assert_eq!(start("x {'a': 1}"), Some(2));
        assert_eq!(start("f{x} { \"a\": 1}"), Some(5));
        for none in ["{a: 1}", "{}", "{", "{1: 2}"] {
            assert_eq!(start(none), None, "{none}");
        }
    }
}
