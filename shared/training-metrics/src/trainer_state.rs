//! `trainer_state.json`, which Hugging Face's Trainer writes into each checkpoint: its log so far.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use spotsweep_protocol::metric::Source;

use crate::json_line;
use crate::logged::Logged;

/// Its name.
pub(crate) const NAME: &str = "trainer_state.json";

/// Entries of all such files of a trial: each checkpoint has those of the ones before it.
#[derive(Debug, Default)]
pub(crate) struct Seen(BTreeSet<(u64, String)>);

impl Seen {
    /// The entries of a file that were in none before it.
    pub(crate) fn new_in(&mut self, text: &str) -> Vec<Logged> {
        let Ok(Json::Object(state)) = serde_json::from_str(text) else { return Vec::new() };
        let Some(Json::Array(log)) = state.get("log_history") else { return Vec::new() };
        let entries = log.iter().filter_map(Json::as_object).map(|entry| json_line::of_object(entry, Source::Found));
        let mut found = Vec::new();
        for entry in entries {
            let Some(first) = entry.values.first() else { continue };
            if self.0.insert((entry.step.unwrap_or_default().to_bits(), first.name.clone())) {
                found.push(entry);
            }
        }
        found
    }
}
