//! The steps that an attempt shows, by what counts them.

use std::collections::BTreeMap;

/// What counts steps. Those of two counters cannot be compared: one may count epochs, and another one batches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counter {
    /// Lines of the output with this metric.
    Printed(String),
    /// Lines of the output, whatever their metrics are.
    Lines,
    /// Values of this metric in the runner's record, which libraries have written to files.
    Recorded(String),
}

/// The steps of one counter in one attempt, with their times in seconds since the trial began.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Series(Vec<(f64, f64)>);

impl Series {
    pub(super) fn add(&mut self, at: f64, step: f64) {
        if self.0.last().is_none_or(|(_, last)| *last != step) {
            self.0.push((at, step));
        }
    }

    /// The first and the last step. `None` if the steps go back, because then they are those of several counters.
    pub(super) fn ends(&self) -> Option<(f64, f64)> {
        let grows = self.0.is_sorted_by(|(_, one), (_, next)| one < next);
        let ((_, first), (_, last)) = self.0.first().zip(self.0.last())?;
        grows.then_some((*first, *last))
    }

    /// The newest step at a time.
    pub(super) fn until(&self, time: f64) -> Option<f64> {
        self.0.iter().rev().find(|(at, _)| *at <= time).map(|(_, step)| *step)
    }

    /// Whether the only step came when the training was ending. Some progress bars are printed then, and never before.
    pub(super) fn is_only_of_the_end(&self, end: Option<f64>) -> bool {
        self.0.len() == 1 && end.is_some_and(|end| self.0[0].0 >= end)
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

/// All counters of an attempt.
pub(super) type Counters = BTreeMap<Counter, Series>;
