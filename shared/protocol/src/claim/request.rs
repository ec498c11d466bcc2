//! What an attempt requests and reports.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::rungs::Reached;
use crate::secret::Secret;

/// One request of an attempt. Unknown fields are tolerated, so an older function serves a newer runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimRequest {
    /// The sweep's id.
    pub sweep: String,
    /// The trial's index within the sweep, from 0.
    pub index: u32,
    /// The Batch job id: `<parent>:<array index>` for a child of an array job.
    pub job: String,
    /// `AWS_BATCH_JOB_ATTEMPT`: 1 for the first start of the job.
    pub attempt: u32,
    /// The sweep's claim token, from the container's environment. Without it every request is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// The runner's own. Without it every request is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// What the attempt asks or tells.
    #[serde(flatten)]
    pub request: Request,
}

/// What an attempt asks or tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "lowercase")]
pub enum Request {
    /// The attempt asks for its trial. Fences every older attempt.
    Claim(Machine),
    /// The attempt that has the trial asks for credentials, before its first look into the bucket and whenever they
    /// are about to expire.
    Access,
    /// The workspace is mounted, and its checkpoints have been held against the seal.
    Mounted {
        /// The volume: `vol-…`.
        volume: String,
        /// What lies on it.
        found: Found,
        /// From the grant until it was mounted and verified.
        seconds: f64,
    },
    /// The instance's metadata service has announced its end, or recommends to leave. EventBridge says so
    /// too, at best effort (fact 2): whichever comes first counts.
    Notice {
        /// Which of the two.
        kind: NoticeKind,
    },
    /// The metrics so far.
    Report {
        /// Counts up within the attempt; the highest wins.
        sequence: u64,
        /// By metric name.
        metrics: BTreeMap<String, Metric>,
        /// The newest seal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seal: Option<Seal>,
        /// Seconds since the training has last shown a sign of life, where it is stalled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stalled_seconds: Option<u64>,
        /// All rungs that the trial has reached.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rungs: Vec<Reached>,
    },
    /// The attempt gives the trial back: the training command has stopped, everything is on disk and sealed,
    /// the workspace is unmounted. Another attempt is to go on.
    Release {
        /// Continues the reports' count.
        sequence: u64,
        /// By metric name.
        metrics: BTreeMap<String, Metric>,
        /// The last seal; absent where there is nothing to seal.
        seal: Option<Seal>,
        /// The checkpoint that was put aside, where the training failed on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rollback: Option<Rollback>,
        /// Seconds without a sign of life, where the attempt was ended for that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stalled_seconds: Option<u64>,
        /// All rungs that the trial has reached.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rungs: Vec<Reached>,
    },
    /// The training command has ended, everything is uploaded, the workspace is unmounted.
    End {
        /// Continues the reports' count.
        sequence: u64,
        /// The code that the job exits with: the training command's, 128 + signal where a signal
        /// ended it, or the runner's own where only the collection failed.
        exit_code: i32,
        /// By metric name.
        metrics: BTreeMap<String, Metric>,
        /// What was uploaded.
        outputs: Outputs,
        /// Wall time of the training command.
        seconds: f64,
        /// What its output gives as the reason of a failure: one line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Seconds without a sign of life, where the training was ended for that, and the trial with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stalled_seconds: Option<u64>,
        /// All rungs that the trial has reached.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rungs: Vec<Reached>,
    },
}

/// Where an attempt runs, as the instance's metadata service tells it; nothing is known where there is none. And what
/// is wrong there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The EC2 instance: `i-…`
    pub instance: Option<String>,
    /// Availability zone, such as `us-east-1a`.
    pub zone: Option<String>,
    /// Instance type, such as `g5.xlarge`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// How it is paid for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub market: Option<Market>,
    /// What the runner has found that no training can do without, such as a GPU that does not answer. The attempt claims
    /// all the same, and leaves: the instance takes no further container then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defect: Option<String>,
    /// The ECS task, where the attempt has to learn which GPUs are its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
}

/// A container of an ECS task, as the container's metadata endpoint names both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// `arn:aws:ecs:<region>:<account>:task/<cluster>/<id>`
    pub arn: String,
    /// The container's name in the task.
    pub container: String,
}

/// How an instance is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Market {
    /// At the spot price of its zone, which changes.
    Spot,
    /// At the on-demand price.
    OnDemand,
}

/// EC2's two warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoticeKind {
    /// The instance will be taken in two minutes, or less.
    Interruption,
    /// It is more likely than others to be taken.
    Rebalance,
}

/// The runner's proof that checkpoints are whole on disk. The proof itself, with every file's hash, lies on
/// the workspace; this is what the control plane keeps of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// Number of files under the seal.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The newest checkpoint's path under `checkpoints/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
}

/// A training that resumed failed before it made progress. Its newest checkpoint may be the cause, so the runner has put
/// it aside, and the next attempt starts from the one before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// The checkpoint that was put aside: its path under `checkpoints/`.
    pub checkpoint: String,
    /// The training command's exit code.
    pub exit_code: i32,
    /// The checkpoint before; absent where the next attempt starts from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl Rollback {
    /// Before the exit code in its text.
    pub(crate) const NOT_LOADED: &str = " could not be loaded (exit code ";
}

impl fmt::Display for Rollback {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { checkpoint, exit_code, to: before } = self;
        let before = before.as_deref().unwrap_or("the beginning");
        write!(to, "{checkpoint}{}{exit_code}); went back to {before}", Self::NOT_LOADED)
    }
}

/// What an attempt found on its workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// Whether the runner had to make the file system.
    pub formatted: bool,
    /// The newest checkpoint that training will find; absent where there is none.
    pub newest: Option<String>,
    /// Checkpoints that were not what the seal says, and were put aside.
    pub torn: Vec<String>,
    /// Files that the seal names and that are gone.
    pub missing: Vec<String>,
}

impl Found {
    /// Whether the volume holds what was sealed, or at least an older whole checkpoint of it.
    pub fn is_usable(&self) -> bool {
        (self.torn.is_empty() && self.missing.is_empty()) || self.newest.is_some()
    }
}

/// What an attempt has uploaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outputs {
    /// Number of objects.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// What is not collected, with the reasons: a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What was not searched for metrics: a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// Whether none of them is a file of the training: there are the runner's own objects alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_files: bool,
}
