//! Early stopping: decides whether a trial that has reached a rung may go on.
//!
//! A rule is a function of the curves that it gets. It has no state, and the order of the curves makes no difference. A
//! trial is compared at the newest of the rule's rungs that it has reached, with the trials that have reached the same
//! rung. Only a trial that is worse than the cut stops. So equal trials all go on, and so does the best one.

use serde::{Deserialize, Serialize};

use crate::curve::{Curve, Rung};

mod asha;
pub mod hyperband;
mod median;

pub use asha::asha;
pub use median::{MEDIAN_GROWTH, median};

/// The limit of rungs: 2^53, from which on a 64-bit float is not exact. No training counts so far.
pub const RUNG_LIMIT: u64 = 1 << 53;

/// The most rungs of one rule.
pub const MOST_RUNGS: usize = 1_000;

/// The factor by which an outlier is farther off than the other values.
const APART: f64 = 10.0;

/// Whether a cost is an outlier: it is better than the best of `rest` by more than ten times that one's size, and by
/// more than ten times the distance from there to their middle. An overflow, another unit or a forged figure is such a
/// cost, so others should not be compared with it.
pub fn lies_apart(cost: f64, rest: &[f64]) -> bool {
    let mut rest = rest.to_vec();
    rest.sort_by(f64::total_cmp);
    let middle = rest.get(rest.len().saturating_sub(1) / 2);
    rest.first().zip(middle).is_some_and(|(next, middle)| next - cost > APART * next.abs().max(middle - next))
}

/// The rule by which trials stop before their end. Rungs are ascending, at least 1 and below [`RUNG_LIMIT`].
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Rule {
    /// W&B's hyperband: the best `1/eta` of the trials at a band go on. The judged trial counts too.
    Hyperband {
        /// The rungs, made by [`hyperband`].
        bands: Vec<u64>,
        /// The reduction factor, above 1.
        eta: f64,
        /// Whether the value at the band is compared instead of the best value so far.
        strict: bool,
    },
    /// Ray's asynchronous successive halving with one bracket: the cut is a percentile of the other trials' values.
    Asha {
        /// The rungs, made by [`asha`].
        rungs: Vec<u64>,
        /// The reduction factor, above 1: the best `1/eta` go on.
        eta: f64,
    },
    /// The median rule of Vizier and Ray: compares the best value so far with the median of the others' running means.
    Median {
        /// The rungs, made by [`median`].
        rungs: Vec<u64>,
        /// The fewest other trials that must have reached the rung.
        least: usize,
    },
    /// Strict hyperband that judges a trial only when it is interrupted. The rungs are recorded all the time.
    Interruption {
        /// The rungs, made by [`hyperband`].
        bands: Vec<u64>,
        /// The reduction factor, above 1.
        eta: f64,
    },
}

/// The verdict of a rule on a trial.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The rung at which it was compared.
    pub rung: u64,
    /// The trial's cost at the rung.
    pub value: f64,
    /// The cost that it was compared with. `None` if too few trials have reached the rung.
    pub cut: Option<f64>,
    /// The number of trials that have reached the rung, including this one.
    pub of: usize,
    /// Whether it stops: its value is above the cut.
    pub stops: bool,
}

impl Rule {
    /// Returns the rungs at which trials are compared, ascending.
    pub fn rungs(&self) -> &[u64] {
        match self {
            Self::Hyperband { bands, .. } | Self::Interruption { bands, .. } => bands,
            Self::Asha { rungs, .. } | Self::Median { rungs, .. } => rungs,
        }
    }

    /// Whether a report that reaches a rung causes a judgement. An interruption always does.
    pub fn judges_reports(&self) -> bool {
        match self {
            Self::Hyperband { .. } | Self::Asha { .. } | Self::Median { .. } => true,
            Self::Interruption { .. } => false,
        }
    }

    /// Judges a trial at the newest rung that it has reached. `None` if it has reached none.
    ///
    /// `best` is the trial's best cost so far, if it has gone on from that rung; without it the rung's own cost counts.
    /// `peers` are the curves of all other trials, including those that ended or were stopped, but not the trial's own.
    /// A rung whose figures are not finite counts as not reached, so a trial that diverges is judged by its earlier
    /// figures.
    pub fn judge<'c>(
        &self,
        own: &'c Curve,
        best: Option<f64>,
        peers: impl IntoIterator<Item = &'c Curve>,
    ) -> Option<Verdict> {
        let (rung, figures) = self.newest(own)?;
        let mut others = self.values(rung, peers);
        let of = others.len() + 1;
        if self.counts_itself() {
            others.push(self.compared(figures));
        }
        let cut = self.cut_of(others);
        let best = best.filter(|best| best.is_finite()).map_or(figures.best, |best| best.min(figures.best));
        let value = match self {
            Self::Hyperband { strict: true, .. } | Self::Asha { .. } | Self::Interruption { .. } => figures.value,
            Self::Hyperband { strict: false, .. } | Self::Median { .. } => best,
        };
        Some(Verdict { rung, value, cut, of, stops: cut.is_some_and(|cut| value > cut) })
    }

    /// Judges like [`Rule::judge`], but leaves out the best peer at the rung if its figure is an outlier by
    /// [`lies_apart`] among all other trials, including the judged one. So one odd figure stops no trial.
    pub fn judge_without_outlier(&self, own: &Curve, peers: &[Curve]) -> Option<Verdict> {
        let (rung, figures) = self.newest(own)?;
        let compared = |curve| Some(self.compared(reached(curve, rung)?));
        let at_rung: Vec<(usize, f64)> =
            (0..).zip(peers).filter_map(|(place, peer)| Some((place, compared(peer)?))).collect();
        let first = at_rung.iter().min_by(|one, other| one.1.total_cmp(&other.1));
        let outlier = first.filter(|(first, cost)| {
            let rest = at_rung.iter().filter(|(place, _)| place != first).map(|(_, cost)| *cost);
            lies_apart(*cost, &rest.chain([self.compared(figures)]).collect::<Vec<f64>>())
        });
        let outlier = outlier.map(|(place, _)| *place);
        self.judge(own, None, (0..).zip(peers).filter(|(place, _)| Some(*place) != outlier).map(|(_, peer)| peer))
    }

    /// Returns the cost above which a trial stops at `rung`, if it is compared with `curves`.
    pub fn cut<'c>(&self, rung: u64, curves: impl IntoIterator<Item = &'c Curve>) -> Option<f64> {
        self.cut_of(self.values(rung, curves))
    }

    /// Returns the newest rung that a trial has reached, and its figures there.
    fn newest<'c>(&self, own: &'c Curve) -> Option<(u64, &'c Rung)> {
        self.rungs().iter().rev().find_map(|rung| Some((*rung, reached(own, *rung)?)))
    }

    /// Returns the figures from which the cut is computed, of the curves that have reached the rung.
    fn values<'c>(&self, rung: u64, curves: impl IntoIterator<Item = &'c Curve>) -> Vec<f64> {
        curves.into_iter().filter_map(|curve| reached(curve, rung)).map(|figures| self.compared(figures)).collect()
    }

    fn compared(&self, figures: &Rung) -> f64 {
        match self {
            Self::Hyperband { .. } | Self::Asha { .. } | Self::Interruption { .. } => figures.value,
            Self::Median { .. } => figures.mean,
        }
    }

    fn counts_itself(&self) -> bool {
        match self {
            Self::Hyperband { .. } | Self::Interruption { .. } => true,
            Self::Asha { .. } | Self::Median { .. } => false,
        }
    }

    fn cut_of(&self, mut values: Vec<f64>) -> Option<f64> {
        values.sort_by(f64::total_cmp);
        match self {
            Self::Hyperband { eta, .. } | Self::Interruption { eta, .. } => hyperband::cut(&values, *eta),
            Self::Asha { eta, .. } => asha::cut(&values, *eta),
            Self::Median { least, .. } => median::cut(&values, *least),
        }
    }
}

/// Returns the curve's figures at the rung, if they can be compared.
fn reached(curve: &Curve, rung: u64) -> Option<&Rung> {
    curve.get(&rung).filter(|figures| [figures.value, figures.best, figures.mean].iter().all(|cost| cost.is_finite()))
}

#[cfg(test)]
mod tests;
