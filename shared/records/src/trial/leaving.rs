//! An attempt that leaves before its workspace comes.

use serde::{Deserialize, Serialize};

/// What the runner of an attempt has reported before its workspace came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Leaving {
    /// The attempt leaves. The next one may start on the same instance.
    Left,
    /// EC2 takes the instance.
    Noticed,
}
