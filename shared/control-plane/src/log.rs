//! What every log line of a step says beside its message: which sweep, trial and attempt it is about.

use tracing::Span;
use tracing::field::Empty;

use crate::event::{Event, Subject, TrialJob};
use crate::store::View;
use crate::trial::{JOB_ATTEMPTS, JobStatus};
use crate::workspace::Fact;

/// The span of a step. Fields that do not apply are left out.
pub(crate) fn step(event: &Event) -> Span {
    if !tracing::enabled!(tracing::Level::INFO) {
        return Span::none();
    }
    let subject = event.subject();
    let (sweep, trial, resource) = match &subject {
        Some(Subject::Trial(sweep, index)) => (Some(sweep.as_str()), Some(*index), None),
        Some(Subject::Sweep(sweep) | Subject::Settlement(sweep)) => (Some(sweep.as_str()), None, None),
        Some(Subject::Resource(id)) => (None, None, Some(id.as_str())),
        Some(Subject::Overdue) | None => (None, None, None),
    };
    let span = tracing::info_span!("step", event = event.name(), sweep, trial, attempt = Empty, resource);
    if let Some(attempt) = attempt(event) {
        span.record("attempt", attempt);
    }
    span
}

/// Adds the trial's newest known attempt to the span of an event that names none, such as a volume's.
pub(crate) fn loaded(event: &Event, view: &View) {
    let newest = view.trial.as_ref().and_then(|held| held.record.attempts.keys().next_back());
    if let (None, Some(newest)) = (attempt(event), newest) {
        Span::current().record("attempt", newest);
    }
}

/// The attempt that an event names.
fn attempt(event: &Event) -> Option<u32> {
    match event {
        Event::TrialRequested(request) | Event::LineFound { request, .. } | Event::AccessLent { request, .. } => {
            Some(request.attempt)
        }
        Event::AttemptLocated { attempt, .. } => Some(*attempt),
        Event::Workspace(_, fact) => of_fact(fact),
        Event::TrialJobChanged(job) => of_job(job),
        Event::SweepUploaded(_)
        | Event::PartJobChanged(_)
        | Event::InstanceNoticed { .. }
        | Event::ResourceTold { .. }
        | Event::SweepSettling { .. }
        | Event::ReconcileDue
        | Event::Unknown { .. }
        | Event::SweepOverdue(_)
        | Event::UploadRead { .. }
        | Event::UploadUnreadable { .. }
        | Event::TargetChecked { .. }
        | Event::TrialsStored { .. }
        | Event::PartSubmitted { .. }
        | Event::PartNotFound { .. }
        | Event::PartRefused { .. }
        | Event::TryFailed { .. }
        | Event::JobsTerminated(_)
        | Event::PlanWritten(_)
        | Event::RejectionWritten { .. }
        | Event::Announced(_)
        | Event::Gathered { .. }
        | Event::ResultsPublished { .. }
        | Event::WaitingCancelled(_)
        | Event::SweepRunning(_)
        | Event::JobUnknown(_) => None,
    }
}

fn of_fact(fact: &Fact) -> Option<u32> {
    match fact {
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
        | Fact::VolumeTold { .. }
        | Fact::Refused(_)
        | Fact::Snapshot { .. }
        | Fact::SnapshotNotFound { .. }
        | Fact::Deleted(_)
        | Fact::Missing(_)
        | Fact::Due => None,
    }
}

/// The one under way, else the last that has ended; of a trial that waits for its first, none.
fn of_job(job: &TrialJob) -> Option<u32> {
    let is_under_way = matches!(job.seen.status, JobStatus::Starting | JobStatus::Running);
    let ended = u32::try_from(job.seen.ended.len()).ok()?;
    let earlier = job.round.saturating_mul(JOB_ATTEMPTS);
    let number = earlier.saturating_add(ended).saturating_add(u32::from(is_under_way));
    (number > 0).then_some(number)
}
