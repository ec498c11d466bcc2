//! The states of a job in AWS Batch.

use serde::{Deserialize, Serialize};

/// The states of a Batch job, in the order in which an attempt passes through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum JobStatus {
    /// Batch has accepted the job.
    Submitted,
    /// The job waits for a dependency. An array parent stays here until its children are done.
    Pending,
    /// The job waits for capacity.
    Runnable,
    /// The job is placed on an instance, and the image is being pulled.
    Starting,
    /// The container runs.
    Running,
    /// The container ended with exit code 0.
    Succeeded,
    /// The job ended in another way, and Batch does not retry it.
    Failed,
}

impl JobStatus {
    /// Whether Batch will not change this state any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}
