//! What the training wrote and the runner has not searched for metrics: people see it with the trial.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::log::say;

/// So many are kept.
const MOST: usize = 8;

/// Collects it, each once. Clones are one collection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unread(Arc<Mutex<BTreeMap<String, bool>>>);

impl Unread {
    /// Something that may have had any metric: a sentence without its full stop.
    pub(crate) fn add(&self, what: String) {
        self.keep(what, false);
    }

    /// Something of a kind that is never read. It matters only where the sweep's metric was found nowhere.
    pub(crate) fn add_other(&self, what: String) {
        self.keep(what, true);
    }

    fn keep(&self, what: String, is_other: bool) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST && !known.contains_key(&what) {
            if !is_other {
                say(&format!("not searched for metrics: {what}"));
            }
            known.insert(what, is_other);
        }
    }

    /// All of it. `has_metric` is whether the sweep's metric was found.
    pub(crate) fn all(&self, has_metric: bool) -> Vec<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter(|(_, is_other)| !(has_metric && **is_other)).map(|(what, _)| what.clone()).collect()
    }
}
