//! What an event is about, and what it is called.

use super::{Ask, Ending, Event, PartJob, TrialRequest};
use spotsweep_protocol::ids::{DescribedJob, Run, SweepId};

/// The record or records that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// One sweep.
    Sweep(SweepId),
    /// One trial, and its sweep.
    Trial(SweepId, u32),
    /// One sweep and all its trials.
    Settlement(SweepId),
    /// The trials that an instance, volume or snapshot belongs to.
    Resource(String),
    /// Every record past its due time.
    Overdue,
}

impl Event {
    /// What has to be loaded to decide it; `None` where nothing does.
    pub fn subject(&self) -> Option<Subject> {
        match self {
            Self::Unknown { .. } => None,
            Self::ReconcileDue => Some(Subject::Overdue),
            Self::TrialJobChanged(job) => Some(Subject::Trial(job.sweep.clone(), job.index)),
            Self::TrialRequested(request) | Self::LineFound { request, .. } | Self::AccessLent { request, .. } => {
                Some(Subject::Trial(request.sweep.clone(), request.index))
            }
            Self::InstanceNoticed { instance: id, .. } | Self::ResourceTold { id, .. } => {
                Some(Subject::Resource(id.clone()))
            }
            Self::Workspace(trial, _) | Self::AttemptLocated { trial, .. } => {
                Some(Subject::Trial(trial.sweep.clone(), trial.index))
            }
            Self::PartSubmitted { name, .. } | Self::PartNotFound { name } | Self::PartRefused { name, .. } => {
                Some(match name.run {
                    Run::Part(_) => Subject::Sweep(name.sweep.clone()),
                    Run::Again { index, .. } => Subject::Trial(name.sweep.clone(), index),
                })
            }
            Self::JobUnknown(DescribedJob { sweep, index, .. }) => match index {
                Some(index) => Some(Subject::Trial(sweep.clone(), *index)),
                None => Some(Subject::Sweep(sweep.clone())),
            },
            Self::SweepSettling { sweep, .. } | Self::SweepRunning(sweep) | Self::Gathered { sweep, .. } => {
                Some(Subject::Settlement(sweep.clone()))
            }
            Self::Announced(announcement) => Some(Subject::Sweep(announcement.sweep.clone())),
            Self::SweepUploaded(upload) => Some(Subject::Sweep(upload.sweep())),
            Self::PartJobChanged(PartJob { sweep, .. })
            | Self::SweepOverdue(sweep)
            | Self::UploadRead { sweep, .. }
            | Self::UploadUnreadable { sweep, .. }
            | Self::TargetChecked { sweep, .. }
            | Self::TrialsStored { sweep, .. }
            | Self::TryFailed { sweep, .. }
            | Self::JobsTerminated(sweep)
            | Self::PlanWritten(sweep)
            | Self::RejectionWritten { sweep, .. }
            | Self::ResultsPublished { sweep, .. }
            | Self::WaitingCancelled(sweep) => Some(Subject::Sweep(sweep.clone())),
        }
    }

    /// The event's name in logs and audit entries.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SweepUploaded(_) => "sweep-uploaded",
            Self::TrialJobChanged(_) => "trial-job-changed",
            Self::PartJobChanged(_) => "part-job-changed",
            Self::TrialRequested(TrialRequest { ask: Ask::Claim(_), .. }) => "trial-claimed",
            Self::TrialRequested(TrialRequest { ask: Ask::Access, .. }) => "access-asked",
            Self::TrialRequested(TrialRequest { ask: Ask::Mounted { .. }, .. }) => "trial-mounted",
            Self::TrialRequested(TrialRequest { ask: Ask::Notice(_), .. }) => "trial-noticed",
            Self::TrialRequested(TrialRequest { ask: Ask::Report { ended: None, .. }, .. }) => "trial-reported",
            Self::TrialRequested(TrialRequest { ask: Ask::Report { ended: Some(ending), .. }, .. }) => match ending {
                Ending::Released => "trial-released",
                Ending::Finished { .. } => "trial-ended",
            },
            Self::InstanceNoticed { .. } => "instance-noticed",
            Self::ResourceTold { .. } => "resource-told",
            Self::Workspace(_, fact) => fact.name(),
            Self::AttemptLocated { .. } => "attempt-located",
            Self::SweepSettling { .. } => "sweep-settling",
            Self::SweepRunning(_) => "sweep-running",
            Self::ReconcileDue => "reconcile-due",
            Self::Unknown { .. } => "unknown",
            Self::SweepOverdue(_) => "sweep-overdue",
            Self::UploadRead { .. } => "upload-read",
            Self::UploadUnreadable { .. } => "upload-unreadable",
            Self::TargetChecked { .. } => "target-checked",
            Self::TrialsStored { .. } => "trials-stored",
            Self::PartSubmitted { .. } => "part-submitted",
            Self::PartNotFound { .. } => "part-not-found",
            Self::PartRefused { .. } => "part-refused",
            Self::TryFailed { .. } => "try-failed",
            Self::JobsTerminated(_) => "jobs-terminated",
            Self::PlanWritten(_) => "plan-written",
            Self::RejectionWritten { .. } => "rejection-written",
            Self::Announced(_) => "announced",
            Self::Gathered { .. } => "gathered",
            Self::ResultsPublished { .. } => "results-published",
            Self::WaitingCancelled(_) => "waiting-cancelled",
            Self::LineFound { .. } => "line-found",
            Self::AccessLent { .. } => "access-lent",
            Self::JobUnknown(_) => "job-unknown",
        }
    }
}
