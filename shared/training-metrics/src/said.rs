//! Remembers which values of the named metric a stream has already printed. Scripts print a table or a history of all
//! epochs at their end, or a table that grows with each epoch. A repeated value of an epoch is no further report.

use std::collections::HashMap;

use spotsweep_protocol::metric::Source;

use crate::data_set;
use crate::figures::differ;
use crate::logged::{Logged, Value};
use crate::names::Named;

/// The most steps that are remembered. Repeated values of a longer training are reported again.
const MOST_STEPS: usize = 20_000;

/// The newest values by step, of lines for people and of more reliable sources.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    values: HashMap<u64, f64>,
    /// Whether a value was in a line that is no history.
    has_lines: bool,
    /// The newest value.
    newest: Option<f64>,
}

/// The repeated values that are removed from rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// The same value of a step. Another part of a training may count its steps from the beginning again.
    Same,
    /// A value that may be the same after rounding, of a step that may be counted from 1 instead of 0.
    Near,
}

impl Said {
    /// Adds the values that a line states, either itself or in a history.
    pub(crate) fn take(&mut self, found: &Logged, is_history: bool, named: &Named) {
        for value in found.values.iter().filter(|value| value.source >= Source::Text && named.is(&value.name)) {
            self.has_lines |= !is_history;
            self.newest = Some(value.value);
            if let Some(step) = found.step.filter(|_| self.values.len() < MOST_STEPS) {
                self.values.insert(step.to_bits(), value.value);
            }
        }
    }

    /// Whether a history without steps repeats printed values, because it ends with the newest one. If its name does
    /// not state the data set, the history may be of the training data, so lines take precedence.
    pub(crate) fn has_history(&self, rows: &[Logged], named: &Named) -> bool {
        let last = rows.last().filter(|_| rows.iter().all(|row| row.step.is_none()));
        let Some(last) = last.and_then(|last| last.values.iter().rfind(|value| named.is(&value.name))) else {
            return false;
        };
        let has_set = named.name().is_some_and(|name| data_set::split(name).is_some());
        self.has_lines && !has_set || self.newest.is_some_and(|newest| !differ(newest, last.value))
    }

    /// Removes repeated values from a row.
    pub(crate) fn leave_out(&self, repeats: Repeats, row: &mut Logged, named: &Named) {
        let step = row.step;
        row.values.retain(|value| !(named.is(&value.name) && self.has(repeats, step, value)));
    }

    fn has(&self, repeats: Repeats, step: Option<f64>, value: &Value) -> bool {
        let said = |step: f64| self.values.get(&step.to_bits());
        match (repeats, step) {
            (Repeats::Same, Some(step)) => said(step).is_some_and(|said| said.to_bits() == value.value.to_bits()),
            (Repeats::Near, Some(step)) => {
                let is_near = |said: &f64| !differ(*said, value.value);
                [step, step + 1.0].into_iter().filter_map(said).any(is_near)
            }
            (_, None) => false,
        }
    }
}
