//! The outcomes of commands: what they have brought about or found out.

use std::sync::Arc;

use crate::event::{Job, TrialRequest};
use spotsweep_protocol::claim::{Access, ByteRange, KeyProblem, Prefix};
use spotsweep_protocol::ids::{DescribedJob, JobName, SweepId};
use spotsweep_protocol::secret::Secret;
use spotsweep_records::sweep::Prepared;
use spotsweep_records::sweep::continuation::{Continuation, TrialStart};
use spotsweep_records::sweep::notification::Notification;
use spotsweep_records::sweep::target::Target;
use spotsweep_records::sweep::upload::Given;
use spotsweep_records::trial::{Host, Trial};
use spotsweep_records::workspace::{Fact, TrialRef};
use spotsweep_report::inputs::ReportInputs;
use spotsweep_sweep_file::{Problem, Search};

#[cfg(doc)]
use crate::command::Command;

/// The result of draining an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drained {
    /// The ECS container instance with this ARN takes no further container.
    Yes(String),
    /// Batch does not show on which instance the attempt runs.
    NotPlaced,
    /// ECS refuses, with this reason.
    Refused(String),
}

/// The result of reading a dropped file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dropped {
    /// The file was deleted before it was read.
    Gone,
    /// The file has so many bytes, which is too large for a sweep file, so it was not read.
    TooLarge(u64),
    /// The file was read.
    Read {
        /// Its bytes.
        bytes: Vec<u8>,
        /// Its object's metadata.
        given: Given,
    },
}

/// Why trainings cannot read a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataProblem {
    /// There is no such bucket.
    NoBucket,
    /// The function's role may not list the bucket, or its owner denies that.
    Denied,
    /// The bucket is in another region.
    OtherRegion,
    /// No object has the key or the prefix.
    Empty,
    /// An object must be restored before it can be read.
    Archived {
        /// The object's key.
        key: String,
        /// Its storage class.
        class: String,
    },
    /// Too many keys begin with the same characters.
    TooMany {
        /// These characters.
        prefix: String,
        /// The most objects that may have such keys.
        most: usize,
    },
    /// A key cannot become a path.
    Key(KeyProblem),
}

/// The outcome of a command.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The result of [`Command::Workspace`], or of [`Command::LocateAttempt`] if ECS does not know the place.
    Workspace(TrialRef, Fact),
    /// [`Command::LocateAttempt`] has found where an attempt will run, before its container starts.
    AttemptLocated {
        /// The trial.
        trial: TrialRef,
        /// The attempt's number.
        attempt: u32,
        /// `i-…`
        instance: String,
        /// Availability zone.
        zone: String,
    },
    /// The result of [`Command::ReadUpload`].
    UploadRead {
        /// The sweep.
        sweep: SweepId,
        /// The file, or why it was not read.
        file: Dropped,
    },
    /// The result of [`Command::CheckTarget`].
    TargetChecked {
        /// The sweep.
        sweep: SweepId,
        /// The file and plan to be submitted.
        prepared: Prepared,
        /// What AWS shows of the things that the sweep names.
        target: Target,
    },
    /// The result of [`Command::RegisterImage`].
    ImageRegistered {
        /// The sweep.
        sweep: SweepId,
        /// The file and plan to be submitted.
        prepared: Prepared,
        /// ARN of the definition with the image, or Batch's message if it permanently refuses to register it.
        definition: Result<String, String>,
    },
    /// [`Command::StoreTrials`] has not found the packed folder, and has stored nothing.
    CodeMissing {
        /// The sweep's id.
        sweep: SweepId,
        /// What was to be submitted.
        prepared: Prepared,
    },
    /// [`Command::StoreTrials`] cannot list some data sets, and has stored no trials.
    DataRefused {
        /// The sweep's id.
        sweep: SweepId,
        /// What was to be submitted.
        prepared: Prepared,
        /// The reason for each of them, by name.
        problems: Vec<(String, DataProblem)>,
    },
    /// The result of [`Command::StoreTrials`].
    TrialsStored {
        /// The sweep.
        sweep: SweepId,
        /// The file and plan to be submitted.
        prepared: Prepared,
        /// A new claim token. The service draws it, because a decision must not depend on anything random.
        token: Secret,
    },
    /// The result of [`Command::ReadSnapshots`].
    SnapshotsRead(Continuation),
    /// [`Command::SubmitPart`] has submitted the job, or [`Command::FindPart`] has found it.
    PartSubmitted {
        /// The job's name.
        name: JobName,
        /// Batch's job id.
        job: String,
    },
    /// [`Command::FindPart`] has found no job of that name.
    PartNotFound {
        /// The job's name.
        name: JobName,
    },
    /// Batch has permanently refused the job of [`Command::SubmitPart`].
    PartRefused {
        /// The job's name.
        name: JobName,
        /// Batch's message.
        message: String,
    },
    /// [`Command::TerminateJobs`] has terminated the jobs.
    JobsTerminated(SweepId),
    /// [`Command::WritePlan`] has written the plan.
    PlanWritten(SweepId),
    /// [`Command::WriteRejection`] has written the rejection.
    RejectionWritten {
        /// The sweep.
        sweep: SweepId,
        /// The problems in the rejection.
        problems: Vec<Problem>,
    },
    /// [`Command::Notify`] has put the event on the bus.
    Notified(Notification),
    /// [`Command::StorePage`] has stored the page.
    PageStored {
        /// The sweep.
        sweep: SweepId,
        /// The page's number.
        page: u32,
        /// Whether all of its trials have ended for good.
        has_ended: bool,
    },
    /// The result of [`Command::ReadPages`].
    PagesRead {
        /// The sweep.
        sweep: SweepId,
        /// The trials of the sweep that have a record.
        trials: Arc<[Trial]>,
    },
    /// The result of [`Command::Gather`].
    ReportInputs {
        /// The sweep.
        sweep: SweepId,
        /// The trials of the command.
        trials: Arc<[Trial]>,
        /// The inputs that were found.
        inputs: Arc<ReportInputs>,
    },
    /// [`Command::PublishResults`] has written the results.
    ResultsPublished {
        /// The sweep.
        sweep: SweepId,
        /// The `summary.json` of a sweep that has ended.
        summary: Option<String>,
    },
    /// [`Command::CancelWaiting`] has cancelled the waiting attempts.
    WaitingCancelled(SweepId),
    /// The result of [`Command::DrainInstance`].
    InstanceDrained {
        /// The claim of the attempt.
        request: TrialRequest,
        /// Whether the instance is drained.
        drained: Drained,
    },
    /// The result of [`Command::CheckInstance`].
    InstanceChecked {
        /// The trial.
        trial: TrialRef,
        /// The attempt's number.
        attempt: u32,
        /// The instance; absent if Batch does not show on which one the attempt runs.
        host: Option<Host>,
    },
    /// The result of [`Command::EndInstance`].
    InstanceEnded {
        /// The trial.
        trial: TrialRef,
        /// The attempt's number.
        attempt: u32,
        /// Why EC2 refuses to terminate it, if it does.
        refusal: Option<String>,
    },
    /// The result of [`Command::ReadSpace`].
    SpaceRead {
        /// The claim that needs it.
        request: TrialRequest,
        /// The space and its seed.
        search: Arc<Search>,
    },
    /// The result of [`Command::FindStart`].
    StartFound {
        /// The claim that needs it.
        request: TrialRequest,
        /// What the trial starts from.
        start: TrialStart,
    },
    /// The result of [`Command::FindGpus`].
    GpusFound {
        /// The claim that needs it.
        request: TrialRequest,
        /// UUIDs of the container's GPUs; absent if ECS does not know the container.
        gpus: Option<Vec<String>>,
    },
    /// [`Command::FindLine`] has found the trial's line in `trials.jsonl`.
    LineFound {
        /// The claim that needs it.
        request: TrialRequest,
        /// The byte range of the line.
        line: ByteRange,
        /// The prefix of the trial's outputs.
        outputs: Prefix,
        /// The GPUs of the command.
        gpus: Option<Vec<String>>,
    },
    /// The result of [`Command::IssueCredentials`].
    CredentialsIssued {
        /// The request for credentials.
        request: TrialRequest,
        /// The credentials.
        access: Access,
    },
    /// A job that [`Command::DescribeJobs`] has found.
    JobDescribed(Job),
    /// A job of [`Command::DescribeJobs`] that Batch does not know, or does not know any more.
    JobUnknown(DescribedJob),
}
