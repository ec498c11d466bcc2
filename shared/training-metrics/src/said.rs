//! What a stream has said of the metric that the sweep file names. Scripts print a table or a history of all epochs at
//! their end, or a table that grows with each epoch: what was said of an epoch already is no further report.

use std::collections::HashMap;

use spotsweep_protocol::metric::Source;

use crate::figures::differ;
use crate::logged::{Logged, Value};
use crate::names::Named;

/// Steps that are known. The values of a longer training are reported again.
const MOST_STEPS: usize = 20_000;

/// By their steps, the newest values of lines for people and of what is more reliable.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    values: HashMap<u64, f64>,
    is_any: bool,
}

/// What is left out of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// The same value of a step: another part of a training may count its steps from the beginning again.
    Same,
    /// A value that may be the same, rounded, of a step that may be counted from 1 instead of 0; and what has no step, if
    /// anything was said.
    Near,
}

impl Said {
    /// Takes in what is said.
    pub(crate) fn take(&mut self, found: &Logged, named: &Named) {
        for value in found.values.iter().filter(|value| value.source >= Source::Text && named.is(&value.name)) {
            self.is_any = true;
            if let Some(step) = found.step.filter(|_| self.values.len() < MOST_STEPS) {
                self.values.insert(step.to_bits(), value.value);
            }
        }
    }

    /// Leaves out of a row what was said before.
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
            (Repeats::Same, None) => false,
            (Repeats::Near, None) => self.is_any,
        }
    }
}
