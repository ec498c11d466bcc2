//! A metric: its name, its figures, and the patterns that find it.

use std::borrow::Cow;
use std::cmp::Ordering;

use regex::{Regex, RegexBuilder};
use regex_automata::util::syntax;
use serde::{Deserialize, Serialize};

use crate::expression;

/// The most patterns of a sweep file.
pub const MOST_METRIC_PATTERNS: usize = 40;
/// The most bytes of a compiled pattern.
const MOST_COMPILED_BYTES: usize = 1 << 20;

/// The most bytes of a metric's name.
pub const MAX_METRIC_NAME: usize = 200;

/// Whether a metric with this name can be recorded. The name is printed in terminals, pages and tables, so it has no
/// control characters. The runner writes those as escapes: see [`metric_name`].
pub fn is_metric_name(name: &str) -> bool {
    (1..=MAX_METRIC_NAME).contains(&name.len()) && !name.contains(char::is_control)
}

/// Returns a name that a training has chosen, with control characters as escapes: `a\u{1b}b`, `a\tb`.
pub fn metric_name(name: &str) -> Cow<'_, str> {
    if !name.contains(char::is_control) {
        return Cow::Borrowed(name);
    }
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(name.chars().map(escaped).collect())
}

/// The source of a value, the least reliable first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A metric of the training data, or of the best epoch so far, although the name does not state it: `train
    /// accuracy: 0.9`, `Best accuracy: 0.9`.
    OfTraining,
    /// A moving average, although the name does not state it: `EMA val_loss: 0.4`.
    Smoothed,
    /// A file that was complete when it was first read. It may be another program's, such as that of a downloaded
    /// model.
    Found,
    /// A progress bar: rounded, and often a mean over a part of an epoch.
    ProgressBar,
    /// A file of rows to which the training appends.
    Rows,
    /// A line for people: `val_acc: 0.9`.
    Text,
    /// A file in which each value has the time of its recording: TensorBoard, W&B.
    Recorded,
    /// Text that was written for this purpose: `name=value`, a JSON object, `$SPOTSWEEP_METRICS`, a pattern of the
    /// sweep file.
    #[default]
    Stated,
}

impl Source {
    fn is_stated(&self) -> bool {
        *self == Self::Stated
    }

    /// Whether a rung counts its values: each is a report of its own, and a measure of the trained model. A progress
    /// bar repeats its values, so it does not count.
    pub fn is_counted(self) -> bool {
        match self {
            Self::OfTraining | Self::Found | Self::ProgressBar => false,
            Self::Smoothed | Self::Rows | Self::Text | Self::Recorded | Self::Stated => true,
        }
    }
}

/// One metric's figures over an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The newest value. It is NaN or infinite if the training has diverged.
    #[serde(with = "crate::number")]
    pub last: f64,
    /// The step (as the training counts them) of the newest value.
    #[serde(with = "crate::number::optional", default)]
    pub step: Option<f64>,
    /// The smallest finite value so far; NaN if there is none.
    #[serde(with = "crate::number")]
    pub min: f64,
    /// The largest finite value so far; NaN if there is none.
    #[serde(with = "crate::number")]
    pub max: f64,
    /// The most reliable source so far, to which the bounds belong.
    #[serde(default, skip_serializing_if = "Source::is_stated")]
    pub source: Source,
    /// Another reading for the step of `last`, if two disagree. One of them may be of something else.
    #[serde(with = "crate::number::optional", default, skip_serializing_if = "Option::is_none")]
    pub other: Option<f64>,
}

impl Metric {
    /// Returns the figures of one value.
    pub fn of(value: f64, step: Option<f64>, source: Source) -> Self {
        let bound = if value.is_finite() { value } else { f64::NAN };
        Self { last: value, step, min: bound, max: bound, source, other: None }
    }

    /// Merges these figures with those of a `newer` report. The newest value counts whatever its source is. A less
    /// reliable source reports another series, rounded or of a part of an epoch, so its bounds do not count.
    #[must_use]
    pub fn and(self, newer: Self) -> Self {
        let Self { last, step, other, .. } = newer;
        match newer.source.cmp(&self.source) {
            Ordering::Less => Self { last, step, other, ..self },
            // `f64::min` prefers a bound to NaN.
            Ordering::Equal => {
                Self { last, step, other, min: self.min.min(newer.min), max: self.max.max(newer.max), ..self }
            }
            Ordering::Greater => newer,
        }
    }
}

/// A metric that a regular expression finds in lines of the training's output, as in SageMaker
/// (<https://docs.aws.amazon.com/sagemaker/latest/dg/automatic-model-tuning-define-metrics-variables.html>).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricPattern {
    /// The metric's name.
    pub name: String,
    /// The expression; its first group is the value.
    pub regex: String,
}

/// The reason why a pattern cannot be used, as a clause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableRegex(String);

impl MetricPattern {
    /// Checks that [`MetricPattern::compile`] accepts the expression, for the sweep file's validation.
    ///
    /// # Errors
    /// As [`MetricPattern::compile`].
    pub fn check(&self) -> Result<(), UnusableRegex> {
        let automaton = expression::compile(&[&self.regex], syntax::Config::new(), MOST_COMPILED_BYTES);
        if automaton.map_err(UnusableRegex)?.group_info().explicit_slot_len() == 0 {
            return Err(UnusableRegex("it has no group in parentheses, which is to be the value".to_owned()));
        }
        Ok(())
    }

    /// Compiles the expression, on the instance.
    ///
    /// # Errors
    /// If it cannot be compiled, or if it has no group.
    pub fn compile(&self) -> Result<Regex, UnusableRegex> {
        self.check()?;
        let built = RegexBuilder::new(&self.regex).size_limit(MOST_COMPILED_BYTES).build();
        built.map_err(|error| UnusableRegex(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Parts of expressions: complete ones, halves, and some that together exceed the limit.
    const PARTS: &[&str] = &[
        "a", "é", ".", "|", "*", "+?", "(", ")", "(?:", "(?i)", "(?x)", "(?-u)", "(?P<x>", "(?=", "[", "]", "[^a-f]",
        "{2}", "{2,", "{500}", "{900,}", r"\\", r"\b", r"\B", r"\d", r"\w{40}", r"\pL", r"\p{Lu}", r"\1", r"\xff", "^",
        "$",
    ];

    #[test]
    fn bounds_are_those_of_the_most_reliable_source() {
        let of = |value, source| Metric::of(value, None, source);
        let bar = of(0.99, Source::ProgressBar);
        let stated = of(0.5, Source::Stated);
        assert_eq!(bar.and(stated), stated);
        assert_eq!(stated.and(bar), Metric { last: 0.99, ..stated }, "of a later attempt");
        assert_eq!(stated.and(of(0.75, Source::Stated)), Metric { last: 0.75, max: 0.75, ..stated });
        assert_eq!(stated.and(of(f64::NAN, Source::Stated)).max, 0.5);
        let doubtful = Metric { other: Some(1.0), ..stated };
        assert_eq!((bar.and(doubtful).other, doubtful.and(stated).other), (Some(1.0), None), "of the newest value");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn what_passes_the_check_is_what_compiles(parts in vec(select(PARTS), 1..8)) {
            let regex = format!("({})", parts.concat());
            let compiles = RegexBuilder::new(&regex).size_limit(MOST_COMPILED_BYTES).build();
            let checked = MetricPattern { name: "x".to_owned(), regex }.check();
            prop_assert_eq!(checked.is_ok(), compiles.is_ok(), "{:?}, {:?}", checked, compiles);
        }
    }
}
