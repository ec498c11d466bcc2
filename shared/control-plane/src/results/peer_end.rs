//! How a trial has ended, as other trials and the search count it.

use super::ranking::{Score, score};
use crate::sweep::Ranking;
use crate::trial::{Standing, Trial};

/// How a trial has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PeerEnd {
    /// With this value of the metric, which is not finite where it has diverged.
    Finished(f64),
    /// Early, as others were better.
    Stopped,
    /// Its training has failed, or has reported no value.
    Failed,
    /// For a reason that says nothing of its parameters: it was cancelled, or the budget was reached.
    Void,
}

impl PeerEnd {
    /// How a trial has ended, with its value of the metric `by`; `None` while it is open, and for a success without a
    /// metric.
    pub fn of(trial: &Trial, by: Option<&Ranking>) -> Option<Self> {
        match trial.standing() {
            Standing::Waiting | Standing::Starting | Standing::Running => None,
            Standing::Stopped if trial.stopped.is_some() => Some(Self::Stopped),
            Standing::Stopped | Standing::Cancelled => Some(Self::Void),
            Standing::Failed if trial.has_foreign_reason() => Some(Self::Void),
            Standing::Failed => Some(Self::Failed),
            Standing::Succeeded => Some(match score(by?, trial) {
                Score::Value(value) => Self::Finished(value),
                Score::Diverged => Self::Finished(f64::NAN),
                Score::Missing => Self::Failed,
            }),
        }
    }
}
