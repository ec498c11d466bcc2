//! Metrics in lines of text, and their figures over an attempt.
//!
//! Text follows Katib's collector (`name=value`, white space around `=` allowed; its default
//! filter in kubeflow/katib `pkg/metricscollector/v1beta1/common/const.go`), and JSON objects
//! may hold numbers or, as Katib's, numbers in strings. Unlike Katib, nobody lists the metrics
//! beforehand, so things that only begin like a number (`10.0.0.1`, `2024-03-04`, `12:30`, `3s`)
//! and command-line flags (`--lr=0.1`) are left alone, and names may hold `/` and `.`.

use std::collections::BTreeMap;

use anstream::adapter::strip_str;
use serde_json::Value;
use spotsweep_protocol::claim::{Metric, metric_name};

/// What says how far the training is, the first that a line has; never a metric itself.
const STEPS: [&str; 3] = ["step", "global_step", "epoch"];
/// Katib's name for a line's time in JSON.
const TIMESTAMP: &str = "timestamp";
/// A trial's row in the table holds them all (DynamoDB: 400 KB an item).
const MAX_NAMES: usize = 100;
const MAX_NAME_BYTES: usize = 128;

/// What one line of output says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// Steps or epochs, as the line counts them.
    pub(crate) step: Option<f64>,
    /// Values in the line's order. NaN and infinity are values too: they show that a training has diverged.
    pub(crate) values: Vec<(String, f64)>,
}

/// Finds the metrics of a line; empty for any other line. `named` is the metric that the sweep file names.
pub(crate) fn parse(line: &str, named: Option<&str>) -> Line {
    let line = strip_str(line).to_string();
    let found = if line.trim_start().starts_with('{') { json(&line) } else { None };
    let mut found = found.unwrap_or_else(|| text(&line, named));
    // Here and nowhere else, so that the record, the reports and everything after them have the same names.
    found.values.retain(|(name, _)| !name.is_empty());
    for (name, _) in &mut found.values {
        *name = metric_name(name).into_owned();
    }
    for name in STEPS {
        let is_step = |(key, _): &(String, f64)| key.eq_ignore_ascii_case(name);
        let step = found.values.iter().rev().find(|pair| is_step(pair)).map(|(_, value)| *value);
        let step = step.filter(|step| step.is_finite());
        found.step = found.step.or(step);
        found.values.retain(|pair| !is_step(pair));
    }
    found
}

fn json(line: &str) -> Option<Line> {
    let object: serde_json::Map<String, Value> =
        serde_json::from_str(line).or_else(|_| serde_json::from_str(&with_quoted_numbers(line))).ok()?;
    let mut found = Line::default();
    let mut add = |name: &str, value| found.values.push((name.to_owned(), value));
    for (name, value) in object.iter().filter(|(name, _)| *name != TIMESTAMP) {
        match value {
            Value::Number(number) => add(name, number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => {
                if let Ok(number) = text.trim().parse() {
                    add(name, number);
                }
            }
            // Null is no value: it stands where a line has none of a metric.
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {}
        }
    }
    Some(found)
}

/// The numbers that JSON does not have become texts: Python's json module writes NaN and Infinity, and 1e309 is none.
fn with_quoted_numbers(line: &str) -> String {
    let mut quoted = String::with_capacity(line.len() + 16);
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let length = if first == '"' { string_length(rest) } else { rest.find(|c| !inner(c)).unwrap_or(rest.len()) };
        let (word, after) = rest.split_at(if length == 0 { first.len_utf8() } else { length });
        let is_other_number = first != '"' && word.parse::<f64>().is_ok_and(|number| !number.is_finite());
        quoted.push_str(&if is_other_number { format!("\"{word}\"") } else { word.to_owned() });
        rest = after;
    }
    quoted
}

/// Of the JSON string that a text begins with, quotes included.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

fn text(line: &str, named: Option<&str>) -> Line {
    let mut found = Line::default();
    for (at, _) in line.match_indices('=') {
        let left = &line[..at];
        let name = named.filter(|name| ends_with_name(left, name)).or_else(|| name_before(left));
        if let (Some(name), Some(value)) = (name, value_after(&line[at + 1..])) {
            found.values.push((name.to_owned(), value));
        }
    }
    found
}

/// Whether a text ends with exactly this name: what is before it is not a part of the same word.
fn ends_with_name(left: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    let starts_word = name.starts_with(is_part);
    left.trim_end().strip_suffix(name).is_some_and(|before| !(starts_word && before.ends_with(is_part)))
}

fn name_before(left: &str) -> Option<&str> {
    let left = left.trim_end();
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    let word = left.trim_end_matches(inner).len();
    let word = &left[word..];
    if word.starts_with('-') {
        return None;
    }
    let name = word.trim_start_matches(|c: char| !c.is_ascii_alphabetic() && c != '_');
    (!name.is_empty()).then_some(name)
}

fn value_after(right: &str) -> Option<f64> {
    let right = right.trim_start();
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-' | '.');
    let rest = right.trim_start_matches(inner);
    let word = &right[..right.len() - rest.len()];
    let clock_time = rest.strip_prefix(':').is_some_and(|after| after.starts_with(|c: char| c.is_ascii_digit()));
    if clock_time { None } else { word.trim_end_matches('.').parse().ok() }
}

/// Cumulative figures by metric name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Figures {
    of: BTreeMap<String, Metric>,
    /// The metric that the sweep file names: there is room for it whatever others come first.
    named: Option<String>,
}

impl Figures {
    pub(crate) fn new(named: Option<String>) -> Self {
        Self { of: BTreeMap::new(), named }
    }

    /// Takes one value in; false where there is no room for another name.
    pub(crate) fn add(&mut self, name: &str, step: Option<f64>, value: f64) -> bool {
        let seen = Metric::of(value, step);
        if let Some(metric) = self.of.get_mut(name) {
            *metric = metric.and(seen);
            return true;
        }
        let is_named = self.named.as_deref() == Some(name);
        let room = is_named || (self.of.len() < MAX_NAMES && name.len() <= MAX_NAME_BYTES);
        if room {
            self.of.insert(name.to_owned(), seen);
        }
        room
    }

    /// As they go over the wire.
    pub(crate) fn metrics(&self) -> BTreeMap<String, Metric> {
        self.of.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line of text, its step, its values.
    type Case = (&'static str, Option<f64>, &'static [(&'static str, f64)]);

    const CASES: &[Case] = &[
        ("epoch=3 val_accuracy=0.9611 val_loss=1.2e-3", Some(3.0), &[("val_accuracy", 0.9611), ("val_loss", 0.0012)]),
        ("2024-03-04T17:55:08Z INFO accuracy = .8078, loss=+5.", None, &[("accuracy", 0.8078), ("loss", 5.0)]),
        ("step=40 epoch=2 val/top-1=97.3%", Some(40.0), &[("val/top-1", 97.3)]),
        ("Epoch=3/10... loss=-0.5;acc=1", Some(3.0), &[("loss", -0.5), ("acc", 1.0)]),
        ("loss=0.5 loss=0.4", None, &[("loss", 0.5), ("loss", 0.4)]),
        ("Epoch 1...loss=0.25 |acc=0.5|", None, &[("loss", 0.25), ("acc", 0.5)]),
        ("손실=1 정확도 acc=0.5정확", None, &[("acc", 0.5)]),
        (
            "loss=nan acc=0.5 lr=-inf big=1e999 huge=1e200",
            None,
            &[("loss", f64::NAN), ("acc", 0.5), ("lr", -f64::INFINITY), ("big", f64::INFINITY), ("huge", 1e200)],
        ),
        ("step=nan loss=1", None, &[("loss", 1.0)]),
        ("python train.py --lr=0.1 -x=2", None, &[]),
        ("ip=10.0.0.1 day=2024-03-04 at=12:30:01 took=12s id=0x1f n=1_000", None, &[]),
        ("a == 1, b != 2, c <= 3, d=[4], e=, f='5', g=tensor(6), =7, 8=9", None, &[]),
        ("accuracy: 0.9", None, &[]),
        ("", None, &[]),
        (
            r#"{"global_step": "7", "loss": "0.22", "acc": 1, "timestamp": 1638422847.28, "ok": true, "path": "x"}"#,
            Some(7.0),
            &[("loss", 0.22), ("acc", 1.0)],
        ),
        (
            r#"{"epoch": 1, "loss": NaN, "x": -Infinity, "y": null, "z": 1e309, "NaN \"b": Infinity}"#,
            Some(1.0),
            &[("loss", f64::NAN), ("x", -f64::INFINITY), ("z", f64::INFINITY), ("NaN \"b", f64::INFINITY)],
        ),
        (r#"{"a": {"loss": 1}} loss=2"#, None, &[("loss", 2.0)]),
        (r#"{"nested": {"loss": 1}}"#, None, &[]),
        (
            r#"{"": 1, "a\u001b[31mb": 2, "a\tb": 3, "=SUM(1)": 4, "\u0085": 5}"#,
            None,
            &[("a\\u{1b}[31mb", 2.0), ("a\\tb", 3.0), ("=SUM(1)", 4.0), ("\\u{85}", 5.0)],
        ),
        ("{metricName=1}", None, &[("metricName", 1.0)]),
    ];

    #[test]
    fn lines_say_what_katib_reads_in_them_and_no_more() {
        for (line, step, values) in CASES {
            let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            // NaN is not equal to itself.
            assert_eq!(format!("{:?}", parse(line, None)), format!("{:?}", Line { step: *step, values }), "{line}");
        }
    }

    #[test]
    fn the_name_that_the_file_declares_is_looked_for_as_it_is() {
        type Named = (&'static str, &'static str, &'static [(&'static str, f64)]);
        let cases: [Named; 9] = [
            (
                "Performance/Test accuracy",
                "epoch=1 Performance/Test accuracy=0.5",
                &[("Performance/Test accuracy", 0.5)],
            ),
            ("test/F1@5", "test/F1@5 = 0.5, loss=1", &[("test/F1@5", 0.5), ("loss", 1.0)]),
            ("metrics/mAP50(B)", "metrics/mAP50(B)=nan", &[("metrics/mAP50(B)", f64::NAN)]),
            ("정확도", "검증 정확도=0.5", &[("정확도", 0.5)]),
            ("acc", "val_acc=0.5 acc=0.25", &[("val_acc", 0.5), ("acc", 0.25)]),
            ("acc", "--acc=0.5", &[]),
            ("(x)", "f(x)=2", &[("(x)", 2.0)]),
            ("val_acc", "\u{1b}[33mval_acc\u{1b}[0m=\u{1b}[1;36m0.5\u{1b}[0m", &[("val_acc", 0.5)]),
            (
                "x",
                "\u{1b}[36m10:00:00\u{1b}[0m | \u{1b}]8;;https://a=1\u{7}link\u{1b}]8;;\u{7} loss=0.5",
                &[("loss", 0.5)],
            ),
        ];
        for (named, line, expected) in cases {
            let values: Vec<_> = expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            assert_eq!(format!("{:?}", parse(line, Some(named)).values), format!("{values:?}"), "{named}: {line}");
        }
    }

    #[test]
    fn figures_are_cumulative_and_bounded() {
        let mut figures = Figures::default();
        for (step, value) in [(1.0, 0.5), (2.0, 0.9), (3.0, 0.7)] {
            assert!(figures.add("acc", Some(step), value));
        }
        let expected = Metric { last: 0.7, step: Some(3.0), min: 0.5, max: 0.9 };
        assert_eq!(figures.metrics()["acc"], expected);
        figures.add("acc", Some(4.0), f64::NAN);
        let diverged = figures.metrics()["acc"];
        assert!(diverged.last.is_nan() && (diverged.min, diverged.max) == (0.5, 0.9), "{diverged:?}");
        figures.add("acc", Some(5.0), 0.1);
        assert_eq!(figures.metrics()["acc"], Metric { last: 0.1, step: Some(5.0), min: 0.1, max: 0.9 });

        assert!(!figures.add(&"n".repeat(MAX_NAME_BYTES + 1), None, 1.0));
        for number in 1..MAX_NAMES {
            assert!(figures.add(&format!("m{number}"), None, 1.0));
        }
        assert!(!figures.add("one-too-many", None, 1.0));
        assert!(figures.add("acc", None, 1.0), "known names go on");
        assert_eq!(figures.metrics().len(), MAX_NAMES);

        let mut full = Figures { named: Some("score".to_owned()), ..figures };
        assert!(full.add("score", None, 1.0), "the metric that ranks has room");
    }
}
