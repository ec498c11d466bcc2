//! What happens outside, as one type, and its one parser. What follows within an invocation is in
//! [`crate::outcome`] and [`crate::input`].
//!
//! One file per noun holds the wire model and its `parse`. A malformed event of a known kind is an
//! error and reaches the function's DLQ; an unknown kind is counted and ignored; unknown fields
//! are tolerated.

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

use spotsweep_protocol::claim::{Found, Machine, NoticeKind, Outputs, Rollback, Seal};
use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_protocol::metric::Metric;
use spotsweep_protocol::rungs::Reached;
use spotsweep_protocol::secret::Secret;
use spotsweep_records::sweep::notification::SOURCE;
use spotsweep_records::sweep::upload::Upload;
use spotsweep_records::trial::{JOB_ATTEMPTS, JobStatus, Observation};
use spotsweep_records::workspace::SnapshotState;

/// What comes from outside: AWS, a runner, the schedule, or the bus with events of our own.
#[derive(Debug, Clone)]
pub enum Event {
    /// S3: an object was put into the drop zone.
    SweepUploaded(Upload),
    /// Batch: a job changed its state.
    JobChanged(Job),
    /// A runner asks or tells.
    TrialRequested(TrialRequest),
    /// EC2: an instance will be taken, or is likely to be.
    InstanceNoticed {
        /// `i-…`
        instance: String,
        /// Which warning.
        kind: NoticeKind,
    },
    /// EBS: a volume or a snapshot has become something else.
    ResourceChanged {
        /// `vol-…` or `snap-…`
        id: String,
        /// What.
        change: ResourceChange,
    },
    /// Our own: the trials that a sweep goes on from are to note it, some at a time.
    SweepKeeping(SweepId),
    /// Our own: every part of a sweep has ended. The page of its trials that is to be read; the next one where it
    /// names none.
    SweepSettling(SweepId, Option<u32>),
    /// Our own: see how a sweep gets on, by that page of its trials.
    SweepRunning(SweepId, Option<u32>),
    /// The schedule: look for overdue work.
    ReconcileDue,
    /// Something that no function of this version knows.
    Unknown {
        /// EventBridge source.
        source: String,
        /// EventBridge detail type.
        detail_type: String,
    },
}

/// A job of this product, from an event or from DescribeJobs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "almost every job is a trial's")]
pub enum Job {
    /// A child of an array job, or a single trial's plain job.
    Trial(TrialJob),
    /// An array job as a whole.
    Part(PartJob),
}

/// A trial's job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialJob {
    /// The sweep.
    pub sweep: SweepId,
    /// The trial.
    pub index: u32,
    /// Which submission of the trial the job is, from 0.
    pub round: u32,
    /// What Batch says.
    pub seen: Observation,
}

impl TrialJob {
    /// ARN of the ECS container instance that Batch has placed an attempt on, while the attempt is under way.
    pub fn host(&self, attempt: u32) -> Option<&str> {
        let earlier = u32::try_from(self.seen.ended.len()).unwrap_or(u32::MAX);
        let current = self.round.saturating_mul(JOB_ATTEMPTS).saturating_add(earlier).saturating_add(1);
        self.seen.container_instance.as_deref().filter(|_| attempt == current)
    }
}

/// A part's array job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartJob {
    /// The sweep.
    pub sweep: SweepId,
    /// The part.
    pub part: u32,
    /// Batch's id of the parent.
    pub job: String,
    /// Its state.
    pub status: JobStatus,
}

/// What a runner asks or tells, with its names checked.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialRequest {
    /// The sweep.
    pub sweep: SweepId,
    /// The trial.
    pub index: u32,
    /// The attempt's job.
    pub job: JobId,
    /// `AWS_BATCH_JOB_ATTEMPT`.
    pub attempt: u32,
    /// The claim token of its sweep.
    pub token: Option<Secret>,
    /// The runner's own.
    pub secret: Option<Secret>,
    /// What it asks or tells.
    pub ask: Ask,
}

/// What an attempt asks or tells.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// Give me the trial.
    Claim(Machine),
    /// Let me into the bucket.
    Access,
    /// The workspace is mounted.
    Mounted {
        /// `vol-…`
        volume: String,
        /// What lies on it.
        found: Found,
    },
    /// The metadata service has announced the instance's end, or recommends to leave.
    Notice(NoticeKind),
    /// These are the metrics so far; with `ended`, the last ones.
    Report {
        /// Number of the report within the attempt.
        sequence: u64,
        /// By metric name.
        metrics: std::collections::BTreeMap<String, Metric>,
        /// The newest seal of the workspace.
        seal: Option<Seal>,
        /// How the attempt ended, once it has.
        ended: Option<Ending>,
        /// Seconds without a sign of life, where the training is stalled, or was ended for that.
        stalled_seconds: Option<u64>,
        /// All rungs that the trial has reached.
        rungs: Vec<Reached>,
    },
}

/// How an attempt ends, in the runner's words.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// It gives the trial back for another attempt to go on.
    Released {
        /// The checkpoint that it has put aside.
        rollback: Option<Rollback>,
    },
    /// The training command has ended.
    Finished {
        /// Its exit code.
        exit_code: i32,
        /// What was uploaded.
        outputs: Outputs,
        /// What the command's output gives as the reason of a failure.
        error: Option<String>,
        /// Its wall time.
        seconds: f64,
    },
}

/// What EBS tells of a volume or snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceChange {
    /// createVolume: available.
    VolumeMade,
    /// createVolume: failed, and why, which may be empty.
    VolumeFailed(String),
    /// deleteVolume: deleted.
    VolumeDeleted,
    /// createSnapshot: succeeded or failed.
    SnapshotEnded(SnapshotState),
}

/// Why JSON is not an event. Delivery is retried and then lands in the function's DLQ.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// Neither an EventBridge envelope nor a runner's request.
    #[error("not an EventBridge event and not a runner's request")]
    Envelope(#[source] serde_json::Error),
    /// A known kind of event whose detail lacks something.
    #[error("malformed {kind} event")]
    Detail {
        /// The EventBridge detail type.
        kind: &'static str,
        /// What is missing or of the wrong type.
        source: serde_json::Error,
    },
    /// A known kind of event with a value that makes no sense.
    #[error("{kind} event: {problem}")]
    Value {
        /// The EventBridge detail type, or the request.
        kind: &'static str,
        /// What is wrong.
        problem: String,
    },
}

type Envelope = EventBridgeEvent<Value>;

/// Reads what Lambda hands to a function: an EventBridge event, or a runner's request.
///
/// # Errors
/// A malformed event of a known kind.
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

/// Reads the detail of a known kind.
fn detail<T: DeserializeOwned>(kind: &'static str, envelope: Envelope) -> Result<T, ParseError> {
    serde_json::from_value(envelope.detail).map_err(|source| ParseError::Detail { kind, source })
}

/// Whether a text is the id of an EC2 resource: the prefix, then hex digits.
fn is_resource(text: &str, prefix: &str) -> bool {
    let digits = text.strip_prefix(prefix).unwrap_or_default();
    (8..=17).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}
