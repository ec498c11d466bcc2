//! The effects that a decision can want. A command is complete, so the executor makes no choices.
//!
//! Every command may be repeated, except [`Command::SubmitPart`]. Only the invocation whose commit of the submission
//! succeeded executes it (see `decide/sweep_upload.rs`).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::event::TrialRequest;
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

/// How many jobs one TerminateJobs or CancelJobs takes
/// (<https://docs.aws.amazon.com/batch/latest/APIReference/API_TerminateJobs.html>).
pub const STOPPED_IDS: usize = 50;

/// One effect outside of the records.
#[derive(Debug, Clone)]
pub enum Command {
    /// S3 GetObject of the dropped file, by version.
    ReadUpload {
        /// The sweep.
        sweep: SweepId,
        /// The dropped file's version.
        upload: Upload,
    },
    /// Batch DescribeJobDefinitions and DescribeJobQueues, and EC2's DescribeSnapshots or DescribeVolumes if the plan
    /// names a snapshot or a volume. They show what the sweep names in AWS. For a sweep with data sets also Batch's
    /// DescribeComputeEnvironments and EC2's DescribeInstanceTypes.
    CheckTarget {
        /// The sweep.
        sweep: SweepId,
        /// The file and plan to be submitted.
        prepared: Prepared,
    },
    /// Batch DescribeJobDefinitions, and RegisterJobDefinition if there is no such definition yet.
    RegisterImage {
        /// The sweep.
        sweep: SweepId,
        /// The file and plan to be submitted.
        prepared: Prepared,
        /// The definition.
        wanted: ImageDefinition,
    },
    /// S3: writes `trials.jsonl` and `trials.idx`, `space.json` if parameters are suggested, and `snapshots.json` or
    /// `starts.json` if the sweep continues from other trials.
    StoreTrials {
        /// The sweep.
        sweep: SweepId,
        /// Bucket name.
        bucket: String,
        /// The file and plan to be submitted.
        prepared: Prepared,
    },
    /// S3 GetObject of `snapshots.json`, which lists the snapshots that the sweep keeps next.
    ReadSnapshots {
        /// The sweep.
        sweep: SweepId,
        /// Bucket name.
        bucket: String,
        /// The index of the first of these snapshots.
        first: u32,
    },
    /// Batch SubmitJob, which must not be repeated (fact 1).
    SubmitPart(Submission),
    /// Batch ListJobs by job name, which shows whether this part was submitted.
    FindPart {
        /// The name under which it is submitted.
        name: JobName,
        /// Job queue, which ListJobs needs.
        queue: String,
    },
    /// Batch TerminateJobs, for each of a withdrawn sweep's jobs, or for a job that must not start again.
    TerminateJobs {
        /// The sweep.
        sweep: SweepId,
        /// Batch job ids.
        jobs: Vec<String>,
        /// The reason for Batch.
        reason: StopReason,
    },
    /// S3: writes `<key>.plan.json`.
    WritePlan {
        /// The sweep.
        sweep: SweepId,
        /// The upload that is answered.
        upload: Upload,
        /// The submitted plan.
        plan: Plan,
    },
    /// S3: writes `<key>.rejected.json`.
    WriteRejection {
        /// The sweep.
        sweep: SweepId,
        /// The upload that is answered.
        upload: Upload,
        /// All problems, and the warnings.
        rejected: Rejected,
    },
    /// EventBridge PutEvents, and SNS Publish if the sweep file names a topic.
    Notify(Notification),
    /// Batch DescribeJobs, with up to 100 ids in one call (fact 19).
    DescribeJobs(Vec<DescribedJob>),
    /// S3: writes a page of a sweep's trials, as the table has them.
    StorePage {
        /// The sweep.
        sweep: SweepId,
        /// Bucket name.
        bucket: String,
        /// The page's number.
        page: u32,
        /// The records of its trials.
        trials: Vec<Trial>,
        /// Whether all of them have ended for good.
        has_ended: bool,
    },
    /// S3: reads all pages of a sweep's trials.
    ReadPages {
        /// The sweep.
        sweep: SweepId,
        /// Bucket name.
        bucket: String,
        /// For each page, whether its trials have ended for good.
        pages: Vec<bool>,
    },
    /// S3, EC2's Spot price history and the price list: reads the inputs of the results.
    Gather {
        /// The inputs that are read.
        wanted: Wanted,
        /// The trials for which the results are made.
        trials: Arc<[Trial]>,
    },
    /// S3: writes `leaderboard.csv`, `costs.json`, `report.html`, and last `summary.json`.
    PublishResults {
        /// The sweep.
        sweep: SweepId,
        /// Bucket name.
        bucket: String,
        /// The objects to write.
        results: Box<Results>,
    },
    /// Batch CancelJob, for each job of a sweep that is stopped. Waiting attempts do not start, and running ones
    /// continue.
    CancelWaiting {
        /// The sweep.
        sweep: SweepId,
        /// Batch job ids.
        jobs: Vec<String>,
        /// The reason for Batch.
        reason: StopReason,
    },
    /// A call to EC2 for a trial's workspace.
    Workspace {
        /// The trial.
        of: TrialRef,
        /// The call.
        call: Call,
    },
    /// ECS DescribeContainerInstances, which shows the instance and the zone of an attempt. Batch's event names only
    /// the container instance (fact 13).
    LocateAttempt {
        /// The trial.
        trial: TrialRef,
        /// The attempt's number.
        attempt: u32,
        /// ARN of the ECS container instance.
        container_instance: String,
    },
    /// Batch DescribeJobs and ECS UpdateContainerInstancesState, after which the instance takes no further container.
    /// The instance is the one on which Batch has placed the attempt of the request, whatever place the request names.
    DrainInstance(TrialRequest),
    /// Batch DescribeJobs, ECS DescribeContainerInstances and EC2 DescribeInstanceStatus, which show the state of the
    /// instance on which Batch has placed an attempt.
    CheckInstance {
        /// The trial.
        trial: TrialRef,
        /// The attempt's number.
        attempt: u32,
        /// The trial's job.
        job: JobId,
        /// `i-…` from the attempt's record, which is used if ECS does not know the container instance.
        instance: Option<String>,
    },
    /// EC2 TerminateInstances, for an instance on which nothing runs any more.
    EndInstance {
        /// The trial.
        trial: TrialRef,
        /// The attempt's number.
        attempt: u32,
        /// `i-…`
        instance: String,
    },
    /// S3 GetObject of `space.json`, the space in which the trial's parameters are searched.
    ReadSpace {
        /// The claim that needs it.
        request: TrialRequest,
        /// Bucket name.
        bucket: String,
    },
    /// S3 GetObject of `snapshots.json` or `starts.json`, which shows what the trial starts from.
    FindStart {
        /// The claim that needs it.
        request: TrialRequest,
        /// Which of the two objects is read.
        listed: Listed,
        /// Bucket name.
        bucket: String,
    },
    /// ECS DescribeTasks, which shows the GPUs of the attempt's container.
    FindGpus {
        /// The claim that needs it.
        request: TrialRequest,
        /// The container as the claim names it. The answer has only the GPUs of that task.
        task: Task,
    },
    /// S3 ranged GetObject of `trials.idx`, which shows where a trial's line is.
    FindLine {
        /// The claim that needs it.
        request: TrialRequest,
        /// The GPUs of its container, if the claim named a task and ECS knows it.
        gpus: Option<Vec<String>>,
        /// Bucket name.
        bucket: String,
    },
    /// STS AssumeRole, which returns credentials for one trial.
    IssueCredentials {
        /// The request for credentials.
        request: TrialRequest,
        /// What they may read besides the trial's parameters.
        reads: Reads,
        /// ARN of the role. The session's tags limit it to the trial.
        role: String,
    },
}

/// What the credentials of a trial may read besides its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reads {
    /// The trial whose collected checkpoint they may read.
    pub restores: Option<TrialRef>,
    /// The SHA-256 of the packed folder.
    pub code: Option<String>,
    /// What names the secrets in the plan.
    pub secrets: BTreeSet<String>,
    /// The data sets: bucket and prefix of each.
    pub data: Vec<String>,
}

/// A job definition that differs from another one in its image alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageDefinition {
    /// Its name, which is the same for each try and for each sweep with that image.
    pub name: String,
    /// ARN of the other definition, with its revision.
    pub like: String,
    /// The image.
    pub image: String,
}

/// The parameters of one SubmitJob request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The job's name, which is the same for each try.
    pub name: JobName,
    /// Number of trials. With more than one it is an array job.
    pub trials: u32,
    /// Job queue.
    pub queue: String,
    /// Job definition with its revision.
    pub definition: String,
    /// Attempts per trial.
    pub attempts: u8,
    /// Attempt timeout in seconds.
    pub timeout_seconds: Option<u32>,
    /// Container command, if the file has one.
    pub command: Option<Vec<String>>,
    /// Batch's `resourceRequirements` that are overridden, by type.
    pub resources: Vec<(String, String)>,
    /// Container environment without the claim token.
    pub environment: Vec<(String, String)>,
    /// The sweep's claim token. It is kept apart from the environment, so that no log shows it.
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
            Self::RegisterImage { .. } => "register-image",
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
