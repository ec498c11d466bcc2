//! The input of one step, the records that it is about, and its name.

use crate::event::{Ask, Ending, Event, Job, PartJob, TrialJob, TrialRequest};
use crate::outcome::Outcome;
use spotsweep_protocol::ids::{DescribedJob, JobName, Run, SweepId};
use spotsweep_records::sweep::continuation::Continuation;
use spotsweep_records::sweep::notification::{Kind, Notification};
use spotsweep_records::trial::{JOB_ATTEMPTS, JobStatus};
use spotsweep_records::workspace::{Fact, TrialRef};

/// The input of one step.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a few at a time")]
pub enum Input {
    /// An event from outside.
    Event(Event),
    /// The outcome of a command.
    Outcome(Outcome),
    /// A followup of another step.
    Followup(Followup),
}

/// An input that a step leaves for another step, about the same record or others.
#[derive(Debug, Clone)]
pub enum Followup {
    /// A sweep's due time has passed.
    SweepOverdue(SweepId),
    /// A trial's due time has passed, and Batch was asked about its job.
    TrialOverdue(TrialRef),
    /// A fact about a trial's workspace.
    Workspace(TrialRef, Fact),
    /// A fact about an instance, volume or snapshot.
    Resource(String, Fact),
    /// A part has ended: its plain job has, or Batch does not know its job.
    PartEnded(PartJob),
    /// A runner's request, after the sweep's record notes what the request shows about its instance.
    Requested(Box<TrialRequest>),
    /// A runner's request that has to be decided with the other trials' rungs.
    Compared(Box<TrialRequest>),
    /// An interrupted trial, which has to be compared by the other trials' rungs.
    Interrupted(TrialRef),
    /// The sweep has to keep the next snapshot that it names, or is done with a page of them.
    Continues(Continuation),
    /// The trial of the next snapshot has to note the sweep.
    Continued {
        /// The trial.
        trial: TrialRef,
        /// The sweep and its snapshots.
        of: Continuation,
    },
    /// The next snapshot is not kept any more, so the sweep cannot start.
    NotKept(Continuation),
    /// The time of a trial's kept snapshot has passed, and a sweep that continues from it has to be looked up.
    NeededBy {
        /// The trial.
        trial: TrialRef,
        /// The sweep.
        by: SweepId,
    },
    /// Batch was asked about every trial of a settling sweep's page that is not terminal.
    TrialsChecked(SweepId, Option<u32>),
    /// A command for a dropped file has failed, and is repeated later.
    TryFailed {
        /// The sweep.
        sweep: SweepId,
        /// The error with its causes.
        error: String,
    },
}

/// The record or records that an input is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// One sweep.
    Sweep(SweepId),
    /// One trial, and its sweep.
    Trial(SweepId, u32),
    /// One trial, its sweep, and the rungs that all trials of the sweep have reached.
    Comparison(SweepId, u32),
    /// One sweep, and the page of its trials that is read next. The page is not loaded if the input names another one.
    Settlement(SweepId, Option<u32>),
    /// The trials that an instance, volume or snapshot belongs to.
    Resource(String),
    /// Every record past its due time.
    Overdue,
}

/// The name of an input, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The name in logs and audit entries.
    pub name: &'static str,
    /// The records that have to be loaded; `None` if there are none.
    pub subject: Option<Subject>,
    /// The attempt that the input names.
    pub attempt: Option<u32>,
}

impl Input {
    /// Returns the name of the input, and what it is about.
    pub fn about(&self) -> About {
        match self {
            Self::Event(event) => of_event(event),
            Self::Outcome(outcome) => of_outcome(outcome),
            Self::Followup(followup) => of_followup(followup),
        }
    }
}

impl From<Event> for Input {
    fn from(event: Event) -> Self {
        Self::Event(event)
    }
}

impl From<Outcome> for Input {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome(outcome)
    }
}

fn of_event(event: &Event) -> About {
    match event {
        Event::SweepUploaded(upload) => About::sweep("sweep-uploaded", &upload.sweep()),
        Event::JobChanged(Job::Trial(job)) => of_trial_job("trial-job-changed", job),
        Event::JobChanged(Job::Part(job)) => About::sweep("part-job-changed", &job.sweep),
        Event::TrialRequested(request) => About::request(request_name(&request.ask), request),
        Event::InstanceNoticed { instance, .. } => About::new("instance-noticed", Subject::Resource(instance.clone())),
        Event::ResourceChanged { id, .. } => About::new("resource-changed", Subject::Resource(id.clone())),
        Event::SweepKeeping(sweep) => About::sweep("sweep-keeping", sweep),
        Event::SweepSettling(sweep, page) => About::page("sweep-settling", sweep, *page),
        Event::SweepRunning(sweep, page) => About::page("sweep-running", sweep, *page),
        Event::ReconcileDue => About::new("reconcile-due", Subject::Overdue),
        Event::Unknown { .. } => About { name: "unknown", subject: None, attempt: None },
    }
}

fn of_outcome(outcome: &Outcome) -> About {
    match outcome {
        Outcome::Workspace(trial, fact) => of_fact(trial, fact),
        Outcome::AttemptLocated { trial, attempt, .. } => {
            About { attempt: Some(*attempt), ..About::trial("attempt-located", &trial.sweep, trial.index) }
        }
        Outcome::UploadRead { sweep, .. } => About::sweep("upload-read", sweep),
        Outcome::TargetChecked { sweep, .. } => About::sweep("target-checked", sweep),
        Outcome::ImageRegistered { sweep, .. } => About::sweep("image-registered", sweep),
        Outcome::CodeMissing { sweep, .. } => About::sweep("code-missing", sweep),
        Outcome::DataRefused { sweep, .. } => About::sweep("data-refused", sweep),
        Outcome::TrialsStored { sweep, .. } => About::sweep("trials-stored", sweep),
        Outcome::SnapshotsRead(of) => About::sweep("snapshots-read", &of.sweep),
        Outcome::PartSubmitted { name, .. } => of_job_name("part-submitted", name),
        Outcome::PartNotFound { name } => of_job_name("part-not-found", name),
        Outcome::PartRefused { name, .. } => of_job_name("part-refused", name),
        Outcome::JobsTerminated(sweep) => About::sweep("jobs-terminated", sweep),
        Outcome::PlanWritten(sweep) => About::sweep("plan-written", sweep),
        Outcome::RejectionWritten { sweep, .. } => About::sweep("rejection-written", sweep),
        Outcome::Notified(Notification { sweep, kind: Kind::Stalled(of), .. }) => {
            About { attempt: Some(of.attempt), ..About::trial("notified", sweep, of.index) }
        }
        Outcome::Notified(Notification { sweep, kind: Kind::Silent(of), .. }) => {
            About { attempt: Some(of.attempt), ..About::trial("notified", sweep, of.index) }
        }
        Outcome::Notified(notification) => About::sweep("notified", &notification.sweep),
        Outcome::PageStored { sweep, .. } => About::sweep("page-stored", sweep),
        Outcome::PagesRead { sweep, .. } => About::sweep("pages-read", sweep),
        Outcome::ReportInputs { sweep, .. } => About::sweep("gathered", sweep),
        Outcome::ResultsPublished { sweep, .. } => About::sweep("results-published", sweep),
        Outcome::WaitingCancelled(sweep) => About::sweep("waiting-cancelled", sweep),
        Outcome::InstanceDrained { request, .. } => About::request("instance-drained", request),
        Outcome::InstanceChecked { trial, attempt, .. } => {
            About { attempt: Some(*attempt), ..About::trial("instance-checked", &trial.sweep, trial.index) }
        }
        Outcome::InstanceEnded { trial, attempt, .. } => {
            About { attempt: Some(*attempt), ..About::trial("instance-ended", &trial.sweep, trial.index) }
        }
        Outcome::SpaceRead { request, .. } => About {
            attempt: Some(request.attempt),
            ..About::new("space-read", Subject::Comparison(request.sweep.clone(), request.index))
        },
        Outcome::StartFound { request, .. } => About::request("start-found", request),
        Outcome::GpusFound { request, .. } => About::request("gpus-found", request),
        Outcome::LineFound { request, .. } => About::request("line-found", request),
        Outcome::CredentialsIssued { request, .. } => About::request("credentials-issued", request),
        Outcome::JobDescribed(Job::Trial(job)) => of_trial_job("trial-job-described", job),
        Outcome::JobDescribed(Job::Part(job)) => About::sweep("part-job-described", &job.sweep),
        Outcome::JobUnknown(DescribedJob { sweep, index: Some(index), .. }) => {
            About::trial("job-unknown", sweep, *index)
        }
        Outcome::JobUnknown(DescribedJob { sweep, index: None, .. }) => About::sweep("job-unknown", sweep),
    }
}

fn of_followup(followup: &Followup) -> About {
    match followup {
        Followup::SweepOverdue(sweep) => About::sweep("sweep-overdue", sweep),
        Followup::TrialOverdue(trial) => About::trial("trial-overdue", &trial.sweep, trial.index),
        Followup::Workspace(trial, fact) => of_fact(trial, fact),
        Followup::Resource(id, fact) => About::new(fact.name(), Subject::Resource(id.clone())),
        Followup::PartEnded(job) => About::sweep("part-ended", &job.sweep),
        Followup::Requested(request) => About::request(request_name(&request.ask), request),
        Followup::Compared(request) => About {
            attempt: Some(request.attempt),
            ..About::new(request_name(&request.ask), Subject::Comparison(request.sweep.clone(), request.index))
        },
        Followup::Interrupted(trial) => {
            About::new("trial-interrupted", Subject::Comparison(trial.sweep.clone(), trial.index))
        }
        Followup::Continues(of) => match of.next() {
            Some(snapshot) => About::new("snapshot-continued", Subject::Resource(snapshot.to_owned())),
            None => About::sweep("snapshots-kept", &of.sweep),
        },
        Followup::Continued { trial, .. } => About::trial("trial-continued", &trial.sweep, trial.index),
        Followup::NotKept(of) => About::sweep("snapshot-not-kept", &of.sweep),
        Followup::NeededBy { by, .. } => About::sweep("needed-by", by),
        Followup::TrialsChecked(sweep, page) => About::page("trials-checked", sweep, *page),
        Followup::TryFailed { sweep, .. } => About::sweep("try-failed", sweep),
    }
}

fn request_name(ask: &Ask) -> &'static str {
    match ask {
        Ask::Claim(_) => "trial-claimed",
        Ask::Access => "credentials-requested",
        Ask::Mounted { .. } => "trial-mounted",
        Ask::Notice(_) => "trial-noticed",
        Ask::Fetching(fetch) if fetch.is_under_way() => "trial-fetching",
        Ask::Fetching(_) => "trial-fetched",
        Ask::Report { ended: None, .. } => "trial-reported",
        Ask::Report { ended: Some(Ending::Released { .. }), .. } => "trial-released",
        Ask::Report { ended: Some(Ending::Finished { .. }), .. } => "trial-ended",
    }
}

/// The attempt is the one under way, or else the last that has ended. A trial that waits for its first attempt has
/// none.
fn of_trial_job(name: &'static str, job: &TrialJob) -> About {
    let is_under_way = matches!(job.seen.status, JobStatus::Starting | JobStatus::Running);
    let ended = u32::try_from(job.seen.ended.len()).unwrap_or(u32::MAX);
    let earlier = job.round.saturating_mul(JOB_ATTEMPTS);
    let number = earlier.saturating_add(ended).saturating_add(u32::from(is_under_way));
    About { attempt: (number > 0).then_some(number), ..About::trial(name, &job.sweep, job.index) }
}

fn of_job_name(name: &'static str, job: &JobName) -> About {
    match job.run {
        Run::Part(_) => About::sweep(name, &job.sweep),
        Run::Again { index, .. } => About::trial(name, &job.sweep, index),
    }
}

fn of_fact(trial: &TrialRef, fact: &Fact) -> About {
    let attempt = match fact {
        Fact::Wanted(place) => Some(place.attempt),
        Fact::Mounted { attempt, .. }
        | Fact::Sealed { attempt, .. }
        | Fact::Released { attempt, .. }
        | Fact::Finished { attempt } => Some(*attempt),
        Fact::PlaceUnknown
        | Fact::Noticed { .. }
        | Fact::Volume { .. }
        | Fact::VolumeNotFound { .. }
        | Fact::RateTaken { .. }
        | Fact::VolumeReported { .. }
        | Fact::Refused(_)
        | Fact::Snapshot { .. }
        | Fact::SnapshotNotFound { .. }
        | Fact::Continued { .. }
        | Fact::Discontinued { .. }
        | Fact::Deleted(_)
        | Fact::Missing(_)
        | Fact::Due => None,
    };
    About { attempt, ..About::trial(fact.name(), &trial.sweep, trial.index) }
}

impl About {
    fn new(name: &'static str, subject: Subject) -> Self {
        Self { name, subject: Some(subject), attempt: None }
    }

    fn sweep(name: &'static str, sweep: &SweepId) -> Self {
        Self::new(name, Subject::Sweep(sweep.clone()))
    }

    fn page(name: &'static str, sweep: &SweepId, page: Option<u32>) -> Self {
        Self::new(name, Subject::Settlement(sweep.clone(), page))
    }

    fn trial(name: &'static str, sweep: &SweepId, index: u32) -> Self {
        Self::new(name, Subject::Trial(sweep.clone(), index))
    }

    fn request(name: &'static str, request: &TrialRequest) -> Self {
        Self { attempt: Some(request.attempt), ..Self::trial(name, &request.sweep, request.index) }
    }
}
