//! The figures of the metrics over an attempt.

use std::collections::BTreeMap;

use spotsweep_protocol::metric::{Metric, Source};

use crate::logged::{Logged, Value};

/// The most metrics of a trial, because its record in the table holds them all (DynamoDB: 400 KB per item).
const MAX_NAMES: usize = 100;
const MAX_NAME_BYTES: usize = 128;
/// The most streams and files whose newest readings of the named metric are compared.
const MAX_ORIGINS: usize = 64;
/// The relative difference up to which two values may be one, rounded.
const ROUNDED: f64 = 0.01;
/// The most decimals to which rounding is assumed, and the decimals of a number that shows none.
const MOST_DECIMALS: i32 = 15;
const LEAST_DECIMALS: i32 = 2;

/// Cumulative figures by metric name. Only values of the most reliable source of a name count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    of: BTreeMap<String, Metric>,
    /// The metric that the sweep file names. There is room for it however many others come first.
    named: Option<String>,
    /// The newest reliable readings of the named metric by origin: step and value.
    readings: BTreeMap<u64, (Option<f64>, f64)>,
}

impl Figures {
    /// Returns figures without values. `named` is the metric that the sweep file names.
    pub fn new(named: Option<String>) -> Self {
        Self { named, ..Self::default() }
    }

    /// Adds what was logged together, and removes from it what a more reliable source has. Returns the name of a metric
    /// for which there was no room.
    pub fn take(&mut self, logged: &mut Logged) -> Option<String> {
        let (mut left_out, step) = (None, logged.step);
        let together = self.readings_in(logged);
        logged.values.retain(|Value { name, value, source }| {
            let seen = Metric::of(*value, step, *source);
            if let Some(metric) = self.of.get_mut(name) {
                let counts = *source >= metric.source;
                if counts {
                    *metric = metric.and(seen);
                }
                return counts;
            }
            let is_named = self.named.as_ref() == Some(name);
            if !is_named && (self.of.len() >= MAX_NAMES || name.len() > MAX_NAME_BYTES) {
                left_out = Some(name.clone());
            } else {
                self.of.insert(name.clone(), seen);
            }
            true
        });
        if let (Some(metric), false) = (self.named.as_ref().and_then(|name| self.of.get_mut(name)), together.is_empty())
        {
            // A more reliable source may have logged another step.
            let together = Some(together).filter(|values| values.last() == Some(&metric.last) && step == metric.step);
            let elsewhere = self.readings.values().filter(|(step, _)| step.is_some() && *step == metric.step);
            let mut all = together.into_iter().flatten().chain(elsewhere.map(|(_, value)| *value));
            metric.other = all.find(|value| differ(*value, metric.last));
        }
        left_out
    }

    /// Returns the readings of the named metric in what was logged together. A value that is less reliable by its kind
    /// is no reading, because it is rounded or of other data. A file that existed as a whole is compared only with
    /// itself.
    fn readings_in(&mut self, logged: &Logged) -> Vec<f64> {
        let is_named = |value: &&Value| self.named.as_ref() == Some(&value.name);
        let readings = logged.values.iter().filter(is_named);
        if let Some(newest) = readings.clone().rfind(|value| value.source >= Source::Rows)
            && (self.readings.len() < MAX_ORIGINS || self.readings.contains_key(&logged.origin))
        {
            self.readings.insert(logged.origin, (logged.step, newest.value));
        }
        let is_reading = |value: &&Value| value.source >= Source::Rows || value.source == Source::Found;
        readings.filter(is_reading).map(|value| value.value).collect()
    }

    /// Whether two readings of the named metric disagree.
    pub fn is_doubtful(&self) -> bool {
        self.of_named().is_some_and(|metric| metric.other.is_some())
    }

    /// Whether the named metric was found.
    pub fn has_named(&self) -> bool {
        self.of_named().is_some()
    }

    fn of_named(&self) -> Option<&Metric> {
        self.of.get(self.named.as_ref()?)
    }

    /// Returns the figures in the form of the runner's requests.
    pub fn metrics(&self) -> BTreeMap<String, Metric> {
        self.of.clone()
    }
}

/// Whether two readings cannot be the same value, even if each is rounded or one is in per cent.
pub(crate) fn differ(one: f64, other: f64) -> bool {
    if !(one.is_finite() && other.is_finite()) {
        return one != other && !(one.is_nan() && other.is_nan());
    }
    let is_near = |one: f64, other: f64| {
        let unit = 10_f64.powi(-decimals(one).min(decimals(other)));
        (one - other).abs() <= (unit / 2.0).max(ROUNDED * one.abs().max(other.abs()))
    };
    !(is_near(one, other) || is_near(one / 100.0, other) || is_near(one, other / 100.0))
}

/// Returns the decimals that a number needs. A number that needs none may have been written with some, as `1.00`.
fn decimals(value: f64) -> i32 {
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let fraction = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let decimals = i32::try_from(fraction).unwrap_or(MOST_DECIMALS) - exponent.parse::<i32>().unwrap_or(0);
    if decimals <= 0 { LEAST_DECIMALS } else { decimals.min(MOST_DECIMALS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, value: f64, source: Source) -> Value {
        Value { name: name.to_owned(), value, source }
    }

    /// Returns whether the value counts, or as the error the name for which there is no room.
    fn add(figures: &mut Figures, name: &str, step: Option<f64>, number: f64) -> Result<bool, String> {
        let values = vec![value(name, number, Source::Stated)];
        let mut logged = Logged { step, values, ..Logged::default() };
        figures.take(&mut logged).map_or(Ok(!logged.values.is_empty()), Err)
    }

    #[test]
    fn figures_are_cumulative_and_bounded() {
        let mut figures = Figures::default();
        for (step, value) in [(1.0, 0.5), (2.0, 0.9), (3.0, 0.7)] {
            assert_eq!(add(&mut figures, "acc", Some(step), value), Ok(true));
        }
        let stated = |last, step| Metric::of(last, Some(step), Source::Stated);
        assert_eq!(figures.metrics()["acc"], Metric { min: 0.5, max: 0.9, ..stated(0.7, 3.0) });
        assert_eq!(add(&mut figures, "acc", Some(4.0), f64::NAN), Ok(true));
        let diverged = figures.metrics()["acc"];
        assert!(diverged.last.is_nan() && (diverged.min, diverged.max) == (0.5, 0.9), "{diverged:?}");
        assert_eq!(add(&mut figures, "acc", Some(5.0), 0.1), Ok(true));
        assert_eq!(figures.metrics()["acc"], Metric { min: 0.1, max: 0.9, ..stated(0.1, 5.0) });

        let long = "n".repeat(MAX_NAME_BYTES + 1);
        assert_eq!(add(&mut figures, &long, None, 1.0), Err(long));
        for number in 1..MAX_NAMES {
            assert_eq!(add(&mut figures, &format!("m{number}"), None, 1.0), Ok(true));
        }
        assert_eq!(add(&mut figures, "one-too-many", None, 1.0), Err("one-too-many".to_owned()));
        assert_eq!(add(&mut figures, "acc", None, 1.0), Ok(true), "known names go on");
        assert_eq!(figures.metrics().len(), MAX_NAMES);

        let mut full = Figures { named: Some("score".to_owned()), ..figures };
        assert_eq!(add(&mut full, "score", None, 1.0), Ok(true), "the metric that ranks has room");
    }

    #[test]
    fn the_most_reliable_source_of_a_name_counts() {
        let mut figures = Figures::default();
        let mut counts = |source, number| {
            let mut logged = Logged { values: vec![value("acc", number, source)], ..Logged::default() };
            figures.take(&mut logged);
            !logged.values.is_empty()
        };
        assert!(counts(Source::ProgressBar, 0.95) && counts(Source::Recorded, 0.5));
        assert!(!counts(Source::ProgressBar, 0.99) && counts(Source::Recorded, 0.6));
        let expected = Metric { min: 0.5, ..Metric::of(0.6, None, Source::Recorded) };
        assert_eq!(figures.metrics()["acc"], expected);
    }

    #[test]
    fn two_readings_of_the_named_metric_that_disagree_are_both_kept() {
        type Reading = (u64, Option<f64>, Source, &'static [f64]);
        type Case = (&'static [Reading], (f64, Option<f64>));
        const STATED: Source = Source::Stated;
        const ROWS: Source = Source::Rows;
        const CASES: [Case; 11] = [
            (&[(0, None, STATED, &[0.5, 0.4])], (0.4, Some(0.5))),
            (&[(9, None, Source::Found, &[0.5, 0.4])], (0.4, Some(0.5))),
            (&[(0, Some(8.0), STATED, &[0.4]), (9, Some(8.0), ROWS, &[1.0])], (0.4, Some(1.0))),
            (&[(9, Some(8.0), ROWS, &[1.0]), (0, Some(8.0), STATED, &[0.4])], (0.4, Some(1.0))),
            (&[(8, Some(8.0), ROWS, &[1.0]), (9, Some(8.0), ROWS, &[0.4])], (0.4, Some(1.0))),
            // These have the same epoch, other steps, and less reliable kinds.
            (&[(0, Some(8.0), STATED, &[1.0]), (0, Some(8.0), STATED, &[0.4])], (0.4, None)),
            (&[(0, Some(7.0), STATED, &[1.0]), (9, Some(8.0), STATED, &[0.4])], (0.4, None)),
            (&[(0, None, STATED, &[1.0]), (9, None, STATED, &[0.4])], (0.4, None)),
            (&[(0, Some(8.0), Source::ProgressBar, &[1.0]), (9, Some(8.0), ROWS, &[0.4])], (0.4, None)),
            (
                &[(0, Some(8.0), STATED, &[0.9]), (9, Some(8.0), ROWS, &[0.4]), (0, Some(9.0), STATED, &[0.3])],
                (0.3, None),
            ),
            (&[(0, Some(8.0), STATED, &[0.84]), (9, Some(8.0), Source::Recorded, &[0.8366])], (0.84, None)),
        ];
        for (readings, expected) in CASES {
            let mut figures = Figures::new(Some("acc".to_owned()));
            for (origin, step, source, values) in readings {
                let values = values.iter().map(|number| value("acc", *number, *source)).collect();
                figures.take(&mut Logged { step: *step, values, time: None, origin: *origin });
            }
            let metric = figures.metrics()["acc"];
            assert_eq!((metric.last, metric.other), expected, "{readings:?}");
        }
    }

    #[test]
    fn rounding_and_per_cent_are_no_disagreement() {
        for (one, other) in
            [(0.84, 0.8366), (84.0, 0.8366), (0.02, 0.0168), (1.0, 0.996), (1.2e-5, 1.234e-5), (3.0, 3.0)]
        {
            assert!(!differ(one, other) && !differ(other, one), "{one} {other}");
        }
        for (one, other) in [(1.0, 0.4), (0.5, 0.4), (f64::NAN, 0.4), (f64::INFINITY, 0.4), (12.0, 950.0), (1e-5, 2e-5)]
        {
            assert!(differ(one, other) && differ(other, one), "{one} {other}");
        }
    }
}
