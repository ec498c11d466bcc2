//! Objects in lines: JSON behind a prefix, and dictionaries as Python prints them, such as the lines of Hugging Face's
//! Trainer: `{'loss': 0.69, 'epoch': 1.0}`.

use std::ops::Range;

use spotsweep_protocol::metric::Source;

use crate::data_set;
use crate::logged::Logged;
use crate::names::Named;

/// Objects within each other that are looked into, and the longest name there, in bytes.
const MOST_DEPTH: usize = 8;
const MOST_NAME_BYTES: usize = 256;

/// Goes through the text of an object, which may have several lines. Brackets and quotes are enough to do so: it need be
/// neither valid JSON nor valid Python.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scanner {
    open: Vec<Open>,
}

/// What has begun and not ended.
#[derive(Debug, Clone)]
enum Open {
    /// With the name of its newest member.
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
    /// Takes a text in. Where the outermost object ends in it, that is where. `take` gets each member: the names of the
    /// objects around it, its own name last, and the text that its value begins.
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
        // Members of what is in a list are of one of many.
        if let Some(names) = self.open.iter().map(Open::name).collect::<Option<Vec<_>>>() {
            take(&names, value);
        }
    }

    /// Whether a line may go on with what is open: it begins as a member, an element or an end does.
    pub(crate) fn may_go_on(&self, line: &str) -> bool {
        let line = line.trim_start();
        let is_in_list = matches!(self.open.last(), Some(Open::List));
        line.starts_with(['"', '\'', '}', ']', ')'])
            || is_in_list && line.starts_with(|c: char| "{[(-".contains(c) || c.is_ascii_digit())
    }
}

/// Bytes before the quote that ends a text.
fn quoted_length(text: &str, quote: u8) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == quote && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

/// The letters that a member's value begins with, in quotes or not.
pub(crate) fn word(value: &str) -> &str {
    let value = value.trim_start().trim_start_matches(['"', '\'']);
    &value[..value.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(value.len())]
}

/// Where the first object begins in a text: a brace, with the quote of a name behind it.
pub(crate) fn start(text: &str) -> Option<usize> {
    let is_start = |at: &usize| text[at + 1..].trim_start_matches(' ').starts_with(['"', '\'']);
    text.match_indices('{').map(|(at, _)| at).find(is_start)
}

/// Where objects are in a text. The last one may have no end.
pub(crate) fn all(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut end) = (Vec::new(), 0);
    while let Some(start) = start(&text[end..]).map(|at| end + at) {
        end = Scanner::default().scan(&text[start..], |_, _| ()).map_or(text.len(), |length| start + length);
        found.push(start..end);
    }
    found
}

/// How the metric that the sweep file names is found in an object: the fewer objects are around it, the better.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nested {
    depth: usize,
    /// With whether they are less reliable, as those of the training data are.
    values: Vec<(f64, bool)>,
}

impl Nested {
    /// Takes a member in, if it is that metric: `acc`, or `acc` in `val` for `val_acc`.
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
        // What is around its name: the name itself may be that of the training data, or of the best epoch.
        let is_own = |set| named.name().is_some_and(|name| data_set::is_of_own(name, set));
        let mut around = names[..first].iter().filter_map(|name| data_set::in_words(name));
        self.values.push((value, around.any(|set| data_set::is_less_reliable(set) && !is_own(set))));
    }

    /// Adds its values under this name. `set` is the data set that the whole object gives.
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
