//! The small row of each trial that decisions about other trials read.

use crate::score::{Score, score};
use spotsweep_protocol::rungs::Curve;
use spotsweep_records::sweep::{Plan, Ranking};
use spotsweep_records::trial::{Standing, Trial};

/// The part of a trial's record that decisions about other trials use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Peer {
    /// The metric at the rungs that the trial has reached.
    pub rungs: Curve,
    /// The trial's parameters as JSON, if they were suggested.
    pub parameters: Option<String>,
    /// How the trial has ended; `None` while it is open.
    pub end: Option<PeerEnd>,
}

impl Peer {
    /// Returns the row of a trial; `None` if the others need none.
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
    /// The trial succeeded with this value of the metric, which is not finite if the trial has diverged.
    Finished(f64),
    /// The trial was stopped early, because others were better.
    Stopped,
    /// The training has failed, or has reported no value.
    Failed,
    /// The trial has ended for a reason that says nothing about its parameters: it was cancelled, or the budget was
    /// reached.
    Void,
}

impl PeerEnd {
    /// Returns how a trial has ended, with its value of the metric `by`. It is `None` while the trial is open, and for
    /// a success without a metric.
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
