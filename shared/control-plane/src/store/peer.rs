//! What the decisions about one trial need to know of the others: a small row of each.

use crate::results::peer_end::PeerEnd;
use crate::sweep::Plan;
use crate::trial::Trial;
use spotsweep_protocol::rungs::Curve;

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
