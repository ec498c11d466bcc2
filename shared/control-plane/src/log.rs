//! The fields of every log line of a step: its sweep, trial and attempt.

use tracing::Span;
use tracing::field::Empty;

use crate::input::{About, Subject};
use crate::store::View;

/// Makes the span of a step. Fields that do not apply are left out.
pub(crate) fn step(about: &About) -> Span {
    if !tracing::enabled!(tracing::Level::INFO) {
        return Span::none();
    }
    let (sweep, trial, resource) = match &about.subject {
        Some(Subject::Trial(sweep, index) | Subject::Comparison(sweep, index)) => {
            (Some(sweep.as_str()), Some(*index), None)
        }
        Some(Subject::Sweep(sweep) | Subject::Settlement(sweep, _)) => (Some(sweep.as_str()), None, None),
        Some(Subject::Resource(id)) => (None, None, Some(id.as_str())),
        Some(Subject::Overdue) | None => (None, None, None),
    };
    let span = tracing::info_span!("step", event = about.name, sweep, trial, attempt = Empty, resource);
    if let Some(attempt) = about.attempt {
        span.record("attempt", attempt);
    }
    span
}

/// Adds the trial's newest attempt to the span of an input that names none, such as a volume's event.
pub(crate) fn loaded(about: &About, view: &View) {
    let newest = view.trial.as_ref().and_then(|held| held.record.attempts.keys().next_back());
    if let (None, Some(newest)) = (about.attempt, newest) {
        Span::current().record("attempt", newest);
    }
}
