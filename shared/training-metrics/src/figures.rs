//! A metric's figures over an attempt.

use std::collections::BTreeMap;

use spotsweep_protocol::metric::Metric;

use crate::logged::Value;

/// A trial's row in the table holds them all (DynamoDB: 400 KB an item).
const MAX_NAMES: usize = 100;
const MAX_NAME_BYTES: usize = 128;

/// What became of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It counts.
    Counted,
    /// A more reliable source has the metric.
    Passed,
    /// There is no room for another name.
    NoRoom,
}

/// Cumulative figures by metric name. Only values of the most reliable source of a name count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    of: BTreeMap<String, Metric>,
    /// The metric that the sweep file names: there is room for it whatever others come first.
    named: Option<String>,
}

impl Figures {
    /// Without values. `named` is the metric that the sweep file names.
    pub fn new(named: Option<String>) -> Self {
        Self { of: BTreeMap::new(), named }
    }

    /// Takes one value in.
    pub fn add(&mut self, step: Option<f64>, Value { name, value, source }: &Value) -> Taken {
        let seen = Metric::of(*value, step, *source);
        if let Some(metric) = self.of.get_mut(name) {
            if *source < metric.source {
                return Taken::Passed;
            }
            *metric = metric.and(seen);
            return Taken::Counted;
        }
        let is_named = self.named.as_ref() == Some(name);
        if !is_named && (self.of.len() >= MAX_NAMES || name.len() > MAX_NAME_BYTES) {
            return Taken::NoRoom;
        }
        self.of.insert(name.clone(), seen);
        Taken::Counted
    }

    /// As they go over the wire.
    pub fn metrics(&self) -> BTreeMap<String, Metric> {
        self.of.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spotsweep_protocol::metric::Source;

    fn add(figures: &mut Figures, name: &str, step: Option<f64>, value: f64) -> Taken {
        figures.add(step, &Value { name: name.to_owned(), value, source: Source::Stated })
    }

    #[test]
    fn figures_are_cumulative_and_bounded() {
        let mut figures = Figures::default();
        for (step, value) in [(1.0, 0.5), (2.0, 0.9), (3.0, 0.7)] {
            assert_eq!(add(&mut figures, "acc", Some(step), value), Taken::Counted);
        }
        let expected = Metric { last: 0.7, step: Some(3.0), min: 0.5, max: 0.9, source: Source::Stated };
        assert_eq!(figures.metrics()["acc"], expected);
        add(&mut figures, "acc", Some(4.0), f64::NAN);
        let diverged = figures.metrics()["acc"];
        assert!(diverged.last.is_nan() && (diverged.min, diverged.max) == (0.5, 0.9), "{diverged:?}");
        add(&mut figures, "acc", Some(5.0), 0.1);
        assert_eq!(
            figures.metrics()["acc"],
            Metric { last: 0.1, step: Some(5.0), min: 0.1, max: 0.9, source: Source::Stated }
        );

        assert_eq!(add(&mut figures, &"n".repeat(MAX_NAME_BYTES + 1), None, 1.0), Taken::NoRoom);
        for number in 1..MAX_NAMES {
            assert_eq!(add(&mut figures, &format!("m{number}"), None, 1.0), Taken::Counted);
        }
        assert_eq!(add(&mut figures, "one-too-many", None, 1.0), Taken::NoRoom);
        assert_eq!(add(&mut figures, "acc", None, 1.0), Taken::Counted, "known names go on");
        assert_eq!(figures.metrics().len(), MAX_NAMES);

        let mut full = Figures { named: Some("score".to_owned()), ..figures };
        assert_eq!(add(&mut full, "score", None, 1.0), Taken::Counted, "the metric that ranks has room");
    }

    #[test]
    fn the_most_reliable_source_of_a_name_counts() {
        let mut figures = Figures::default();
        let mut add = |source, value| figures.add(None, &Value { name: "acc".to_owned(), value, source });
        assert_eq!(add(Source::ProgressBar, 0.95), Taken::Counted);
        assert_eq!(add(Source::Recorded, 0.5), Taken::Counted);
        assert_eq!(add(Source::ProgressBar, 0.99), Taken::Passed);
        assert_eq!(add(Source::Recorded, 0.6), Taken::Counted);
        assert_eq!(
            figures.metrics()["acc"],
            Metric { last: 0.6, step: None, min: 0.5, max: 0.6, source: Source::Recorded }
        );
    }
}
