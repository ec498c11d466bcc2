//! Reads YAML as JSON. CloudFormation's tags are dropped: `!Ref Table` is read as `"Table"`.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// A list or mapping that is still open.
enum Open {
    List(Vec<Value>),
    Mapping(Map<String, Value>, Option<String>),
}

/// Reads one document. Numbers and booleans stay text, because templates write them in either form.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let (mut open, mut whole) = (Vec::new(), Value::Null);
    for next in Parser::new_from_str(text) {
        let (event, _) = next.map_err(|error| error.to_string())?;
        let done = match event {
            Event::Scalar(text, style, ..) => match (style, text.as_ref()) {
                (ScalarStyle::Plain, "" | "~" | "null") => Value::Null,
                _ => Value::String(text.into_owned()),
            },
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::Mapping(Map::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(list)) => Value::Array(list),
                Some(Open::Mapping(mapping, _)) => Value::Object(mapping),
                None => return Err("an end without a beginning".into()),
            },
            Event::Alias(_) => return Err("an alias".into()),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                continue;
            }
        };
        match open.last_mut() {
            Some(Open::List(list)) => list.push(done),
            Some(Open::Mapping(mapping, key)) => match (key.take(), done) {
                (Some(key), value) => drop(mapping.insert(key, value)),
                (None, Value::String(name)) => *key = Some(name),
                (None, other) => return Err(format!("{other} as a key")),
            },
            None => whole = done,
        }
    }
    Ok(whole)
}
