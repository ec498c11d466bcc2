//! Warns of instances on which nothing can be trained.

use std::collections::BTreeMap;

use crate::page::cut;
use spotsweep_protocol::words::counted;
use spotsweep_records::trial::{Attempt, Trial};

/// Most instances that the warning names.
const LISTED: usize = 3;
/// Most bytes of the cause for each instance.
const CAUSE_BYTES: usize = 150;

/// Returns the warning if attempts have left unfit instances.
pub(super) fn bad_instances(trials: &[Trial]) -> Option<String> {
    let mut found: BTreeMap<&str, &str> = BTreeMap::new();
    let mut left = 0;
    for attempt in trials.iter().flat_map(|trial| trial.attempts.values()) {
        let Some(cause) = attempt.unfit() else { continue };
        left += 1;
        found.insert(instance(attempt), cause);
    }
    let named = found.iter().take(LISTED).map(|(instance, cause)| format!("{instance}: {}", cut(cause, CAUSE_BYTES)));
    let named = named.collect::<Vec<_>>().join("; ");
    let more = if found.len() > LISTED { "; …" } else { "" };
    let (instances, attempts) = (counted(found.len(), "instance"), counted(left, "attempt"));
    (left > 0).then(|| format!("nothing can be trained on {instances}, which {attempts} left again: {named}{more}"))
}

fn instance(attempt: &Attempt) -> &str {
    attempt.instance.as_deref().unwrap_or("an instance of unknown id")
}
