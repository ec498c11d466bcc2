//! What a decision wants done. A command is complete: the executor makes no choices.
//!
//! Every command may be repeated but [`Command::SubmitPart`], which is given only by the one
//! invocation that has just won the right to it (see `decide/sweep_upload.rs`).

use std::sync::Arc;

use crate::event::TrialRequest;
use crate::throttle::Turn;
use spotsweep_protocol::claim::Task;
use spotsweep_protocol::ids::{DescribedJob, JobId, JobName, SweepId};
use spotsweep_protocol::secret::Secret;
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::sweep::continuation::Listed;
use spotsweep_records::sweep::notification::Notification;
use spotsweep_records::sweep::upload::Upload;
use spotsweep_records::sweep::{Plan, Prepared};
use spotsweep_records::trial::Trial;
use spotsweep_records::workspace::{Call, TrialRef};
use spotsweep_report::inputs::{Results, Wanted};
use spotsweep_sweep_file::Rejected;

/// Jobs that one TerminateJobs or CancelJobs takes
/// (<https://docs.aws.amazon.com/batch/latest/APIReference/API_TerminateJobs.html>).
pub const STOPPED_IDS: usize = 50;

/// One effect in the outside world.
#[derive(Debug, Clone)]
pub enum Command {
    /// S3 GetObject of the dropped file, by version.
    ReadUpload {
        /// The sweep.
        sweep: SweepId,
        /// The file.
        upload: Upload,
    },
    /// Batch DescribeJobDefinitions and DescribeJobQueues, and EC2's DescribeSnapshots or DescribeVolumes where the plan
    /// names a snapshot or a volume: what AWS shows of what a sweep names.
    CheckTarget {
        /// The sweep.
        sweep: SweepId,
        /// What is about to be submitted.
        prepared: Prepared,
    },
    /// S3: `trials.jsonl` and `trials.idx`; `space.json` where parameters are suggested, and `snapshots.json` or
    /// `starts.json` where the sweep goes on from other trials.
    StoreTrials {
        /// The sweep.
        sweep: SweepId,
        /// Bucket name.
        bucket: String,
        /// What is about to be submitted.
        prepared: Prepared,
    },
    /// S3 GetObject of `snapshots.json`: which snapshots does the sweep keep next?
    ReadSnapshots {
        /// The sweep.
        sweep: SweepId,
        /// Bucket name.
        bucket: String,
        /// The place of the first of them among all.
        first: u32,
    },
    /// Batch SubmitJob. Not repeatable (fact 1).
    SubmitPart(Submission),
    /// Batch ListJobs by job name: has this part been submitted?
    FindPart {
        /// The name it was submitted under.
        name: JobName,
        /// Job queue: ListJobs wants it.
        queue: String,
    },
    /// Batch TerminateJobs: for each of a withdrawn sweep's jobs, or for one whose container does not start.
    TerminateJobs {
        /// The sweep.
        sweep: SweepId,
        /// Batch job ids.
        jobs: Vec<String>,
        /// Why.
        reason: StopReason,
    },
    /// S3: `<key>.plan.json`.
    WritePlan {
        /// The sweep.
        sweep: SweepId,
        /// The upload.
        upload: Upload,
        /// What was submitted.
        plan: Plan,
    },
    /// S3: `<key>.rejected.json`.
    WriteRejection {
        /// The sweep.
        sweep: SweepId,
        /// The upload.
        upload: Upload,
        /// Every problem, and the warnings.
        rejected: Rejected,
    },
    /// EventBridge PutEvents; and SNS Publish, where the sweep file names a topic.
    Notify(Notification),
    /// Batch DescribeJobs, up to 100 ids a call (fact 19).
    DescribeJobs(Vec<DescribedJob>),
    /// S3: a page of a sweep's trials, as they are stored in the table.
    StorePage {
        /// The sweep.
        sweep: SweepId,
        /// Bucket name.
        bucket: String,
        /// The page.
        page: u32,
        /// Its trials.
        trials: Vec<Trial>,
        /// Whether all of them have ended for good.
        has_ended: bool,
    },
    /// S3: all pages of a sweep's trials.
    ReadPages {
        /// The sweep.
        sweep: SweepId,
        /// Bucket name.
        bucket: String,
        /// Of each page, whether its trials have ended for good.
        pages: Vec<bool>,
    },
    /// S3, EC2's spot price history and the price list: what results are made from.
    Gather {
        /// What has to be read.
        wanted: Wanted,
        /// The trials that the results are of.
        trials: Arc<[Trial]>,
    },
    /// S3: `leaderboard.csv`, `costs.json`, `report.html`, and `summary.json` last.
    PublishResults {
        /// The sweep.
        sweep: SweepId,
        /// Bucket name.
        bucket: String,
        /// What to put.
        results: Box<Results>,
    },
    /// Batch CancelJob, for each job of a sweep that is over its budget: what waits does not start, what runs goes on.
    CancelWaiting {
        /// The sweep.
        sweep: SweepId,
        /// Batch job ids.
        jobs: Vec<String>,
        /// Why.
        reason: StopReason,
    },
    /// EC2, on a trial's workspace.
    Workspace {
        /// The trial.
        of: TrialRef,
        /// What.
        call: Call,
        /// How the call is repeated where the account's limits are short.
        turn: Turn,
    },
    /// ECS DescribeContainerInstances: on which instance, in which zone, is an attempt about to run? Batch's event
    /// names only the container instance (fact 13).
    LocateAttempt {
        /// The trial.
        trial: TrialRef,
        /// The attempt.
        attempt: u32,
        /// ARN of the ECS container instance.
        container_instance: String,
    },
    /// Batch DescribeJobs and ECS UpdateContainerInstancesState: the instance on which Batch has placed the attempt that
    /// asks takes no further container. What the request says of its place does not count.
    DrainInstance(TrialRequest),
    /// Batch DescribeJobs, ECS DescribeContainerInstances and EC2 DescribeInstanceStatus: what they say of the instance on
    /// which Batch has placed an attempt.
    CheckInstance {
        /// The trial.
        trial: TrialRef,
        /// The attempt.
        attempt: u32,
        /// Its job.
        job: JobId,
        /// `i-…`, of the attempt's record: for where ECS does not know the container instance.
        instance: Option<String>,
    },
    /// EC2 TerminateInstances, of an instance on which nothing runs any more.
    EndInstance {
        /// The trial.
        trial: TrialRef,
        /// The attempt.
        attempt: u32,
        /// `i-…`
        instance: String,
    },
    /// S3 GetObject of `space.json`: what are the trial's parameters searched in?
    ReadSpace {
        /// The trial and who asks.
        request: TrialRequest,
        /// Bucket name.
        bucket: String,
    },
    /// S3 GetObject of `snapshots.json` or `starts.json`: what does the trial start from?
    FindStart {
        /// The trial and who asks.
        request: TrialRequest,
        /// Which of the two.
        listed: Listed,
        /// Bucket name.
        bucket: String,
    },
    /// ECS DescribeTasks: which GPUs has the container of an attempt?
    FindGpus {
        /// The trial and who asks.
        request: TrialRequest,
        /// The container, as the attempt names it: it learns of no GPUs but those of the task that it names.
        task: Task,
    },
    /// S3 ranged GetObject of `trials.idx`: where does a trial's line lie?
    FindLine {
        /// The trial and who asks.
        request: TrialRequest,
        /// The GPUs of its container, where it has asked for them and ECS knows.
        gpus: Option<Vec<String>>,
        /// Bucket name.
        bucket: String,
    },
    /// STS AssumeRole: credentials for one trial.
    IssueCredentials {
        /// The trial and who asks.
        request: TrialRequest,
        /// The trial whose collected checkpoint they read, too.
        restores: Option<TrialRef>,
        /// ARN of the role that the trial's sweep and index narrow.
        role: String,
    },
}

/// One SubmitJob request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// Deterministic job name.
    pub name: JobName,
    /// Number of trials; an array job where it is more than one.
    pub trials: u32,
    /// Job queue.
    pub queue: String,
    /// Job definition with its revision.
    pub definition: String,
    /// Attempts per trial.
    pub attempts: u8,
    /// Attempt timeout.
    pub timeout_seconds: Option<u32>,
    /// Container command, where the file gives one.
    pub command: Option<Vec<String>>,
    /// Batch's `resourceRequirements` to override, by type.
    pub resources: Vec<(String, String)>,
    /// Container environment, but for the claim token.
    pub environment: Vec<(String, String)>,
    /// The sweep's claim token: apart from the rest, so that no log shows it.
    pub token: Secret,
    /// Job tags.
    pub tags: Vec<(String, String)>,
}

impl Command {
    /// The command's name in logs and audit entries.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ReadUpload { .. } => "read-upload",
            Self::CheckTarget { .. } => "check-target",
            Self::StoreTrials { .. } => "store-trials",
            Self::ReadSnapshots { .. } => "read-snapshots",
            Self::SubmitPart(_) => "submit-part",
            Self::FindPart { .. } => "find-part",
            Self::TerminateJobs { .. } => "terminate-jobs",
            Self::WritePlan { .. } => "write-plan",
            Self::WriteRejection { .. } => "write-rejection",
            Self::Notify(_) => "notify",
            Self::DescribeJobs(_) => "describe-jobs",
            Self::StorePage { .. } => "store-page",
            Self::ReadPages { .. } => "read-pages",
            Self::Gather { .. } => "gather",
            Self::CancelWaiting { .. } => "cancel-waiting",
            Self::PublishResults { .. } => "publish-results",
            Self::Workspace { call, .. } => call.name(),
            Self::LocateAttempt { .. } => "locate-attempt",
            Self::DrainInstance(_) => "drain-instance",
            Self::CheckInstance { .. } => "check-instance",
            Self::EndInstance { .. } => "end-instance",
            Self::ReadSpace { .. } => "read-space",
            Self::FindStart { .. } => "find-start",
            Self::FindGpus { .. } => "find-gpus",
            Self::FindLine { .. } => "find-line",
            Self::IssueCredentials { .. } => "issue-credentials",
        }
    }
}
