//! The values in a secret that is a JSON object.

use serde_json::Value;

/// Returns the texts in a JSON object: a training that gets the whole object takes its secrets from it.
pub(super) fn fields(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(object @ Value::Object(_)) = serde_json::from_str(text) {
        add_texts(object, &mut found);
    }
    found
}

/// The parser bounds the depth of what is nested.
fn add_texts(value: Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(values) => values.into_iter().for_each(|value| add_texts(value, found)),
        Value::Object(members) => members.into_iter().for_each(|(_, value)| add_texts(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_texts_in_an_object_are_hidden() {
        let object = r#"{"user": "me", "port": 5432, "more": {"keys": ["one", {"two": "three"}], "none": null}}"#;
        assert_eq!(fields(object), ["me", "one", "three"]);
        for text in ["plain", "\"text\"", "[\"text\"]", "7"] {
            assert!(fields(text).is_empty(), "{text} is hidden as a whole");
        }
    }
}
