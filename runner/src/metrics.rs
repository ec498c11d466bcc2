//! Metrics in lines of text, and their figures over an attempt.
//!
//! Text follows Katib's collector (`name=value`, white space around `=` allowed; its default
//! filter in kubeflow/katib `pkg/metricscollector/v1beta1/common/const.go`), and JSON objects
//! may hold numbers or, as Katib's, numbers in strings. Unlike Katib, nobody lists the metrics
//! beforehand, so things that only begin like a number (`10.0.0.1`, `2024-03-04`, `12:30`, `3s`)
//! and command-line flags (`--lr=0.1`) are left alone, and names may hold `/` and `.`.

use std::collections::BTreeMap;

use serde_json::Value;
use spotsweep_protocol::claim::Metric;

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
    /// Finite values in the line's order.
    pub(crate) values: Vec<(String, f64)>,
    /// Names whose value is NaN or infinite.
    pub(crate) not_finite: Vec<String>,
}

/// Finds the metrics of a line; empty for any other line.
pub(crate) fn parse(line: &str) -> Line {
    let found = if line.trim_start().starts_with('{') { json(line) } else { None };
    let mut found = found.unwrap_or_else(|| text(line));
    for name in STEPS {
        let is_step = |(key, _): &(String, f64)| key.eq_ignore_ascii_case(name);
        let step = found.values.iter().rev().find(|pair| is_step(pair)).map(|(_, value)| *value);
        found.step = found.step.or(step);
        found.values.retain(|pair| !is_step(pair));
    }
    found
}

impl Line {
    fn add(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.values.push((name.to_owned(), value));
        } else {
            self.not_finite.push(name.to_owned());
        }
    }
}

fn json(line: &str) -> Option<Line> {
    let object: serde_json::Map<String, Value> = serde_json::from_str(line)
        // Python's json module writes NaN and Infinity, which JSON does not have.
        .or_else(|_| {
            serde_json::from_str(&line.replace("-Infinity", "null").replace("Infinity", "null").replace("NaN", "null"))
        })
        .ok()?;
    let mut found = Line::default();
    for (name, value) in object.iter().filter(|(name, _)| *name != TIMESTAMP) {
        match value {
            Value::Number(number) => found.add(name, number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => {
                if let Ok(number) = text.trim().parse() {
                    found.add(name, number);
                }
            }
            Value::Null => found.add(name, f64::NAN),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => {}
        }
    }
    Some(found)
}

fn text(line: &str) -> Line {
    let mut found = Line::default();
    for (at, _) in line.match_indices('=') {
        if let (Some(name), Some(value)) = (name_before(&line[..at]), value_after(&line[at + 1..])) {
            found.add(name, value);
        }
    }
    found
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
pub(crate) struct Figures(BTreeMap<String, Metric>);

impl Figures {
    /// Takes one value in; false where there is no room for another name.
    pub(crate) fn add(&mut self, name: &str, step: Option<f64>, value: f64) -> bool {
        if let Some(metric) = self.0.get_mut(name) {
            let (min, max) = (metric.min.min(value), metric.max.max(value));
            *metric = Metric { last: value, step, min, max };
            return true;
        }
        let room = self.0.len() < MAX_NAMES && name.len() <= MAX_NAME_BYTES;
        if room {
            self.0.insert(name.to_owned(), Metric { last: value, step, min: value, max: value });
        }
        room
    }

    /// As they go over the wire.
    pub(crate) fn metrics(&self) -> BTreeMap<String, Metric> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line of text, its step, its values as `name=value`, and its names that are not finite.
    type Case = (&'static str, Option<f64>, &'static [(&'static str, f64)], &'static [&'static str]);

    const CASES: &[Case] = &[
        (
            "epoch=3 val_accuracy=0.9611 val_loss=1.2e-3",
            Some(3.0),
            &[("val_accuracy", 0.9611), ("val_loss", 0.0012)],
            &[],
        ),
        ("2024-03-04T17:55:08Z INFO accuracy = .8078, loss=+5.", None, &[("accuracy", 0.8078), ("loss", 5.0)], &[]),
        ("step=40 epoch=2 val/top-1=97.3%", Some(40.0), &[("val/top-1", 97.3)], &[]),
        ("Epoch=3/10... loss=-0.5;acc=1", Some(3.0), &[("loss", -0.5), ("acc", 1.0)], &[]),
        ("loss=0.5 loss=0.4", None, &[("loss", 0.5), ("loss", 0.4)], &[]),
        ("Epoch 1...loss=0.25 |acc=0.5|", None, &[("loss", 0.25), ("acc", 0.5)], &[]),
        ("손실=1 정확도 acc=0.5정확", None, &[("acc", 0.5)], &[]),
        ("loss=nan acc=0.5 lr=-inf big=1e999", None, &[("acc", 0.5)], &["loss", "lr", "big"]),
        ("python train.py --lr=0.1 -x=2", None, &[], &[]),
        ("ip=10.0.0.1 day=2024-03-04 at=12:30:01 took=12s id=0x1f n=1_000", None, &[], &[]),
        ("a == 1, b != 2, c <= 3, d=[4], e=, f='5', g=tensor(6), =7, 8=9", None, &[], &[]),
        ("accuracy: 0.9", None, &[], &[]),
        ("", None, &[], &[]),
        (
            r#"{"global_step": "7", "loss": "0.22", "acc": 1, "timestamp": 1638422847.28, "ok": true, "path": "x"}"#,
            Some(7.0),
            &[("loss", 0.22), ("acc", 1.0)],
            &[],
        ),
        (r#"{"epoch": 1, "loss": NaN, "x": -Infinity, "y": null}"#, Some(1.0), &[], &["loss", "x", "y"]),
        (r#"{"a": {"loss": 1}} loss=2"#, None, &[("loss", 2.0)], &[]),
        (r#"{"nested": {"loss": 1}}"#, None, &[], &[]),
        ("{metricName=1}", None, &[("metricName", 1.0)], &[]),
    ];

    #[test]
    fn lines_say_what_katib_reads_in_them_and_no_more() {
        for (line, step, values, not_finite) in CASES {
            let mut found = parse(line);
            let mut names: Vec<_> = not_finite.iter().map(|name| (*name).to_owned()).collect();
            // JSON objects do not promise an order.
            names.sort();
            found.not_finite.sort();
            let values: Vec<_> = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            assert_eq!(found, Line { step: *step, values, not_finite: names }, "{line}");
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

        assert!(!figures.add(&"n".repeat(MAX_NAME_BYTES + 1), None, 1.0));
        for number in 1..MAX_NAMES {
            assert!(figures.add(&format!("m{number}"), None, 1.0));
        }
        assert!(!figures.add("one-too-many", None, 1.0));
        assert!(figures.add("acc", None, 1.0), "known names go on");
        assert_eq!(figures.metrics().len(), MAX_NAMES);
    }
}
