//! Writes values as Python's `str()` does, because a script's `argparse` gets them from W&B in that form.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Returns `str(value)`: texts unchanged, `True`, `None`, `1e-05`, `[1, 'a']`.
pub fn display(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => repr(value),
    }
}

fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number_repr(number),
        Value::String(text) => text_repr(text),
        Value::Array(values) => format!("[{}]", values.iter().map(repr).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let pairs: Vec<String> =
                entries.iter().map(|(key, value)| format!("{}: {}", text_repr(key), repr(value))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

/// Returns Python's `repr(float)`: the shortest digits that read back as the number, with an exponent below 1e-4 and
/// from 1e16.
fn number_repr(number: &Number) -> String {
    let Some(value) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    // `{:e}` also gives the shortest digits: d.ddde±x.
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Returns Python's `repr(str)`: in single quotes, unless the text has single quotes and no double quotes.
fn text_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut written = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            _ if c == quote => {
                written.push('\\');
                written.push(c);
            }
            _ if c.is_ascii_control() => {
                // Writing to a String cannot fail.
                let _ = write!(written, "\\x{:02x}", c as u32);
            }
            _ => written.push(c),
        }
    }
    written.push(quote);
    written
}

/// Returns `json.dumps(value)`: a space after `,` and `:`, floats as `repr` writes them, and only ASCII.
pub fn dumps(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) => number_repr(number),
        Value::String(text) => ascii_json(text),
        Value::Array(values) => format!("[{}]", values.iter().map(dumps).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let pairs: Vec<String> =
                entries.iter().map(|(key, value)| format!("{}: {}", ascii_json(key), dumps(value))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

fn ascii_json(text: &str) -> String {
    let mut written = String::new();
    for c in Value::from(text).to_string().chars() {
        // U+007F is ASCII, but Python escapes it.
        if c.is_ascii() && c != '\u{7f}' {
            written.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(written, "\\u{unit:04x}");
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The expected values come from CPython 3.12.
    #[test]
    fn values_read_as_python_writes_them() {
        let cases = [
            (json!(0.1), "0.1"),
            (json!(1.0), "1.0"),
            (json!(1), "1"),
            (json!(-0.0), "-0.0"),
            (json!(1e-4), "0.0001"),
            (json!(1e-5), "1e-05"),
            (json!(1.5e-7), "1.5e-07"),
            (json!(1e15), "1000000000000000.0"),
            (json!(1e16), "1e+16"),
            (json!(1.25e100), "1.25e+100"),
            (json!(0.30000000000000004), "0.30000000000000004"),
            (json!("it's"), "it's"),
            (json!(["it's", "a\"b", "it's \"b\"", "x\ny"]), r#"["it's", 'a"b', 'it\'s "b"', 'x\ny']"#),
            (json!({"a": null, "b": [true, false]}), "{'a': None, 'b': [True, False]}"),
            (json!([]), "[]"),
        ];
        for (value, expected) in cases {
            assert_eq!(display(&value), expected, "{value}");
        }
    }

    /// The expected texts come from CPython 3.12.
    #[test]
    fn json_reads_as_python_writes_it() {
        let cases = [
            (
                json!({"lr": 1e-5, "on": true, "none": null, "w": [1, 2.0, []]}),
                r#"{"lr": 1e-05, "on": true, "none": null, "w": [1, 2.0, []]}"#,
            ),
            (json!("é이\u{1f600}\u{1}\u{7f}\"\n"), "\"\\u00e9\\uc774\\ud83d\\ude00\\u0001\\u007f\\\"\\n\""),
        ];
        for (value, expected) in cases {
            assert_eq!(dumps(&value), expected, "{value}");
        }
    }
}
