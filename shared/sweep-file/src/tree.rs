//! The sweep file as a tree in which every part knows where it was written.
//!
//! Parsing is bounded in size, depth and alias expansion, so a hostile file costs no more than an honest one.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::{Map, Value};

use super::problem::{Place, Report};
use super::scalar::{Scalar, resolve_plain, resolve_tagged, unknown_tag};

/// Nesting of lists and mappings.
const MAX_DEPTH: usize = 64;
/// Scalars, lists and mappings, after aliases are expanded. With what is made of it, a node costs up to 360 bytes.
const MAX_NODES: usize = 1_000_000;
/// Text that aliases may repeat, in bytes.
const MAX_ALIAS_BYTES: usize = 1 << 20;

/// Part of the file.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Scalar(Scalar),
    List(Vec<Node>),
    Mapping(Vec<Entry>),
}

/// One `key: value`.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) value: Node,
}

impl Node {
    /// How messages call this node.
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

    pub(crate) fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Scalar(Scalar::Null) => Value::Null,
            Kind::Scalar(Scalar::Bool(value)) => Value::Bool(*value),
            Kind::Scalar(Scalar::Number(number)) => Value::Number(number.clone()),
            Kind::Scalar(Scalar::Text { text, .. }) => Value::String(text.clone()),
            Kind::List(nodes) => Value::Array(nodes.iter().map(Self::to_json).collect()),
            Kind::Mapping(entries) => Value::Object(to_json_map(entries)),
        }
    }
}

pub(crate) fn to_json_map(entries: &[Entry]) -> Map<String, Value> {
    entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect()
}

/// What could be parsed of a file.
pub(crate) enum Parsed {
    /// All of it; `None` where it is empty.
    Whole(Option<Node>),
    /// It breaks off, and the report says where and why. The entries of its top level that were complete before.
    Broken(Vec<Entry>),
}

/// Parses one YAML document.
pub(crate) fn parse(text: &str, report: &mut Report<'_>) -> Parsed {
    let mut builder = Builder { report, stack: Vec::new(), root: None, anchors: HashMap::new(), nodes: 0, aliased: 0 };
    match builder.run(text) {
        Ok(()) => Parsed::Whole(builder.root),
        Err(Stop) => Parsed::Broken(builder.complete_entries()),
    }
}

/// The report has the reason.
struct Stop;

struct Builder<'r, 'a> {
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
    Mapping { entries: Vec<Entry>, lines: HashMap<String, u32>, merged: Vec<Node>, key: Option<Key> },
}

enum Key {
    Named(String, Place),
    /// `<<`: YAML 1.1's merge key, which sweep files in the field use.
    Merge,
    /// Reported already; its value is dropped.
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
                    self.report.add(place(&span), "a second YAML document starts here", help);
                    return Err(Stop);
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
                    let (entries, lines, merged) = (Vec::new(), HashMap::new(), Vec::new());
                    self.open(
                        &span,
                        anchor,
                        tag.as_deref(),
                        "map",
                        Open::Mapping { entries, lines, merged, key: None },
                    )?;
                }
                Event::SequenceEnd | Event::MappingEnd => self.close(&span)?,
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            }
        }
        Ok(())
    }

    /// Entries of the top level that another key follows. The last one may have been cut short by what broke the file.
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
        let column = u32::try_from(error.marker().col()).unwrap_or(u32::MAX - 1) + 1;
        let line = u32::try_from(error.marker().line()).unwrap_or(u32::MAX).max(1);
        let info = error.info();
        let place = Place { line, column, width: 1 };
        if info.contains("recursion limit") {
            self.report.add(place, too_deep(), "flatten the structure");
            return Stop;
        }
        let help = if info.contains("tab") {
            "indent with spaces; YAML does not allow tabs"
        } else if info.contains("mapping values are not allowed") {
            "put a text that contains `: ` in quotes, and give keys of one mapping the same indentation"
        } else if info.contains("unknown anchor") {
            "define the anchor (`&name`) above its first use, or put a text that starts with `*` in quotes"
        } else {
            "check indentation, brackets and quotes at and above this line"
        };
        let help = format!("{help}; what stands below is looked at after that");
        self.report.add(place, format!("not valid YAML: {info}"), help);
        Stop
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: &Span) -> Node {
        let place = place(span);
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
            self.report.add(place, message, help);
            Scalar::Null
        });
        Node { place, kind: Kind::Scalar(scalar) }
    }

    fn alias(&mut self, anchor: usize, span: &Span) -> Result<(), Stop> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            let help = "an anchor can be used after its value is complete; write the value out";
            self.report.add(place(span), "this alias stands inside the value that it refers to", help);
            return Err(Stop);
        };
        self.copied(&node, place(span))?;
        self.finish(node, 0)
    }

    /// Counts what a copy adds beyond the node itself.
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
            return Err(Stop);
        }
        Ok(())
    }

    fn open(&mut self, span: &Span, anchor: usize, tag: Option<&Tag>, own: &str, open: Open) -> Result<(), Stop> {
        let place = place(span);
        if let Some(tag) = tag
            && !(tag.is_yaml_core_schema() && tag.suffix == own)
        {
            let (message, help) = unknown_tag(&tag.to_string());
            self.report.add(place, message, help);
        }
        if self.stack.len() >= MAX_DEPTH {
            self.report.add(place, too_deep(), "flatten the structure");
            return Err(Stop);
        }
        self.stack.push(Frame { place, anchor, open });
        Ok(())
    }

    fn close(&mut self, span: &Span) -> Result<(), Stop> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let mut place = frame.place;
        let end = self::place(span);
        if end.line == place.line {
            place.width = (end.column + end.width).saturating_sub(place.column).max(1);
        }
        let kind = match frame.open {
            Open::List(nodes) => Kind::List(nodes),
            Open::Mapping { entries, merged, .. } => Kind::Mapping(self.merge(entries, merged)),
        };
        self.finish(Node { place, kind }, frame.anchor)
    }

    /// Own keys win over merged ones, earlier merges over later ones (<https://yaml.org/type/merge.html>).
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

    /// Hands a complete node to whatever is open around it.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Stop> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            let message = format!("more than {MAX_NODES} values, the most a sweep file may have");
            self.report.add(
                node.place,
                message,
                "describe the trials with `method` and `parameters` instead of listing them",
            );
            return Err(Stop);
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
            Open::Mapping { entries, merged, key: slot, lines } => match slot.take() {
                None => *slot = Some(key(&node, lines, self.report)),
                Some(Key::Named(key, key_place)) => entries.push(Entry { key, key_place, value: node }),
                Some(Key::Merge) => merged.push(node),
                Some(Key::Unusable) => {}
            },
        }
        Ok(())
    }
}

fn key(node: &Node, lines: &mut HashMap<String, u32>, report: &mut Report<'_>) -> Key {
    let name = match &node.kind {
        Kind::Scalar(Scalar::Text { text, plain: true }) if text == "<<" => return Key::Merge,
        Kind::Scalar(Scalar::Text { text, .. }) => text.clone(),
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
    if let Some(line) = lines.get(&name) {
        let message = format!("the key `{name}` is here a second time; it stands on line {line} already");
        report.add(node.place, message, "keep one of the two");
        return Key::Unusable;
    }
    lines.insert(name.clone(), node.place.line);
    Key::Named(name, node.place)
}

fn too_deep() -> String {
    format!("lists and mappings are nested deeper than {MAX_DEPTH} levels, the most a sweep file may have")
}

/// Nodes and bytes of text in a subtree.
fn weight(node: &Node) -> (usize, usize) {
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

fn place(span: &Span) -> Place {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX - 1);
    let width = if span.start.line() == span.end.line() {
        count(span.end.col().saturating_sub(span.start.col()))
    } else {
        u32::MAX
    };
    Place { line: count(span.start.line()).max(1), column: count(span.start.col()) + 1, width: width.max(1) }
}
