//! What a scalar means: the YAML 1.2 core schema, and nothing of YAML 1.1.

use serde_json::Number;

/// A scalar with its type resolved.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Number(Number),
    /// `plain` if written without quotes.
    Text {
        text: String,
        plain: bool,
    },
}

/// A message and how to mend it.
pub(crate) type Refusal = (String, String);

/// Resolves a plain (unquoted) scalar by <https://yaml.org/spec/1.2.2/#1032-tag-resolution>.
pub(crate) fn resolve_plain(text: &str) -> Result<Scalar, Refusal> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Scalar::Null),
        "true" | "True" | "TRUE" => return Ok(Scalar::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Scalar::Bool(false)),
        _ => {}
    }
    match number(text) {
        Some(number) => number.map(Scalar::Number),
        None => Ok(Scalar::Text { text: text.to_owned(), plain: true }),
    }
}

/// Resolves a scalar with an explicit core tag such as `!!str`.
pub(crate) fn resolve_tagged(tag: &str, text: &str) -> Result<Scalar, Refusal> {
    let resolved = match tag {
        "str" => return Ok(Scalar::Text { text: text.to_owned(), plain: false }),
        "null" | "bool" | "int" | "float" => resolve_plain(text)?,
        _ => return Err(unknown_tag(tag)),
    };
    match (tag, &resolved) {
        ("null", Scalar::Null) | ("bool", Scalar::Bool(_)) => Ok(resolved),
        ("int", Scalar::Number(number)) if !number.is_f64() => Ok(resolved),
        ("float", Scalar::Number(number)) => {
            Ok(number.as_f64().and_then(Number::from_f64).map_or(Scalar::Null, Scalar::Number))
        }
        _ => Err((format!("`{text}` is not a YAML {tag}"), format!("remove the tag `!!{tag}` or correct the value"))),
    }
}

pub(crate) fn unknown_tag(tag: &str) -> Refusal {
    let tag = tag.replace("tag:yaml.org,2002:!", "!!").replace("tag:yaml.org,2002:", "!!");
    (
        format!("the YAML tag `{tag}` is not supported"),
        "remove the tag; plain YAML lists, mappings, texts, numbers and booleans are enough".to_owned(),
    )
}

/// `None` where `text` does not look like a number at all.
fn number(text: &str) -> Option<Result<Number, Refusal>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(Err(not_finite(text)));
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(integer(text, text, 10));
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix)
            && !digits.is_empty()
            && digits.chars().all(|digit| digit.is_digit(radix))
        {
            return Some(integer(text, digits, radix));
        }
    }
    is_float(unsigned).then(|| {
        let parsed: Option<f64> = text.parse().ok();
        parsed.and_then(Number::from_f64).ok_or_else(|| not_finite(text))
    })
}

fn integer(text: &str, digits: &str, radix: u32) -> Result<Number, Refusal> {
    let signed = i64::from_str_radix(digits, radix).map(Number::from);
    signed.or_else(|_| u64::from_str_radix(digits.trim_start_matches('+'), radix).map(Number::from)).map_err(|_| {
        (format!("the integer `{text}` does not fit into 64 bits"), "put it in quotes to pass it on as text".to_owned())
    })
}

fn not_finite(text: &str) -> Refusal {
    (
        format!("`{text}` is not a finite number"),
        "write a finite number, or put it in quotes to pass it on as text".to_owned(),
    )
}

/// `(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(unsigned: &str) -> bool {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    has_digits && digits(whole) && digits(fraction) && exponent.is_none_or(|part| !part.is_empty() && digits(part))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        let cases = [
            ("1e-4", "0.0001"),
            ("1.0", "1.0"),
            ("1.", "1.0"),
            (".5", "0.5"),
            ("-.5e1", "-5.0"),
            ("1", "1"),
            ("+7", "7"),
            ("-0", "0"),
            ("010", "10"),
            ("0o10", "8"),
            ("0xff", "255"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("yes", "text"),
            ("on", "text"),
            ("1_000", "text"),
            ("12:30", "text"),
            ("1e", "text"),
            (".", "text"),
            ("-", "text"),
            ("0x", "text"),
            ("1.2.3", "text"),
            ("nan", "text"),
            ("TRUE", "true"),
            ("~", "null"),
        ];
        for (written, expected) in cases {
            let resolved = match resolve_plain(written).unwrap() {
                Scalar::Null => "null".to_owned(),
                Scalar::Bool(value) => value.to_string(),
                Scalar::Number(number) => number.to_string(),
                Scalar::Text { text, plain: true } if text == written => "text".to_owned(),
                other @ Scalar::Text { .. } => format!("{other:?}"),
            };
            assert_eq!(resolved, expected, "{written}");
        }
    }

    #[test]
    fn what_json_cannot_hold_is_refused() {
        for written in [".inf", "-.INF", ".nan", "1e999", "-1e999", "18446744073709551616", "-9223372036854775809"] {
            assert!(resolve_plain(written).is_err(), "{written}");
        }
    }
}
