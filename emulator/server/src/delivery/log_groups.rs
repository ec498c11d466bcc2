//! Log groups that are targets of rules, as far as CloudWatch Logs records events in them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

/// An event that a rule has recorded.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// The event as JSON.
    pub(crate) message: String,
    pub(crate) ingested: Timestamp,
}

/// The recorded events by the name of their log group, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct LogGroups(Mutex<BTreeMap<String, Vec<Line>>>);

impl LogGroups {
    pub(super) fn put(&self, group: &str, message: &str) {
        let line = Line { message: message.to_owned(), ingested: Timestamp::now() };
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        groups.entry(group.to_owned()).or_default().push(line);
    }

    /// Returns up to `limit` events from number `from` on; `None` if no event has gone to the group.
    pub(crate) fn page(&self, group: &str, from: usize, limit: usize) -> Option<Vec<Line>> {
        let groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(groups.get(group)?.iter().skip(from).take(limit).cloned().collect())
    }
}

/// Returns the name in `arn:aws:logs:<region>:<account>:log-group:<name>[:*]`.
pub(super) fn group_of(arn: &str) -> Option<&str> {
    let (service, name) = arn.split_once(":log-group:")?;
    service.starts_with("arn:aws:logs:").then(|| name.strip_suffix(":*").unwrap_or(name))
}
