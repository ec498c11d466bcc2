//! The answers to an attempt.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::metric::MetricPattern;
use crate::redact::shown;
use crate::rungs::RungPlan;
use crate::stall::StallRule;
use crate::stop::StopReason;

/// The answer to a [`ClaimRequest`](super::ClaimRequest).
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
    /// The outputs of another trial, whose collected checkpoint this one starts from. It is to be put on the workspace once,
    /// before the training starts for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<Prefix>,
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

/// What is collected: glob patterns, relative to the storage folder, and which checkpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Patterns {
    /// Only these; everything where empty.
    pub include: Vec<String>,
    /// None of these.
    pub exclude: Vec<String>,
    /// Which checkpoints are collected with them.
    #[serde(skip_serializing_if = "Checkpoints::is_default")]
    pub checkpoints: Checkpoints,
}

/// Which checkpoints of a trial that has succeeded are collected. They are in a folder of their own among its outputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Checkpoints {
    /// The newest one that is complete: many scripts leave their model only there.
    #[default]
    Newest,
    /// All that are complete.
    All,
    /// No checkpoint.
    None,
}

impl Checkpoints {
    /// Whether records leave it out: a sweep's record is read with each event of its trials.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Bytes that are collected of a trial at most; without a limit where the sweep file asks for it. 20 GiB cost half a
    /// dollar a month in S3 for each trial: more than that only where it is asked for.
    pub fn most_bytes(self) -> Option<u64> {
        match self {
            Self::Newest => Some(20 << 30),
            Self::All | Self::None => None,
        }
    }
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
