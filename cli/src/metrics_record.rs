//! The record of metrics that the runner keeps of a trial: on its volume, and among its outputs at its end.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The record's name in the runner's folder, and next to the outputs.
pub(crate) const NAME: &str = "metrics.jsonl";

/// One line of the record. A value is read as `V`.
#[derive(Deserialize)]
pub(crate) struct Line<V> {
    /// Seconds since 1970.
    pub(crate) time: f64,
    pub(crate) step: Option<f64>,
    pub(crate) metrics: BTreeMap<String, V>,
}

/// Reads the lines of a record. Incomplete ones are skipped: a record that is being written may end anywhere.
pub(crate) fn lines<V: DeserializeOwned>(record: &[u8]) -> impl Iterator<Item = Line<V>> {
    record.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}
