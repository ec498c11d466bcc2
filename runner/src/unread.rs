//! What the training wrote and the runner has not searched for metrics. People see it with the trial.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::log::say;

/// How many entries are kept.
const MOST: usize = 8;

/// Collects entries, each once. Clones share one collection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unread(Arc<Mutex<BTreeMap<String, bool>>>);

impl Unread {
    /// Adds something that may have had any metric: a sentence without its full stop.
    pub(crate) fn add(&self, what: String) {
        self.keep(what, false);
    }

    /// Adds something of a kind that is never read. It matters only if the sweep's metric was found nowhere.
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

    /// All entries. `has_metric` says whether the sweep's metric was found.
    pub(crate) fn all(&self, has_metric: bool) -> Vec<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter(|(_, is_other)| !(has_metric && **is_other)).map(|(what, _)| what.clone()).collect()
    }
}
