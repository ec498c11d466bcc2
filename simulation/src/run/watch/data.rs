//! What the run records about data sets.

use std::collections::{BTreeMap, BTreeSet};

use spotsweep_records::trial::{Attempt, Trial};
use spotsweep_records::workspace::TrialRef;

use super::Watch;

/// The interruptions while data sets are fetched that cost a trial no attempt.
const FREE: usize = 10;

/// What is known of the data sets of trials.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    /// Attempts that fetch, as the control plane certainly knows, or that ended while they did.
    under_way: BTreeMap<TrialRef, BTreeSet<u32>>,
    /// Trials whose data sets cannot be had, because an object has changed.
    lacking: BTreeSet<TrialRef>,
}

impl Watch {
    /// The control plane has accepted that an attempt fetches.
    pub(in crate::run) fn fetches_data(&mut self, trial: &TrialRef, attempt: u32) {
        self.data.under_way.entry(trial.clone()).or_default().insert(attempt);
    }

    /// An attempt has its data sets.
    pub(in crate::run) fn has_data(&mut self, trial: &TrialRef, attempt: u32) {
        if let Some(attempts) = self.data.under_way.get_mut(trial) {
            attempts.remove(&attempt);
        }
    }

    /// An attempt ends its trial because a data set cannot be had.
    pub(in crate::run) fn lacks_data(&mut self, trial: &TrialRef) {
        self.data.lacking.insert(trial.clone());
    }

    /// Whether an attempt has ended the trial because a data set cannot be had.
    pub(in crate::run) fn has_lacked_data(&self, trial: &TrialRef) -> bool {
        self.data.lacking.contains(trial)
    }

    /// Whether the trial's last attempt was interrupted while it fetched.
    pub(in crate::run) fn ended_while_fetching(&self, trial: &Trial) -> bool {
        self.was_cut_off(trial, trial.ended)
    }

    /// How many ended attempts count towards `attempts`, by what the runners have reported.
    pub(in crate::run) fn counted(&self, trial: &Trial) -> usize {
        let on_fit = trial.ended_attempts().filter(|attempt| attempt.unfit().is_none()).count();
        let cut_off = (1..=trial.ended).filter(|attempt| self.was_cut_off(trial, *attempt)).count();
        on_fit - cut_off.min(FREE).min(on_fit)
    }

    fn was_cut_off(&self, trial: &Trial, attempt: u32) -> bool {
        let has_fetched = self.data.under_way.get(&trial.of()).is_some_and(|attempts| attempts.contains(&attempt));
        has_fetched && trial.attempts.get(&attempt).is_some_and(Attempt::was_interrupted)
    }
}
