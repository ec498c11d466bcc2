//! Serializes numbers that JSON or DynamoDB cannot hold as texts: `"NaN"`, `"inf"`, `"-inf"`, `"1e200"`.
//!
//! JSON has no NaN and no infinity (RFC 8259, section 6). DynamoDB's numbers range from 1e-130 to below 1e126
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html>), and a put
//! with any other number fails as a whole. A training's metric may be any of them.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The numbers that DynamoDB holds, besides zero.
const STORED: std::ops::Range<f64> = 1e-130..1e126;

/// Whether DynamoDB can hold the number: 0, or 1e-130 to below 1e126 with either sign.
pub fn is_stored(value: f64) -> bool {
    value == 0.0 || STORED.contains(&value.abs())
}

/// Returns the text in place of a number; `None` if the number can be held.
fn text(value: f64) -> Option<String> {
    if is_stored(value) {
        None
    } else if value.is_finite() {
        Some(format!("{value:e}"))
    } else {
        Some(value.to_string())
    }
}

/// Returns the number as JSON.
pub fn to_json(value: f64) -> Value {
    text(value).map_or_else(|| json!(value), Value::from)
}

/// Serializes a number, for `#[serde(with)]`.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match text(*value) {
        Some(text) => serializer.serialize_str(&text),
        None => serializer.serialize_f64(*value),
    }
}

/// Deserializes a number, for `#[serde(with)]`.
///
/// # Errors
/// If the value is neither a number nor the text of one.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_any(AnyNumber)
}

struct AnyNumber;

impl Visitor<'_> for AnyNumber {
    type Value = f64;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a number, or the text of one")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<f64, E> {
        value.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(value), &self))
    }
}

/// A number in a collection.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Number(#[serde(with = "self")] pub f64);

/// Serializes numbers that may be missing.
pub mod optional {
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::Serializer;

    /// Serializes a number or null, for `#[serde(with)]`.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => super::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Deserializes a number or null, for `#[serde(with)]`.
    ///
    /// # Errors
    /// If the value is neither a number, nor the text of one, nor null.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<super::Number>::deserialize(deserializer)?.map(|number| number.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Held {
        #[serde(with = "super")]
        value: f64,
        #[serde(with = "optional")]
        step: Option<f64>,
    }

    #[test]
    fn every_number_comes_back_and_only_storable_ones_are_numbers() {
        let cases = [
            (0.1, "0.1"),
            (3.0, "3.0"),
            (0.0, "0.0"),
            (-1e125, "-1e+125"),
            (1e-130, "1e-130"),
            (1e126, r#""1e126""#),
            (-1.5e200, r#""-1.5e200""#),
            (5e-324, r#""5e-324""#),
            (f64::INFINITY, r#""inf""#),
            (f64::NEG_INFINITY, r#""-inf""#),
            (f64::NAN, r#""NaN""#),
        ];
        for (value, expected) in cases {
            let text = serde_json::to_string(&Held { value, step: Some(value) }).unwrap_or_default();
            assert_eq!(text, format!(r#"{{"value":{expected},"step":{expected}}}"#));
            let found: Held = serde_json::from_str(&text).unwrap_or(Held { value: 7.0, step: None });
            assert!(found.value.total_cmp(&value).is_eq(), "{text}");
            assert!(found.step.is_some_and(|step| step.total_cmp(&value).is_eq()), "{text}");
        }
        let whole: Held =
            serde_json::from_str(r#"{"value":-3,"step":null}"#).unwrap_or(Held { value: 7.0, step: Some(1.0) });
        assert_eq!((whole.value, whole.step), (-3.0, None));
        assert!(serde_json::from_str::<Held>(r#"{"value":"many","step":null}"#).is_err());
    }
}
