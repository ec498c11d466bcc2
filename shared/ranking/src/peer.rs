//! What the decisions about one trial need to know of the others: a small row of each.

use crate::score::{Score, score};
use spotsweep_protocol::rungs::Curve;
use spotsweep_records::sweep::{Plan, Ranking};
use spotsweep_records::trial::{Standing, Trial};

/// A trial, as the decisions about others see it. It follows from the trial's record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Peer {
    /// The metric at its rungs.
    pub rungs: Curve,
    /// Its parameters as JSON, where they were suggested.
    pub parameters: Option<String>,
    /// How it has ended; `None` while it is open.
    pub end: Option<PeerEnd>,
}

impl Peer {
    /// The row of a trial; `None` where the others need none.
    pub fn of(trial: &Trial, plan: Option<&Plan>) -> Option<Self> {
        if trial.rungs.is_empty() && trial.suggested.is_none() {
            return None;
        }
        Some(Self {
            rungs: trial.rungs.clone(),
            parameters: trial.suggested.as_ref().map(|suggested| suggested.text().to_owned()),
            end: PeerEnd::of(trial, plan.and_then(|plan| plan.metric.as_ref())),
        })
    }
}

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
