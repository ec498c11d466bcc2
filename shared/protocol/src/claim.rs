//! What the runner and `trial-claim` say to each other: one JSON request, one JSON reply.
//!
//! Figures are cumulative over an attempt, so a lost, late or repeated report does no harm.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::metric::{Metric, MetricPattern};
use crate::redact::shown;
use crate::rungs::{Reached, RungPlan};
use crate::secret::Secret;
use crate::stall::StallRule;
use crate::stop::StopReason;

/// The variable that tells a runner how many GPUs its job asks for; not set where it asks for none. Batch itself sets none.
pub const GPUS_VARIABLE: &str = "SPOTSWEEP_GPUS";

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
    /// Files whose names no key can hold, with the reasons: a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What was not searched for metrics: a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// The answer to a [`ClaimRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::large_enum_variant, reason = "one at a time, and not kept")]
pub enum Reply {
    /// The trial is this attempt's, and so is its workspace: attached to the instance, ready to mount.
    Granted(Grant),
    /// The trial is this attempt's; its workspace is on the way. Ask again.
    Waiting {
        /// What it waits for, for the log.
        reason: String,
        /// When to ask again.
        retry_after_ms: u64,
    },
    /// The workspace can't come to this instance, or nothing can be trained here: leave, so that Batch starts the next
    /// attempt elsewhere.
    Unavailable {
        /// Why, for the log.
        reason: String,
    },
    /// Credentials for the trial's parameters and outputs.
    Access(Access),
    /// A report or an end was taken.
    Accepted {},
    /// A report was taken, and the trial is stopped early: the attempt ends its training, uploads what there is, and
    /// exits with 0.
    Stop {
        /// Why, for the log.
        why: String,
    },
    /// The attempt must stop: a newer one has the trial, or the trial is over.
    Refused {
        /// Why.
        reason: StopReason,
    },
}

/// Credentials that reach one trial's parameters and outputs. An hour is the most that AWS gives where one role takes
/// another (<https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles.html#iam-term-role-chaining>).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Access key id.
    pub access_key_id: String,
    /// Secret access key.
    pub secret_access_key: String,
    /// Session token.
    pub session_token: String,
    /// When they stop to work.
    pub expires_at: Timestamp,
}

impl fmt::Debug for Access {
    /// Without the secrets: events and replies are printed in logs.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { access_key_id, expires_at, .. } = self;
        write!(formatter, "Access {{ access_key_id: {access_key_id:?}, expires_at: {expires_at}, .. }}")
    }
}

/// Where a granted attempt finds its parameters and leaves its outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// One line of `trials.jsonl`.
    pub parameters: ByteRange,
    /// Where outputs go.
    pub outputs: Prefix,
    /// Which files of the storage folder are outputs; all where both lists are empty.
    #[serde(default)]
    pub patterns: Patterns,
    /// The attempt's workspace; absent where the sweep has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceGrant>,
    /// Training code to fetch before the command runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeGrant>,
    /// The metric that the sweep file names: its name may have characters that other names do not have in text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Patterns that find metrics in the training's output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricPattern>,
    /// Where W&B puts the trial's run.
    #[serde(default, skip_serializing_if = "WandbPlace::is_default")]
    pub wandb: WandbPlace,
    /// What is done about a training that hangs.
    #[serde(default)]
    pub stalls: StallRule,
    /// The trial's parameters, where they were suggested: in place of those of its line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested: Option<serde_json::Map<String, serde_json::Value>>,
    /// The rungs at which trials of the sweep are compared; absent where none is stopped early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rungs: Option<RungPlan>,
    /// UUIDs of the GPUs that ECS has assigned to the container; absent where the claim names no task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Vec<String>>,
}

/// Where W&B puts the runs of a sweep: its own defaults where these are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WandbPlace {
    /// `project` of the sweep file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// `entity` of the sweep file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
}

impl WandbPlace {
    /// Whether W&B's own defaults hold.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// An attached volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceGrant {
    /// `vol-…`
    pub volume: String,
    /// The name that AttachVolume was given, such as `/dev/sdf`: the device's name on Xen instances. On Nitro
    /// instances it is found by the volume's id (fact 27).
    pub device: String,
    /// Whether it was made empty and never mounted: only then may the runner make a file system.
    pub blank: bool,
}

/// Code in git, pinned.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeGrant {
    /// URL of the repository.
    pub git: String,
    /// Branch, tag or commit; the default branch where absent. The first attempt pins it to a commit on the
    /// workspace, so that later attempts run the same code.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

impl fmt::Debug for CodeGrant {
    /// Without credentials: records and replies are printed in logs.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { git, reference } = self;
        write!(formatter, "CodeGrant {{ git: {:?}, reference: {reference:?} }}", shown(git))
    }
}

/// Glob patterns, relative to the storage folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Patterns {
    /// Only these; everything where empty.
    pub include: Vec<String>,
    /// None of these.
    pub exclude: Vec<String>,
}

/// A part of one S3 object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteRange {
    /// Bucket name.
    pub bucket: String,
    /// Object key.
    pub key: String,
    /// First byte, from 0.
    pub first_byte: u64,
    /// Last byte, inclusive as in an HTTP `Range` header.
    pub last_byte: u64,
}

/// A place in a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    /// Bucket name.
    pub bucket: String,
    /// Key prefix with its trailing slash.
    pub prefix: String,
}

/// One line of `trials.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialLine {
    /// The trial's index within the sweep.
    pub index: u32,
    /// Parameter names and values, in the sweep file's order.
    pub parameters: serde_json::Map<String, serde_json::Value>,
}
