//! The states of a job in AWS Batch.

use serde::{Deserialize, Serialize};

/// Batch's job states, in the order in which an attempt passes through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum JobStatus {
    /// Accepted.
    Submitted,
    /// Waiting for a dependency; an array parent stays here until its children are done.
    Pending,
    /// Waiting for capacity.
    Runnable,
    /// Placed on an instance; the image is being pulled.
    Starting,
    /// The container runs.
    Running,
    /// Ended with exit code 0.
    Succeeded,
    /// Ended otherwise, and not to be retried.
    Failed,
}

impl JobStatus {
    /// Whether Batch will not change it any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}
