//! The records of ended trials. They are on the leaderboard and must not change.

use std::collections::BTreeMap;

use spotsweep_protocol::metric::Metric;
use spotsweep_records::trial::{Attempt, End, JobStatus, Trial};

use super::{Seen, Watch};
use crate::harness::Harness;

/// The parts of a record from which the results are made. The workspace is not one, because it is still to be deleted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    status: JobStatus,
    ended: u32,
    attempts: BTreeMap<u32, Attempt>,
    metrics: BTreeMap<String, Metric>,
    end: Option<End>,
    claimed_by: Option<u32>,
}

impl Outcome {
    fn of(trial: &Trial) -> Self {
        let Trial { status, ended, attempts, metrics, end, claimed_by, .. } = trial.clone();
        Self { status, ended, attempts, metrics, end, claimed_by }
    }
}

impl Watch {
    pub(super) fn records(&mut self, harness: &Harness) {
        let mut changed = None;
        harness.store.each_trial(|trial| {
            if !trial.is_over() {
                return;
            }
            let of = trial.of();
            let (now, before) = (Outcome::of(trial), self.ended.get(&of));
            match before {
                Some(before) if *before != now => changed = Some(format!("{of}: {before:?} became {now:?}")),
                Some(_) => {}
                None => drop(self.ended.insert(of, now)),
            }
        });
        if let Some(changed) = changed {
            self.is_wrong(Seen::Changed, changed);
        }
    }
}
