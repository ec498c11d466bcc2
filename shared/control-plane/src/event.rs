//! The inputs from outside, as one type with one parser. [`crate::outcome`] and [`crate::input`] have the inputs that
//! follow within an invocation.
//!
//! One file for each noun has the model of its JSON and its `parse`. A malformed event of a known kind is an error and
//! reaches the function's DLQ. An unknown kind is counted and ignored. Unknown fields are ignored.

pub mod batch_job_state;
mod ebs_state;
mod reconcile;
mod spot_interruption;
mod sweep_settled;
mod sweep_upload;
mod trial_claim;

use aws_lambda_events::event::eventbridge::EventBridgeEvent;
use serde::de::DeserializeOwned;
use serde_json::Value;

use spotsweep_protocol::claim::{Fetch, Found, Machine, NoticeKind, Outputs, Rollback, Seal};
use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_protocol::metric::Metric;
use spotsweep_protocol::rungs::Reached;
use spotsweep_protocol::secret::Secret;
use spotsweep_records::sweep::notification::SOURCE;
use spotsweep_records::sweep::upload::Upload;
use spotsweep_records::trial::{JOB_ATTEMPTS, JobStatus, Observation};
use spotsweep_records::workspace::SnapshotState;

/// An input from AWS, from a runner, from the schedule, or from the bus with spotsweep's own events.
#[derive(Debug, Clone)]
pub enum Event {
    /// S3: an object was put under `sweeps/` or at the top of the bucket.
    SweepUploaded(Upload),
    /// Batch: a job changed its state.
    JobChanged(Job),
    /// A runner has sent a request.
    TrialRequested(TrialRequest),
    /// EC2: an instance is under an interruption notice, or has a rebalance recommendation.
    InstanceNoticed {
        /// `i-…`
        instance: String,
        /// Which of the two it is.
        kind: NoticeKind,
    },
    /// EBS: a volume or a snapshot has changed its state.
    ResourceChanged {
        /// `vol-…` or `snap-…`
        id: String,
        /// The change.
        change: ResourceChange,
    },
    /// Spotsweep's own event: the trials that a sweep continues from have to note it, a page at a time.
    SweepKeeping(SweepId),
    /// Spotsweep's own event: every part of a sweep has ended. The page of its trials has to be read, or the next one
    /// if the event names none.
    SweepSettling(SweepId, Option<u32>),
    /// Spotsweep's own event: the progress of a sweep has to be checked, with that page of its trials.
    SweepRunning(SweepId, Option<u32>),
    /// The schedule: overdue records have to be found.
    ReconcileDue,
    /// An event that this version does not know.
    Unknown {
        /// EventBridge source.
        source: String,
        /// EventBridge detail type.
        detail_type: String,
    },
}

/// A job of spotsweep, from an event or from DescribeJobs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "almost every job is a trial's")]
pub enum Job {
    /// A child of an array job, or a single trial's plain job.
    Trial(TrialJob),
    /// An array job as a whole.
    Part(PartJob),
}

/// The job of a trial, with Batch's state of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialJob {
    /// The sweep.
    pub sweep: SweepId,
    /// The trial's index.
    pub index: u32,
    /// The number of the trial's submission, from 0.
    pub round: u32,
    /// Batch's state of the job and its attempts.
    pub seen: Observation,
}

impl TrialJob {
    /// Returns the ARN of the ECS container instance on which Batch has placed an attempt, while the attempt is under
    /// way.
    pub fn host(&self, attempt: u32) -> Option<&str> {
        let earlier = u32::try_from(self.seen.ended.len()).unwrap_or(u32::MAX);
        let current = self.round.saturating_mul(JOB_ATTEMPTS).saturating_add(earlier).saturating_add(1);
        self.seen.container_instance.as_deref().filter(|_| attempt == current)
    }
}

/// The array job of a part, with Batch's state of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartJob {
    /// The sweep.
    pub sweep: SweepId,
    /// The part's number.
    pub part: u32,
    /// Batch's id of the array job.
    pub job: String,
    /// Batch's state of the array job.
    pub status: JobStatus,
}

/// A runner's request, with its names checked.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialRequest {
    /// The sweep.
    pub sweep: SweepId,
    /// The trial's index.
    pub index: u32,
    /// The job of the attempt.
    pub job: JobId,
    /// The attempt's number from 1, over all rounds of the trial.
    pub attempt: u32,
    /// The claim token of the sweep.
    pub token: Option<Secret>,
    /// The secret of the runner.
    pub secret: Option<Secret>,
    /// The content of the request.
    pub ask: Ask,
}

/// The content of a runner's request.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// The runner claims the trial.
    Claim(Machine),
    /// The runner needs credentials for the bucket.
    Access,
    /// The runner has mounted the workspace.
    Mounted {
        /// `vol-…`
        volume: String,
        /// The checkpoints on it.
        found: Found,
    },
    /// The instance metadata service has a notice or a recommendation for the instance.
    Notice(NoticeKind),
    /// The runner fetches data sets.
    Fetching(Fetch),
    /// The runner reports its metrics. With `ended` it is the last report of the attempt.
    Report {
        /// Number of the report within the attempt.
        sequence: u64,
        /// The metrics by name.
        metrics: std::collections::BTreeMap<String, Metric>,
        /// The newest seal of the workspace.
        seal: Option<Seal>,
        /// How the attempt has ended; absent while it runs.
        ended: Option<Ending>,
        /// Seconds without a sign of life, if the training is stalled or was ended for that.
        stalled_seconds: Option<u64>,
        /// All rungs that the trial has reached.
        rungs: Vec<Reached>,
    },
}

/// How an attempt has ended, as its runner reports it.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// The runner gives the trial back, so that another attempt continues it.
    Released {
        /// The checkpoint that it has quarantined for a rollback.
        rollback: Option<Rollback>,
    },
    /// The training command has ended.
    Finished {
        /// The command's exit code.
        exit_code: i32,
        /// The collected files, and those that were left out.
        outputs: Outputs,
        /// The reason of a failure, from the command's output.
        error: Option<String>,
        /// The command's wall time in seconds.
        seconds: f64,
    },
}

/// The change of a volume or snapshot that an EBS event reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceChange {
    /// The event createVolume with the result available.
    VolumeMade,
    /// The event createVolume with the result failed, and the cause, which may be empty.
    VolumeFailed(String),
    /// The event deleteVolume with the result deleted.
    VolumeDeleted,
    /// The event createSnapshot with the result succeeded or failed.
    SnapshotEnded(SnapshotState),
}

/// Why JSON is not an event. Lambda repeats the delivery, and then puts the event into the function's DLQ.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// Neither an EventBridge envelope nor a runner's request.
    #[error("not an EventBridge event and not a runner's request")]
    Envelope(#[source] serde_json::Error),
    /// The detail of a known kind of event lacks something.
    #[error("malformed {kind} event")]
    Detail {
        /// The EventBridge detail type.
        kind: &'static str,
        /// What is missing or has a wrong type.
        source: serde_json::Error,
    },
    /// An event of a known kind has an invalid value.
    #[error("{kind} event: {problem}")]
    Value {
        /// The EventBridge detail type, or the request.
        kind: &'static str,
        /// What is wrong.
        problem: String,
    },
}

type Envelope = EventBridgeEvent<Value>;

/// Reads the payload that a function gets from Lambda: an EventBridge event or a runner's request.
///
/// # Errors
/// Returns an error for a malformed event of a known kind.
pub fn parse(raw: Value) -> Result<Event, ParseError> {
    if raw.get("request").is_some() {
        return trial_claim::parse(raw);
    }
    let envelope: Envelope = serde_json::from_value(raw).map_err(ParseError::Envelope)?;
    match (envelope.source.as_str(), envelope.detail_type.as_str()) {
        ("aws.s3", sweep_upload::DETAIL_TYPE) => sweep_upload::parse(envelope),
        ("aws.batch", batch_job_state::DETAIL_TYPE) => batch_job_state::parse(envelope),
        ("aws.ec2", spot_interruption::WARNING | spot_interruption::REBALANCE) => spot_interruption::parse(envelope),
        ("aws.ec2", ebs_state::VOLUME | ebs_state::SNAPSHOT) => ebs_state::parse(envelope),
        (SOURCE, _) => sweep_settled::parse(envelope),
        ("aws.events" | "aws.scheduler", reconcile::DETAIL_TYPE) => Ok(reconcile::parse()),
        _ => Ok(Event::Unknown { source: envelope.source, detail_type: envelope.detail_type }),
    }
}

/// Reads the detail of an event of a known kind.
fn detail<T: DeserializeOwned>(kind: &'static str, envelope: Envelope) -> Result<T, ParseError> {
    serde_json::from_value(envelope.detail).map_err(|source| ParseError::Detail { kind, source })
}

/// Whether a text is the id of an EC2 resource: the prefix and 8 to 17 hex digits.
fn is_resource(text: &str, prefix: &str) -> bool {
    let digits = text.strip_prefix(prefix).unwrap_or_default();
    (8..=17).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}
