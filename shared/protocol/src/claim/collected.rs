//! What is collected of a success's newest checkpoint, as a later sweep's trial goes on from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The record's name below the trial's prefix. It is put after all of its files, so that they are there where it is.
pub const COLLECTED: &str = "collected.json";

/// The newest checkpoint of a trial that has succeeded, with all its files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected {
    /// Its files, in the order of their paths.
    pub files: Vec<CollectedFile>,
    /// Symbolic links that lead to it, by their paths under `checkpoints/`, with their targets: no object can be one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, String>,
}

/// One file of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectedFile {
    /// Its path under `checkpoints/`.
    pub path: String,
    /// The end of its key, below the trial's prefix.
    pub key: String,
    /// Its size.
    pub bytes: u64,
    /// When it was modified, in nanoseconds since 1970: scripts start from the newest file.
    pub modified_ns: i64,
    /// S3's tag of the object as it was put: an object with another one is not what was collected.
    pub etag: String,
}

impl Collected {
    /// The size of all its files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }
}
