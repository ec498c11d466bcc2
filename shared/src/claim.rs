//! What the runner and `trial-claim` say to each other: one JSON request, one JSON reply.
//!
//! Figures are cumulative over an attempt, so a lost, late or repeated report does no harm.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
    /// What the attempt asks or tells.
    #[serde(flatten)]
    pub request: Request,
}

/// What an attempt asks or tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "lowercase")]
pub enum Request {
    /// The attempt asks for its trial. Fences every older attempt.
    Claim {
        /// The EC2 instance, as IMDS names it; absent where there is no IMDS.
        instance: Option<String>,
        /// The availability zone, as IMDS names it.
        zone: Option<String>,
    },
    /// The metrics so far.
    Report {
        /// Counts up within the attempt; the highest wins.
        sequence: u64,
        /// By metric name.
        metrics: BTreeMap<String, Metric>,
    },
    /// The training command has ended and everything is uploaded.
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
    },
}

/// One metric's figures over an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The newest value.
    pub last: f64,
    /// The step (`step=` or `epoch=` on the same line) of the newest value.
    pub step: Option<f64>,
    /// The smallest value seen.
    pub min: f64,
    /// The largest value seen.
    pub max: f64,
}

/// What an attempt has uploaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outputs {
    /// Number of objects.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

/// The answer to a [`ClaimRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    /// The trial is this attempt's.
    Granted(Grant),
    /// A report or an end was taken.
    Accepted {},
    /// The attempt must stop: a newer one has the trial, or the trial is over.
    Refused {
        /// Why, for the log.
        reason: String,
    },
}

/// Where a granted attempt finds its parameters and leaves its outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// One line of `trials.jsonl`.
    pub parameters: ByteRange,
    /// Where outputs go.
    pub outputs: Prefix,
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
