//! The results of parameter sets that a sweep trains several times (`repeats`).
//!
//! A set has a rank only if each of its repeats has a result. Otherwise a set could lead because its bad repeats
//! failed, were stopped, or have not finished.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::score::{Score, order, ranked_value, score};
use spotsweep_protocol::words::rounded;
use spotsweep_records::sweep::Ranking;
use spotsweep_records::trial::{Standing, Trial};
use spotsweep_sweep_file::Repeats;

/// A parameter set of which at least one trial has started.
#[derive(Debug, Clone, PartialEq)]
pub struct Set<'a> {
    /// The number from 0, which is the index of the set's first trial.
    pub number: u32,
    /// The trials of the set that have started, best first.
    pub trials: Vec<&'a Trial>,
    /// The mean of the trials that have a result; `None` where none has.
    pub mean: Option<Mean>,
    /// The results that are missing.
    pub lacks: Lacks,
}

/// The mean of a set's results.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Its standard error: the sample's standard deviation divided by the root of the number of results. It is absent
    /// for one result.
    pub standard_error: Option<f64>,
    /// Number of results.
    pub results: usize,
}

/// How many trials of a set have no result, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lacks {
    /// How many trials the set has in all.
    pub of: usize,
    failed: usize,
    stopped: usize,
    cancelled: usize,
    diverged: usize,
    without: usize,
    open: usize,
}

impl Set<'_> {
    /// Whether each trial of the set has a result, so that the set has a rank.
    pub fn is_complete(&self) -> bool {
        self.lacks == Lacks { of: self.lacks.of, ..Lacks::default() }
    }

    /// Returns the indexes of the set's started trials, ascending.
    pub fn indexes(&self) -> Vec<u32> {
        let mut indexes: Vec<u32> = self.trials.iter().map(|trial| trial.index).collect();
        indexes.sort_unstable();
        indexes
    }
}

impl Mean {
    /// Returns the mean of finite values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let results = values.len();
        let count = results as f64;
        // Each value is divided before the sum, because the sum of large numbers could be infinite.
        let mean: f64 = values.iter().map(|value| value / count).sum();
        let squares = || values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let error = (results > 1).then(|| (squares() / (count - 1.0) / count).sqrt());
        (results > 0).then_some(Self { mean, standard_error: error.filter(|error| error.is_finite()), results })
    }
}

impl fmt::Display for Mean {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&rounded(self.mean, 4))?;
        if let Some(error) = self.standard_error {
            write!(to, " ± {}", rounded(error, 4))?;
        }
        write!(to, " (mean of {})", self.results)
    }
}

impl Lacks {
    fn of(by: Option<&Ranking>, of: usize, trials: &[&Trial]) -> Self {
        let mut lacks = Self { of, open: of.saturating_sub(trials.len()), ..Self::default() };
        for trial in trials {
            let score = by.map_or(Score::Missing, |by| score(by, trial));
            let count = match (trial.standing(), score) {
                (Standing::Succeeded, Score::Value(_)) => continue,
                (Standing::Succeeded, Score::Diverged) => &mut lacks.diverged,
                (Standing::Succeeded, Score::Missing) => &mut lacks.without,
                (Standing::Failed, _) => &mut lacks.failed,
                (Standing::Stopped, _) => &mut lacks.stopped,
                (Standing::Cancelled, _) => &mut lacks.cancelled,
                (Standing::Waiting | Standing::Starting | Standing::Running, _) => &mut lacks.open,
            };
            *count += 1;
        }
        lacks
    }

    /// Whether some of the missing results will never come.
    pub fn is_final(self) -> bool {
        self.failed + self.stopped + self.cancelled + self.diverged + self.without > 0
    }
}

/// Writes `1 of 3 failed, 1 not finished`, or nothing if no result is missing.
impl fmt::Display for Lacks {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.failed, "failed"),
            (self.stopped, "stopped early"),
            (self.cancelled, "cancelled"),
            (self.diverged, "diverged"),
            (self.without, "without the metric"),
            (self.open, "not finished"),
        ];
        for (at, (count, what)) in counts.iter().filter(|(count, _)| *count > 0).enumerate() {
            match at {
                0 => write!(to, "{count} of {} {what}", self.of)?,
                _ => write!(to, ", {count} {what}")?,
            }
        }
        Ok(())
    }
}

/// Returns the sets from best to worst: those with the most results first, then by their mean. Equal ones are ordered
/// by number.
pub fn sets<'a>(by: Option<&Ranking>, repeats: &Repeats, trials: &'a [Trial]) -> Vec<Set<'a>> {
    let mut grouped: BTreeMap<u32, Vec<&Trial>> = BTreeMap::new();
    for trial in trials {
        let number = u32::try_from(repeats.set_of(trial.index.into())).unwrap_or(trial.index);
        grouped.entry(number).or_default().push(trial);
    }
    let set = |(number, mut trials): (u32, Vec<&'a Trial>)| {
        trials.sort_by(|left, right| order(by, left, right));
        let results: Vec<f64> = trials.iter().filter_map(|trial| ranked_value(by?, trial)).collect();
        let (mean, lacks) = (Mean::of(&results), Lacks::of(by, repeats.values.len(), &trials));
        Set { number, trials, mean, lacks }
    };
    let mut sets: Vec<Set<'a>> = grouped.into_iter().map(set).collect();
    sets.sort_by(|left, right| order_of_sets(by, left, right));
    sets
}

fn order_of_sets(by: Option<&Ranking>, left: &Set<'_>, right: &Set<'_>) -> Ordering {
    let results = |set: &Set<'_>| set.mean.map_or(0, |mean| mean.results);
    let cost = |set: &Set<'_>| by.zip(set.mean).map_or(0.0, |(by, mean)| by.cost(mean.mean));
    let most = results(right).cmp(&results(left));
    most.then(cost(left).total_cmp(&cost(right))).then(left.number.cmp(&right.number))
}
