//! Parses the sweep file into a tree whose nodes have the places where they were written.
//!
//! Size, depth and alias expansion are bounded, so a hostile file costs no more than any other.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::layout::{self, Blanks};
pub(crate) use super::node::{Entry, Kind, Node, to_json_map};
use super::node::{repeated, weight};
use super::problem::{Place, Report};
use super::scalar::{Scalar, is_text_to_wandb, resolve_plain, resolve_tagged, unknown_tag};
use super::secret_source::secret_source_problem;
use super::slips::{self, Slip};

/// Top-level keys for people. Their values are texts, whatever they look like.
const LABELS: [&str; 6] = ["name", "description", "project", "entity", "apiVersion", "kind"];
/// The deepest nesting of lists and mappings.
const MAX_DEPTH: usize = 64;
/// The most scalars, lists and mappings after aliases are expanded. A node and all that is made from it take up to 360
/// bytes.
const MAX_NODES: usize = 1_000_000;
/// The most bytes of text that aliases may repeat.
const MAX_ALIAS_BYTES: usize = 1 << 20;

/// The part of a file that could be parsed.
pub(crate) enum Parsed {
    /// The whole file; `None` if it is empty.
    Whole(Option<Node>),
    /// The parser stopped, and the report says where and why. These are the complete entries of the top level.
    Broken(Vec<Entry>),
}

pub(crate) fn parse(text: &str, report: &mut Report<'_>) -> Parsed {
    if let Some(parsed) = build(text, None, report) {
        return parsed;
    }
    report.forget();
    let (text, blanks) = layout::indented(text);
    build(&text, Some(&blanks), report).unwrap_or_else(|| Parsed::Broken(Vec::new()))
}

/// Builds the tree. `None` if a line is too far left in brackets or quotes and no `blanks` have been added yet.
fn build(text: &str, blanks: Option<&Blanks>, report: &mut Report<'_>) -> Option<Parsed> {
    let (stack, root, anchors) = (Vec::new(), None, HashMap::new());
    let mut builder = Builder { report, blanks, stack, root, anchors, nodes: 0, aliased: 0 };
    match builder.run(text) {
        Ok(()) => Some(Parsed::Whole(builder.root)),
        Err(Stop::Outdented) => None,
        Err(Stop::Reported) => Some(Parsed::Broken(builder.complete_entries())),
    }
}

/// Why the tree is not complete.
enum Stop {
    /// The report has the reason.
    Reported,
    /// A line is too far left, and blanks before it would correct that.
    Outdented,
}

struct Builder<'r, 'a> {
    /// The blanks added to lines, which are subtracted from places.
    blanks: Option<&'r Blanks>,
    report: &'r mut Report<'a>,
    stack: Vec<Frame>,
    root: Option<Node>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    aliased: usize,
}

/// A list or mapping that is still open.
struct Frame {
    place: Place,
    anchor: usize,
    open: Open,
}

enum Open {
    List(Vec<Node>),
    /// `known` has the index in `entries` of each key so far.
    Mapping {
        entries: Vec<Entry>,
        known: HashMap<String, usize>,
        merged: Vec<Node>,
        key: Option<Key>,
    },
}

enum Key {
    Named(String, Place),
    /// The key already exists, as the entry with this index.
    Repeated(usize, Place),
    /// `<<`, the merge key of YAML 1.1, which existing sweep files use.
    Merge,
    /// The key has been reported already, and its value is dropped.
    Unusable,
}

impl Builder<'_, '_> {
    fn run(&mut self, text: &str) -> Result<(), Stop> {
        let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(text);
        let mut documents = 0;
        while let Some(next) = parser.next_event() {
            let (event, span) = next.map_err(|error| self.syntax_error(&error))?;
            match event {
                Event::DocumentStart(_) => documents += 1,
                Event::Alias(_) | Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..)
                    if documents > 1 =>
                {
                    let help = "keep one sweep per file; delete the `---` line or split the file";
                    self.report.add(self.place(&span), "a second YAML document starts here", help);
                    return Err(Stop::Reported);
                }
                Event::Scalar(text, style, anchor, tag) => {
                    let node = self.scalar(&text, style, tag.as_deref(), &span);
                    self.finish(node, anchor)?;
                }
                Event::Alias(anchor) => self.alias(anchor, &span)?,
                Event::SequenceStart(anchor, tag) => {
                    self.open(&span, anchor, tag.as_deref(), "seq", Open::List(Vec::new()))?;
                }
                Event::MappingStart(anchor, tag) => {
                    let (entries, known, merged) = (Vec::new(), HashMap::new(), Vec::new());
                    self.open(
                        &span,
                        anchor,
                        tag.as_deref(),
                        "map",
                        Open::Mapping { entries, known, merged, key: None },
                    )?;
                }
                Event::SequenceEnd | Event::MappingEnd => self.close(&span)?,
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            }
        }
        Ok(())
    }

    /// Returns the complete entries of the top level: those that another key follows. An error may have cut the last
    /// one short.
    fn complete_entries(self) -> Vec<Entry> {
        let (mut entries, is_followed) = match (self.stack.into_iter().next(), self.root) {
            (Some(Frame { open: Open::Mapping { entries, key, .. }, .. }), _) => (entries, key.is_some()),
            (None, Some(Node { kind: Kind::Mapping(entries), .. })) => (entries, false),
            (Some(Frame { open: Open::List(_), .. }), _) | (None, _) => return Vec::new(),
        };
        if !is_followed {
            entries.pop();
        }
        entries
    }

    fn syntax_error(&mut self, error: &ScanError) -> Stop {
        if self.blanks.is_none() && layout::is_outdented(error) {
            return Stop::Outdented;
        }
        let info = error.info();
        let place = Place { width: 1, ..self.place(&Span::empty(*error.marker())) };
        self.report.hide_unread(place.line);
        if info.contains("recursion limit") {
            self.report.add(place, too_deep(), "flatten the structure");
            return Stop::Reported;
        }
        if let Some(Slip { place, message, help }) = slips::near(info, place.line, |number| self.report.line(number)) {
            self.report.hide_unread(place.line);
            self.report.add(place, message, format!("{help}; what is below is checked after that"));
            return Stop::Reported;
        }
        let help = if info.contains("tab") {
            "indent with spaces; YAML does not allow tabs"
        } else if info.contains("mapping values are not allowed") {
            "put a text that contains `: ` or ends with `:` in quotes, and give keys of one mapping the same indentation"
        } else if info.contains("unknown anchor") {
            "define the anchor (`&name`) above its first use, or put a text that starts with `*` in quotes"
        } else {
            "check indentation, brackets and quotes at and above this line"
        };
        let help = format!("{help}; what is below is checked after that");
        self.report.add(place, format!("not valid YAML: {info}"), help);
        Stop::Reported
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: &Span) -> Node {
        let place = self.place(span);
        let until = self.place(&Span::empty(span.end));
        self.report.hide(text, place, until);
        if self.is_secret() && secret_source_problem(text).is_some() {
            self.report.hide_all(text, place, until);
        }
        let resolved = match tag {
            Some(tag) if tag.is_yaml_core_schema() => resolve_tagged(&tag.suffix, text),
            Some(tag) => Err(unknown_tag(&tag.to_string())),
            None if style == ScalarStyle::Plain => resolve_plain(text),
            None => Ok(Scalar::Text { text: text.to_owned(), plain: false }),
        };
        if text.contains('\0') {
            let help = "remove it; neither arguments nor environment variables can carry it";
            self.report.add(place, "this text has the character U+0000", help);
        }
        let scalar = resolved.unwrap_or_else(|(message, help)| {
            if self.is_as_written() {
                return Scalar::Text { text: text.to_owned(), plain: true };
            }
            self.report.add(place, message, help);
            Scalar::Null
        });
        let text_to_wandb = (tag.is_none() && is_text_to_wandb(&scalar, text)).then(|| text.into());
        Node { place, kind: Kind::Scalar(scalar), text_to_wandb }
    }

    /// Whether the next value is a text as written, whatever it looks like: a label, or a value in `spotsweep: {tags:
    /// …}`.
    fn is_as_written(&self) -> bool {
        self.is_at(0, &LABELS) || self.is_at(0, &["spotsweep"]) && self.is_at(1, &["tags"])
    }

    /// Whether the next value names a secret. It may be the secret itself, which no problem shows.
    fn is_secret(&self) -> bool {
        let is_token = self.is_at(1, &["code"]) && self.is_at(2, &["token"]);
        self.is_at(0, &["spotsweep"]) && (is_token || self.is_at(1, &["secrets", "secret", "token"]))
    }

    /// Whether the next value belongs to one of these keys of the mapping at this depth.
    fn is_at(&self, depth: usize, names: &[&str]) -> bool {
        match self.stack.get(depth) {
            Some(Frame { open: Open::Mapping { key: Some(Key::Named(key, _)), .. }, .. }) => {
                names.contains(&key.as_str())
            }
            Some(_) | None => false,
        }
    }

    fn alias(&mut self, anchor: usize, span: &Span) -> Result<(), Stop> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            let help = "an anchor can be used after its value is complete; write the value out";
            self.report.add(self.place(span), "this alias is inside the value that it refers to", help);
            return Err(Stop::Reported);
        };
        self.copied(&node, self.place(span))?;
        self.finish(node, 0)
    }

    /// Returns the place of `span` in the file, without the blanks added to its line.
    fn place(&self, span: &Span) -> Place {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX - 1);
        let width = if span.start.line() == span.end.line() {
            count(span.end.col().saturating_sub(span.start.col()))
        } else {
            u32::MAX
        };
        let line = count(span.start.line()).max(1);
        let added = self.blanks.and_then(|blanks| blanks.get(&line)).copied().unwrap_or(0);
        Place { line, column: count(span.start.col()).saturating_sub(added) + 1, width: width.max(1) }
    }

    /// Counts the nodes and the text that a copy adds to the node itself.
    fn copied(&mut self, node: &Node, place: Place) -> Result<(), Stop> {
        let (nodes, bytes) = weight(node);
        self.nodes += nodes - 1;
        self.aliased += bytes;
        if self.nodes > MAX_NODES || self.aliased > MAX_ALIAS_BYTES {
            let message = format!(
                "aliases expand to more than {MAX_NODES} values or {} MiB of text, the most a sweep file may have",
                MAX_ALIAS_BYTES >> 20
            );
            self.report.add(place, message, "write the values out, or sweep over them with `parameters`");
            return Err(Stop::Reported);
        }
        Ok(())
    }

    fn open(&mut self, span: &Span, anchor: usize, tag: Option<&Tag>, own: &str, open: Open) -> Result<(), Stop> {
        let place = self.place(span);
        if let Some(tag) = tag
            && !(tag.is_yaml_core_schema() && tag.suffix == own)
        {
            let (message, help) = unknown_tag(&tag.to_string());
            self.report.add(place, message, help);
        }
        if self.stack.len() >= MAX_DEPTH {
            self.report.add(place, too_deep(), "flatten the structure");
            return Err(Stop::Reported);
        }
        self.stack.push(Frame { place, anchor, open });
        Ok(())
    }

    fn close(&mut self, span: &Span) -> Result<(), Stop> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let mut place = frame.place;
        let end = self.place(span);
        if end.line == place.line {
            place.width = (end.column + end.width).saturating_sub(place.column).max(1);
        }
        let kind = match frame.open {
            Open::List(nodes) => Kind::List(nodes),
            Open::Mapping { entries, merged, .. } => Kind::Mapping(self.merge(entries, merged)),
        };
        self.finish(Node { place, kind, text_to_wandb: None }, frame.anchor)
    }

    /// Merges mappings. Own keys override merged ones, and earlier merges override later ones
    /// (<https://yaml.org/type/merge.html>).
    fn merge(&mut self, mut entries: Vec<Entry>, merged: Vec<Node>) -> Vec<Entry> {
        if merged.is_empty() {
            return entries;
        }
        let mut known: HashSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
        for node in merged {
            let sources = match node.kind {
                Kind::List(nodes) => nodes,
                Kind::Scalar(_) | Kind::Mapping(_) => vec![node],
            };
            for source in sources {
                let Kind::Mapping(more) = source.kind else {
                    let message = format!("`<<` merges mappings, and this is {}", source.describe());
                    self.report.add(source.place, message, "write `<<: *name`, with `&name` before a mapping");
                    continue;
                };
                entries.extend(more.into_iter().filter(|entry| known.insert(entry.key.clone())));
            }
        }
        entries
    }

    /// Adds a complete node to the list or mapping around it.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Stop> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            let message = format!("more than {MAX_NODES} values, the most a sweep file may have");
            self.report.add(
                node.place,
                message,
                "describe the trials with `method` and `parameters` instead of listing them",
            );
            return Err(Stop::Reported);
        }
        if anchor != 0 {
            self.copied(&node, node.place)?;
            self.anchors.insert(anchor, node.clone());
        }
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut frame.open {
            Open::List(nodes) => nodes.push(node),
            Open::Mapping { entries, merged, key: slot, known } => match slot.take() {
                None => *slot = Some(key(&node, known, self.report)),
                Some(Key::Named(key, key_place)) => {
                    known.insert(key.clone(), entries.len());
                    entries.push(Entry { key, key_place, value: node });
                }
                Some(Key::Repeated(index, place)) => repeated(&entries[index], &node, place, self.report),
                Some(Key::Merge) => merged.push(node),
                Some(Key::Unusable) => {}
            },
        }
        Ok(())
    }
}

fn key(node: &Node, known: &HashMap<String, usize>, report: &mut Report<'_>) -> Key {
    let name = match &node.kind {
        Kind::Scalar(Scalar::Text { text, plain: true }) if text == "<<" => return Key::Merge,
        Kind::Scalar(Scalar::Text { text, .. }) => {
            if let Some(value) = node.wandb_bool() {
                let message = format!("the key `{text}` is a text here, and `{value}` to W&B");
                report.warn(node.place, message, "put it in quotes");
            }
            text.clone()
        }
        Kind::Scalar(Scalar::Bool(_) | Scalar::Number(_)) => report.written(node.place),
        Kind::Scalar(Scalar::Null) | Kind::List(_) | Kind::Mapping(_) => {
            report.add(
                node.place,
                format!("{} cannot be a key", node.describe()),
                "a key is one word followed by `: `",
            );
            return Key::Unusable;
        }
    };
    match known.get(&name) {
        Some(index) => Key::Repeated(*index, node.place),
        None => Key::Named(name, node.place),
    }
}

fn too_deep() -> String {
    format!("lists and mappings are nested deeper than {MAX_DEPTH} levels, the most a sweep file may have")
}
