//! The replies to an attempt.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::preparation::Preparation;
use crate::metric::MetricPattern;
use crate::rungs::RungPlan;
use crate::stall::StallRule;
use crate::stop::StopReason;

/// The reply to a [`ClaimRequest`](super::ClaimRequest).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::large_enum_variant, reason = "one at a time, and not kept")]
pub enum Reply {
    /// The attempt has the trial and its workspace, which is attached to the instance and ready to mount.
    Granted(Grant),
    /// The attempt has the trial, but its workspace is not ready. The runner has to ask again.
    Waiting {
        /// The reason of the wait, for the log.
        reason: String,
        /// The milliseconds after which to ask again.
        retry_after_ms: u64,
    },
    /// The workspace cannot be attached to this instance, or nothing can be trained here. The runner has to leave, so
    /// that Batch starts the next attempt on another instance.
    Unavailable {
        /// The reason, for the log.
        reason: String,
    },
    /// Credentials for the trial's parameters and outputs.
    Access(Access),
    /// A report or an end was recorded.
    Accepted {},
    /// A report was recorded, and the trial is stopped early. The attempt has to end its training, upload its outputs,
    /// and exit with 0.
    Stop {
        /// The reason, for the log.
        why: String,
    },
    /// The attempt must stop, because a newer one has the trial or the trial has ended.
    Refused {
        /// The reason.
        reason: StopReason,
    },
}

/// Credentials for one trial's parameters and outputs. They last an hour, the most that AWS gives when one role assumes
/// another (<https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles.html#iam-term-role-chaining>).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Access key id.
    pub access_key_id: String,
    /// Secret access key.
    pub secret_access_key: String,
    /// Session token.
    pub session_token: String,
    /// The time at which the credentials expire.
    pub expires_at: Timestamp,
}

impl fmt::Debug for Access {
    /// Leaves out the secrets, because events and replies are printed in logs.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { access_key_id, expires_at, .. } = self;
        write!(formatter, "Access {{ access_key_id: {access_key_id:?}, expires_at: {expires_at}, .. }}")
    }
}

/// The places of a granted attempt's parameters and outputs, and its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// One line of `trials.jsonl`.
    pub parameters: ByteRange,
    /// The prefix of the trial's outputs.
    pub outputs: Prefix,
    /// The files of the storage folder that are outputs; all files if both lists are empty.
    #[serde(default)]
    pub patterns: Patterns,
    /// The attempt's workspace; absent if the sweep has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceGrant>,
    /// The outputs of another trial, whose collected checkpoint this one starts from. The runner has to put it on the
    /// workspace once, before the first training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<Prefix>,
    /// What is prepared before the command runs.
    #[serde(default, rename = "code", skip_serializing_if = "Option::is_none")]
    pub preparation: Option<Preparation>,
    /// The metric that the sweep file names. Its name may have characters that names found in text cannot have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Patterns that find metrics in the training's output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricPattern>,
    /// The W&B project and entity of the trial's run.
    #[serde(default, skip_serializing_if = "WandbPlace::is_default")]
    pub wandb: WandbPlace,
    /// The limits for a stall.
    #[serde(default)]
    pub stalls: StallRule,
    /// The trial's parameters if they were suggested. They replace those of its line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested: Option<serde_json::Map<String, serde_json::Value>>,
    /// The rungs at which trials of the sweep are compared; absent if no trial is stopped early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rungs: Option<RungPlan>,
    /// UUIDs of the GPUs that ECS has assigned to the container; absent if the claim names no task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Vec<String>>,
}

/// The W&B project and entity of a sweep's runs. W&B's defaults apply if they are absent.
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
    /// Whether W&B's own defaults apply.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// An attached volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceGrant {
    /// `vol-…`
    pub volume: String,
    /// The name that AttachVolume was given, such as `/dev/sdf`. It is the device's name on Xen instances. On Nitro
    /// instances the device is found by the volume's id (fact 27).
    pub device: String,
    /// Whether the volume was created empty and never mounted. Only then may the runner make a file system.
    pub blank: bool,
}

/// The files to collect: glob patterns relative to the storage folder, and the checkpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Patterns {
    /// The patterns of files to collect; all files if empty.
    pub include: Vec<String>,
    /// The patterns of files to leave out.
    pub exclude: Vec<String>,
    /// The checkpoints to collect.
    #[serde(skip_serializing_if = "Checkpoints::is_default")]
    pub checkpoints: Checkpoints,
}

/// Which checkpoints of a trial that has succeeded are collected. They are in a folder of their own among its outputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Checkpoints {
    /// The newest complete checkpoint, because many scripts leave their model only there.
    #[default]
    Newest,
    /// All complete checkpoints.
    All,
    /// No checkpoint.
    None,
}

impl Checkpoints {
    /// Whether records can leave out the setting. A sweep's record is read with each event of its trials, so it should
    /// be short.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the most bytes of a trial that are collected; `None` is no limit. 20 GiB cost half a dollar a month in
    /// S3 for each trial, so a sweep file has to ask for more.
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
