//! Reads a trial's metrics over time from the record that its runner keeps.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use spotsweep_protocol::metric::Metric;
use spotsweep_protocol::number::Number;

use crate::metrics_record::{Line, lines};

/// One value of a metric. It is displayed as a line of MLflow's file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    /// Milliseconds since 1970.
    millis: i64,
    value: f64,
    step: i64,
}

impl Point {
    /// A metric's last value, if nothing else is known.
    pub(super) fn last(at: Timestamp, metric: &Metric) -> Self {
        Self { millis: at.as_millisecond(), value: metric.last, step: metric.step.map_or(0, |step| step as i64) }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} {}", self.millis, self.value, self.step)
    }
}

/// Reads every metric's values in order. MLflow needs whole numbers as steps. So values without a step are counted, and
/// so are those of a metric with a step that is not a whole number.
pub(super) fn read(jsonl: &[u8]) -> BTreeMap<String, Vec<Point>> {
    let mut all: BTreeMap<String, Vec<(i64, f64, Option<f64>)>> = BTreeMap::new();
    for Line { time, step, metrics } in lines(jsonl) {
        for (name, Number(value)) in metrics {
            all.entry(name).or_default().push(((time * 1_000.0) as i64, value, step));
        }
    }
    all.into_iter().map(|(name, values)| (name, numbered(&values))).collect()
}

fn numbered(values: &[(i64, f64, Option<f64>)]) -> Vec<Point> {
    let whole = |step: &Option<f64>| step.filter(|step| step.fract() == 0.0).map(|step| step as i64);
    let steps: Option<Vec<i64>> = values.iter().map(|(_, _, step)| whole(step)).collect();
    let steps = steps.unwrap_or_else(|| (1..).take(values.len()).collect());
    values.iter().zip(steps).map(|((millis, value, _), step)| Point { millis: *millis, value: *value, step }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_time_value_and_step() {
        let record = concat!(
            r#"{"time":1732233600.25,"step":1,"metrics":{"loss":0.5,"lr":0.1}}"#,
            "\n",
            r#"{"time":1732233601,"step":1.5,"metrics":{"lr":1e-7}}"#,
            "\n",
            r#"{"time":1732233602,"step":null,"metrics":{"acc":1}}"#,
            "\n",
            r#"{"time":1732233603,"step":2,"metrics":{"loss":0.25}}"#,
            "\n",
            r#"{"time":1732233604,"step":3,"metrics":{"loss":"NaN"}}"#,
            "\n",
            r#"{"time":17322336"#,
        );
        let points = read(record.as_bytes());
        let shown = |name: &str| points[name].iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(shown("loss"), ["1732233600250 0.5 1", "1732233603000 0.25 2", "1732233604000 NaN 3"]);
        assert_eq!(shown("lr"), ["1732233600250 0.1 1", "1732233601000 0.0000001 2"], "1.5 is no step of MLflow's");
        assert_eq!(shown("acc"), ["1732233602000 1 1"]);
    }
}
