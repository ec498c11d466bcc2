//! Resolves scalars by the YAML 1.2 core schema, with the numbers that W&B reads by YAML 1.1.
//!
//! W&B reads files with PyYAML, which follows YAML 1.1. A scalar that the two versions read as different numbers is
//! refused, because one of them is not what the author means.

use serde_json::Number;

/// A scalar with its type resolved.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Number(Number),
    /// `plain` is true if the text is written without quotes.
    Text {
        text: String,
        plain: bool,
    },
}

/// A message, and the help to correct it.
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
        ("bool", Scalar::Text { text, .. }) if wandb_bool(text).is_some() => {
            Ok(wandb_bool(text).map_or(Scalar::Null, Scalar::Bool))
        }
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

/// Returns the boolean that PyYAML reads for a word that is a text in YAML 1.2.
pub(crate) fn wandb_bool(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// Whether PyYAML reads a plain number as a text: its exponent needs a sign and a point before it, and a sign may not
/// precede a bare point.
pub(crate) fn is_text_to_wandb(scalar: &Scalar, text: &str) -> bool {
    let Scalar::Number(number) = scalar else { return false };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "+"));
    number.is_f64()
        && (!mantissa.contains('.')
            || !exponent.starts_with(['+', '-'])
            || mantissa.starts_with("+.")
            || mantissa.starts_with("-."))
}

/// Reads a number; `None` if `text` does not look like one.
fn number(text: &str) -> Option<Result<Number, Refusal>> {
    let (sign, unsigned) = text.split_at(usize::from(text.starts_with(['+', '-'])));
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(Err(not_finite(text)));
    }
    if let Some(refusal) = read_differently(sign, unsigned) {
        return Some(Err(refusal));
    }
    for (prefix, radix) in [("0b", 2), ("0x", 16)] {
        if let Some(digits) = unsigned.strip_prefix(prefix)
            && digits.chars().any(|c| c.is_digit(radix))
            && digits.chars().all(|c| c.is_digit(radix) || c == '_')
        {
            return Some(integer(text, &format!("{sign}{}", without_underscores(digits)), radix));
        }
    }
    if is_digits(unsigned, true) {
        // PyYAML reads `0_8` as a text, because it is no octal number.
        let is_text = unsigned.starts_with('0') && unsigned.contains('_') && !is_octal(&without_underscores(unsigned));
        return (!is_text).then(|| integer(text, &without_underscores(text), 10));
    }
    is_float(sign, unsigned).then(|| {
        let parsed: Option<f64> = without_underscores(text).parse().ok();
        parsed.and_then(Number::from_f64).ok_or_else(|| not_finite(text))
    })
}

/// Returns the refusal of a number that has one value in W&B and another in YAML 1.2.
fn read_differently(sign: &str, unsigned: &str) -> Option<Refusal> {
    let text = format!("{sign}{unsigned}");
    let quotes = "put it in quotes to pass it on as text";
    if let Some(value) = base_60(unsigned) {
        let message = format!("`{text}` is {sign}{value} to W&B, which reads it in base 60, and a text in YAML 1.2");
        return Some((message, format!("write {sign}{value}, or {quotes}")));
    }
    if let Some(digits) = text.strip_prefix("0o").filter(|digits| is_octal(digits)) {
        let value = u64::from_str_radix(digits, 8).map_or_else(|_| "a number".to_owned(), |value| value.to_string());
        let message = format!("`{text}` is {value} in YAML 1.2, and a text to W&B");
        return Some((message, format!("write {value}, or {quotes}")));
    }
    let rest = unsigned.strip_prefix('0').filter(|rest| !rest.is_empty())?;
    let (is_underscored, digits) = (rest.contains('_'), without_underscores(unsigned));
    let decimal = digits.trim_start_matches('0');
    if is_octal(&digits) && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        let octal =
            u64::from_str_radix(&digits, 8).map_or_else(|_| "another number".to_owned(), |value| value.to_string());
        if octal == decimal || decimal.is_empty() {
            return None;
        }
        let other = if is_underscored { "a text".to_owned() } else { format!("{sign}{decimal}") };
        let message =
            format!("`{text}` is {sign}{octal} to W&B, where a leading 0 means octal, and {other} in YAML 1.2");
        return Some((message, format!("write {sign}{octal} or {sign}{decimal}, or {quotes}")));
    }
    (!is_underscored && rest.bytes().all(|byte| byte.is_ascii_digit())).then(|| {
        let message = format!("`{text}` is {sign}{decimal} in YAML 1.2, and a text to W&B");
        (message, format!("write {sign}{decimal}, or {quotes}"))
    })
}

fn is_octal(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte))
}

/// Returns the base-60 number that YAML 1.1 reads in `1:30` or `1:30.5`.
fn base_60(unsigned: &str) -> Option<f64> {
    let (whole, fraction) = unsigned.split_once('.').map_or((unsigned, None), |(whole, part)| (whole, Some(part)));
    let (first, rest) = whole.split_once(':')?;
    let starts_well = !first.starts_with('0') || fraction.is_some();
    let is_below_60 = |part: &str| is_digits(part, false) && (part.len() == 1 || part.len() == 2 && part < "6");
    if !starts_well || !is_digits(first, true) || !rest.split(':').all(is_below_60) {
        return None;
    }
    let fraction = fraction.unwrap_or("");
    if !fraction.is_empty() && !fraction.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        return None;
    }
    let digit = |part: &str| without_underscores(part).parse::<f64>().unwrap_or(0.0);
    let value = rest.split(':').fold(digit(first), |sum, part| sum * 60.0 + digit(part));
    Some(value + digit(&format!("0.{fraction}")))
}

fn without_underscores(text: &str) -> String {
    text.replace('_', "")
}

/// Whether a text has only digits, with underscores after the first one if allowed.
fn is_digits(text: &str, may_have_underscores: bool) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || may_have_underscores && byte == b'_')
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

/// Whether a text is a float by YAML 1.2's `(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, or one of PyYAML's with
/// underscores.
fn is_float(sign: &str, unsigned: &str) -> bool {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |part: &str| is_digits(part, false);
    let power = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    if power.is_some_and(|power| !digits(power)) {
        return false;
    }
    if !mantissa.contains('_') {
        let has_digits = !whole.is_empty() || !fraction.is_empty();
        return has_digits && (whole.is_empty() || digits(whole)) && (fraction.is_empty() || digits(fraction));
    }
    let is_wandbs = mantissa.contains('.') && exponent.is_none_or(|exponent| exponent.starts_with(['+', '-']));
    let underscored = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let starts_well =
        if whole.is_empty() { sign.is_empty() && is_digits(fraction, true) } else { is_digits(whole, true) };
    is_wandbs && starts_well && underscored(fraction)
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
            ("007", "7"),
            ("0xff", "255"),
            ("-0x1F", "-31"),
            ("0x1_F", "31"),
            ("0b101", "5"),
            ("1_000", "1000"),
            ("-1_000_", "-1000"),
            ("1_000.5", "1000.5"),
            ("1_0.2_5e+1", "102.5"),
            ("0_7", "7"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("yes", "text"),
            ("on", "text"),
            ("_1", "text"),
            ("1_000e3", "text"),
            ("1_0.5e3", "text"),
            ("-.5_0", "text"),
            ("0_8", "text"),
            ("0x_", "text"),
            ("0:30", "text"),
            ("1:75", "text"),
            ("1:300", "text"),
            ("12:30pm", "text"),
            ("train:3", "text"),
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
    fn what_is_one_value_to_wandb_and_another_in_yaml_1_2_is_refused() {
        let cases = [
            ("010", "write 8 or 10"),
            ("-017", "write -15 or -17"),
            ("0_17", "write 15 or 17"),
            ("08", "write 8"),
            ("0o17", "write 15"),
            ("1:30", "write 90"),
            ("-1:30", "write -90"),
            ("12:30:45", "write 45045"),
            ("0:30.5", "write 30.5"),
            ("1_0:05", "write 605"),
        ];
        for (written, expected) in cases {
            let (message, help) = resolve_plain(written).unwrap_err();
            assert!(message.contains(written) && help.starts_with(&format!("{expected}, or put")), "{written}: {help}");
        }
    }

    #[test]
    fn numbers_that_are_texts_to_wandb_are_known() {
        let cases = [
            ("1e-3", true),
            ("1.5e3", true),
            ("-.5", true),
            ("1E5", true),
            ("1.5e+3", false),
            ("1.", false),
            (".5", false),
            ("-0.5", false),
            ("7", false),
            ("0x1e3", false),
            ("text", false),
        ];
        for (written, expected) in cases {
            assert_eq!(is_text_to_wandb(&resolve_plain(written).unwrap(), written), expected, "{written}");
        }
    }

    #[test]
    fn what_json_cannot_hold_is_refused() {
        for written in [".inf", "-.INF", ".nan", "1e999", "-1e999", "18446744073709551616", "-9223372036854775809"] {
            assert!(resolve_plain(written).is_err(), "{written}");
        }
    }
}
