//! What commands bring: the facts of the outside world that a decision asked for.

use std::sync::Arc;

use crate::event::{Job, TrialRequest};
use spotsweep_protocol::claim::{Access, ByteRange, Prefix};
use spotsweep_protocol::ids::{DescribedJob, JobName, SweepId};
use spotsweep_protocol::secret::Secret;
use spotsweep_records::sweep::Prepared;
use spotsweep_records::sweep::continuation::{Continuation, TrialStart};
use spotsweep_records::sweep::notification::Notification;
use spotsweep_records::sweep::target::Target;
use spotsweep_records::trial::{Host, Trial};
use spotsweep_records::workspace::{Fact, TrialRef};
use spotsweep_report::inputs::ReportInputs;
use spotsweep_sweep_file::{Problem, Search};

#[cfg(doc)]
use crate::command::Command;

/// What has become of an instance that is to take no further container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drained {
    /// It takes none. The ECS container instance, by its ARN.
    Yes(String),
    /// Batch does not show (yet) on which instance the attempt runs.
    NotPlaced,
    /// ECS refuses, for this reason.
    Refused(String),
}

/// A dropped file, when it is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dropped {
    /// It was deleted before.
    Gone,
    /// It has so many bytes, which are too many for a sweep file, so it was not read.
    TooLarge(u64),
    /// It was read.
    Read {
        /// Its bytes.
        bytes: Vec<u8>,
        /// The number of trials that its object's metadata gives.
        run_cap: Option<String>,
    },
}

/// The outcome of a command.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Of [`Command::Workspace`], and of [`Command::LocateAttempt`] where ECS does not know the place.
    Workspace(TrialRef, Fact),
    /// Of [`Command::LocateAttempt`]: where an attempt is about to run, before its container does.
    AttemptLocated {
        /// The trial.
        trial: TrialRef,
        /// The attempt.
        attempt: u32,
        /// `i-…`
        instance: String,
        /// Availability zone.
        zone: String,
    },
    /// Of [`Command::ReadUpload`].
    UploadRead {
        /// The sweep.
        sweep: SweepId,
        /// The file.
        file: Dropped,
    },
    /// Of [`Command::CheckTarget`].
    TargetChecked {
        /// The sweep.
        sweep: SweepId,
        /// What is about to be submitted.
        prepared: Prepared,
        /// What AWS shows of what it names.
        target: Target,
    },
    /// Of [`Command::StoreTrials`].
    TrialsStored {
        /// The sweep.
        sweep: SweepId,
        /// What is about to be submitted.
        prepared: Prepared,
        /// A new claim token: the service draws it, because nothing random is decided.
        token: Secret,
    },
    /// Of [`Command::ReadSnapshots`].
    SnapshotsRead(Continuation),
    /// Of [`Command::SubmitPart`], and of [`Command::FindPart`]: Batch has the job.
    PartSubmitted {
        /// Its name.
        name: JobName,
        /// Batch's job id.
        job: String,
    },
    /// Of [`Command::FindPart`]: Batch has no job of that name.
    PartNotFound {
        /// Its name.
        name: JobName,
    },
    /// Of [`Command::SubmitPart`]: Batch refused the job for good.
    PartRefused {
        /// Its name.
        name: JobName,
        /// Batch's words.
        message: String,
    },
    /// Of [`Command::TerminateJobs`].
    JobsTerminated(SweepId),
    /// Of [`Command::WritePlan`].
    PlanWritten(SweepId),
    /// Of [`Command::WriteRejection`].
    RejectionWritten {
        /// The sweep.
        sweep: SweepId,
        /// What it says.
        problems: Vec<Problem>,
    },
    /// Of [`Command::Notify`].
    Notified(Notification),
    /// Of [`Command::StorePage`].
    PageStored {
        /// The sweep.
        sweep: SweepId,
        /// The page.
        page: u32,
        /// Whether all of its trials have ended for good.
        has_ended: bool,
    },
    /// Of [`Command::ReadPages`].
    PagesRead {
        /// The sweep.
        sweep: SweepId,
        /// All its trials that have a record.
        trials: Arc<[Trial]>,
    },
    /// Of [`Command::Gather`].
    ReportInputs {
        /// The sweep.
        sweep: SweepId,
        /// As in the command.
        trials: Arc<[Trial]>,
        /// What was found.
        inputs: Arc<ReportInputs>,
    },
    /// Of [`Command::PublishResults`].
    ResultsPublished {
        /// The sweep.
        sweep: SweepId,
        /// Its `summary.json`, where it has ended.
        summary: Option<String>,
    },
    /// Of [`Command::CancelWaiting`].
    WaitingCancelled(SweepId),
    /// Of [`Command::DrainInstance`].
    InstanceDrained {
        /// The trial and who asks.
        request: TrialRequest,
        /// What has become of the instance.
        drained: Drained,
    },
    /// Of [`Command::CheckInstance`].
    InstanceChecked {
        /// The trial.
        trial: TrialRef,
        /// The attempt.
        attempt: u32,
        /// Its instance; absent where Batch does not show on which one the attempt runs.
        host: Option<Host>,
    },
    /// Of [`Command::EndInstance`].
    InstanceEnded {
        /// The trial.
        trial: TrialRef,
        /// The attempt.
        attempt: u32,
        /// Why EC2 does not end it, if it refuses that.
        refusal: Option<String>,
    },
    /// Of [`Command::ReadSpace`]: what the trial's parameters are searched in.
    SpaceRead {
        /// The trial and who asks.
        request: TrialRequest,
        /// The space and its seed.
        search: Arc<Search>,
    },
    /// Of [`Command::FindStart`].
    StartFound {
        /// The trial and who asks.
        request: TrialRequest,
        /// What it starts from.
        start: TrialStart,
    },
    /// Of [`Command::FindGpus`].
    GpusFound {
        /// The trial and who asks.
        request: TrialRequest,
        /// UUIDs of the container's GPUs; absent where ECS does not know the container.
        gpus: Option<Vec<String>>,
    },
    /// Of [`Command::FindLine`]: where the trial's line lies in `trials.jsonl`.
    LineFound {
        /// The trial.
        request: TrialRequest,
        /// The line.
        line: ByteRange,
        /// Where its outputs go.
        outputs: Prefix,
        /// As in the command.
        gpus: Option<Vec<String>>,
    },
    /// Of [`Command::IssueCredentials`].
    CredentialsIssued {
        /// The trial and who asks.
        request: TrialRequest,
        /// The credentials.
        access: Access,
    },
    /// Of [`Command::DescribeJobs`], for each job that Batch knows.
    JobDescribed(Job),
    /// Of [`Command::DescribeJobs`]: Batch does not know the job (any more).
    JobUnknown(DescribedJob),
}
