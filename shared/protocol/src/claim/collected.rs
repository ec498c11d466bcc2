//! The record of a successful trial's newest checkpoint in the bucket, from which a later sweep's trial starts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The record's name below the trial's prefix. It is put after all of its files, so if it exists, they do.
pub const COLLECTED: &str = "collected.json";

/// The newest checkpoint of a trial that has succeeded, with all its files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected {
    /// The checkpoint's files, in the order of their paths.
    pub files: Vec<CollectedFile>,
    /// Symbolic links that lead to the checkpoint: paths under `checkpoints/` with their targets. An S3 object cannot
    /// be a link.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, String>,
}

/// One file of a collected checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectedFile {
    /// The file's path under `checkpoints/`.
    pub path: String,
    /// The end of the object's key, below the trial's prefix.
    pub key: String,
    /// The file's size in bytes.
    pub bytes: u64,
    /// The file's modification time, in nanoseconds since 1970, because scripts start from the newest file.
    pub modified_ns: i64,
    /// The ETag that S3 gave the object. An object with another ETag is not the collected one.
    pub etag: String,
}

impl Collected {
    /// Returns the size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }
}
