//! The requests and reports of an attempt.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::data_set::Fetch;
use crate::metric::Metric;
use crate::rungs::Reached;
use crate::secret::Secret;

/// One request of an attempt. Unknown fields are tolerated, so that an older function can serve a newer runner.
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
    /// The sweep's claim token, from the container's environment. A request without it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// The runner's secret. A request without it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// The kind of the request.
    #[serde(flatten)]
    pub request: Request,
}

/// The kind of a request, with its fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "lowercase")]
pub enum Request {
    /// The attempt asks for its trial. A claim fences every older attempt.
    Claim(Machine),
    /// The attempt that has the trial asks for credentials, before it first uses the bucket and when they are about to
    /// expire.
    Access,
    /// The workspace is mounted, and its checkpoints have been verified against the manifest.
    Mounted {
        /// The volume: `vol-…`.
        volume: String,
        /// The content of the workspace.
        found: Found,
        /// Seconds from the grant until the workspace was mounted and verified.
        seconds: f64,
    },
    /// The instance's metadata service has announced its end, or recommends to leave. EventBridge reports that too, at
    /// best effort (fact 2), and the first of the two counts.
    Notice {
        /// Which of the two announcements it is.
        kind: NoticeKind,
    },
    /// The attempt fetches its data sets. The highest figure counts.
    Fetching {
        /// How far it has come.
        fetch: Fetch,
    },
    /// The metrics so far.
    Report {
        /// The report's number within the attempt. The highest one counts.
        sequence: u64,
        /// The figures by metric name.
        metrics: BTreeMap<String, Metric>,
        /// The newest seal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seal: Option<Seal>,
        /// Seconds since the training's last sign of life, if it is stalled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stalled_seconds: Option<u64>,
        /// All rungs that the trial has reached.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rungs: Vec<Reached>,
    },
    /// The attempt returns the trial for another attempt: the training command has stopped, everything is on disk and
    /// sealed, and the workspace is unmounted.
    Release {
        /// The next number of a report.
        sequence: u64,
        /// The figures by metric name.
        metrics: BTreeMap<String, Metric>,
        /// The last seal; absent if there is nothing to seal.
        seal: Option<Seal>,
        /// The checkpoint that was quarantined, if the training failed on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rollback: Option<Rollback>,
        /// Seconds without a sign of life, if the attempt was ended for that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stalled_seconds: Option<u64>,
        /// All rungs that the trial has reached.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rungs: Vec<Reached>,
    },
    /// The training command has ended, everything is uploaded, the workspace is unmounted.
    End {
        /// The next number of a report.
        sequence: u64,
        /// The exit code of the job: the training command's, 128 + signal if a signal ended it, or the runner's own if
        /// only the collection failed.
        exit_code: i32,
        /// The figures by metric name.
        metrics: BTreeMap<String, Metric>,
        /// The uploaded outputs.
        outputs: Outputs,
        /// The wall time of the training command.
        seconds: f64,
        /// The reason of a failure in the training's output: one line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Seconds without a sign of life, if the training and with it the trial were ended for that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stalled_seconds: Option<u64>,
        /// All rungs that the trial has reached.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rungs: Vec<Reached>,
    },
}

/// The instance of an attempt, as its metadata service describes it, and what is wrong with it. The fields are empty
/// without a metadata service.
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
    /// The instance's way of payment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub market: Option<Market>,
    /// A defect that prevents every training, such as a GPU that does not answer. The attempt still claims, and leaves,
    /// so that the instance is drained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defect: Option<String>,
    /// The ECS task, if the attempt has to learn which GPUs it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
}

/// A container of an ECS task, by the names that the container's metadata endpoint gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// `arn:aws:ecs:<region>:<account>:task/<cluster>/<id>`
    pub arn: String,
    /// The container's name in the task.
    pub container: String,
}

/// An instance's way of payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Market {
    /// The spot price of its zone, which changes.
    Spot,
    /// The on-demand price.
    OnDemand,
}

/// EC2's two announcements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoticeKind {
    /// The instance will be taken in two minutes or less.
    Interruption,
    /// The instance is more likely to be taken than others.
    Rebalance,
}

/// The runner's proof that checkpoints are whole on disk. The checkpoint manifest, with every file's hash, is on the
/// workspace. This is the control plane's part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The number of files in the manifest.
    pub files: u64,
    /// The size of the files in bytes.
    pub bytes: u64,
    /// The newest checkpoint's path under `checkpoints/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
}

/// A training that resumed has failed before it made progress. Its newest checkpoint may be the cause, so the runner
/// has quarantined it, and the next attempt starts from the one before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// The quarantined checkpoint: its path under `checkpoints/`.
    pub checkpoint: String,
    /// The training command's exit code.
    pub exit_code: i32,
    /// The checkpoint before; absent if the next attempt starts from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl Rollback {
    /// The text between the checkpoint and the exit code.
    pub(crate) const NOT_LOADED: &str = " could not be loaded (exit code ";
}

impl fmt::Display for Rollback {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { checkpoint, exit_code, to: before } = self;
        let before = before.as_deref().unwrap_or("the beginning");
        write!(to, "{checkpoint}{}{exit_code}); went back to {before}", Self::NOT_LOADED)
    }
}

/// The content of the workspace that an attempt has mounted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// Whether the runner had to make the file system.
    pub formatted: bool,
    /// The newest checkpoint that the training can load; absent if there is none.
    pub newest: Option<String>,
    /// Checkpoints that differed from the manifest and were quarantined.
    pub torn: Vec<String>,
    /// Files in the manifest that no longer exist.
    pub missing: Vec<String>,
}

impl Found {
    /// Whether the volume has the sealed checkpoints, or at least an older whole one.
    pub fn is_usable(&self) -> bool {
        (self.torn.is_empty() && self.missing.is_empty()) || self.newest.is_some()
    }
}

/// The outputs that an attempt has uploaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outputs {
    /// Number of objects.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// What was not collected, with the reasons: a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What was not searched for metrics: a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// Whether the objects are only the runner's own, and none is a file of the training.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_files: bool,
}
