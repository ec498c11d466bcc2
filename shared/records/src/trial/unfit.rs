//! Attempts on unfit instances.

use std::collections::BTreeSet;

use super::{Attempt, Reason, Trial};
use spotsweep_protocol::stop::StopReason;

/// The attempts that may be interrupted while they fetch data sets before such attempts count. On an instance type that
/// is reclaimed again and again before the data is there, a trial would otherwise never end.
const FREE_FETCHES: usize = 10;

impl Attempt {
    /// Returns what is wrong with the attempt's instance, if its runner has found it unfit.
    pub fn unfit(&self) -> Option<&str> {
        match self.reason.as_ref().and_then(Reason::stopped) {
            Some(StopReason::UnfitInstance { cause }) => Some(cause),
            Some(_) | None => None,
        }
    }
}

impl Trial {
    /// Returns how many ended attempts count towards the sweep file's `attempts`. An attempt on an unfit instance does
    /// not count, because it says nothing about the trial. Neither do the first [`FREE_FETCHES`] attempts that were
    /// interrupted before their data sets were there.
    pub fn tried(&self) -> usize {
        self.tried_until(self.ended)
    }

    /// Returns how many attempts count up to this one.
    pub(super) fn tried_until(&self, last: u32) -> usize {
        let ended = self.attempts.range(..=last).map(|(_, attempt)| attempt);
        let on_fit: Vec<_> = ended.filter(|attempt| attempt.unfit().is_none()).collect();
        let fetching = on_fit.iter().filter(|attempt| attempt.was_interrupted_while_fetching()).count();
        on_fit.len() - fetching.min(FREE_FETCHES)
    }

    /// Returns how many of the newest attempts in a row were false starts. Those on one unfit instance count once,
    /// because the instance is the cause. Every three false starts count at least once, because an instance that cannot
    /// be drained gets the trial again and again. None count once the attempt under way has claimed on a fit instance.
    pub fn false_starts(&self) -> usize {
        let under_way = self.claimed_by.filter(|attempt| *attempt > self.ended);
        if under_way.and_then(|attempt| self.attempts.get(&attempt)).is_some_and(|attempt| attempt.unfit().is_none()) {
            return 0;
        }
        let starts: Vec<&Attempt> =
            self.ended_attempts().rev().take_while(|attempt| attempt.is_false_start()).collect();
        let unfit = |attempt: &&Attempt| attempt.unfit().and(attempt.instance.clone());
        let instances: BTreeSet<String> = starts.iter().filter_map(unfit).collect();
        let others = starts.iter().filter(|attempt| unfit(attempt).is_none()).count();
        (instances.len() + others).max(starts.len() / 3)
    }
}

#[cfg(test)]
mod tests {
    use spotsweep_protocol::claim::Fetch;
    use spotsweep_protocol::ids::{JobId, SweepId};

    use super::*;

    /// Returns a trial after attempts on these instances. "" is a container that did not start.
    fn trial(instances: &[&str]) -> Trial {
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), 0, JobId::from("j".to_owned()));
        for (instance, number) in instances.iter().zip(1..) {
            let attempt = trial.attempt(number);
            if !instance.is_empty() {
                attempt.instance = Some((*instance).to_owned());
                attempt.reason = Some(StopReason::UnfitInstance { cause: "no GPU answers".to_owned() }.into());
            }
            trial.ended = number;
        }
        trial
    }

    fn false_starts(instances: &[&str]) -> usize {
        trial(instances).false_starts()
    }

    #[test]
    fn an_instance_that_cannot_train_is_counted_once() {
        assert_eq!(false_starts(&["", "", ""]), 3);
        assert_eq!(false_starts(&["i-1", "i-1", "i-1", "i-1", ""]), 2);
        assert_eq!(false_starts(&["i-1", "i-2", "i-3", "i-4", "i-5"]), 5, "what all instances have is the image's");
        assert_eq!(false_starts(&["i-1"; 15]), 5, "it is never drained");
    }

    #[test]
    fn an_attempt_that_has_started_ends_the_row_of_false_starts() {
        let mut trial = trial(&[""; 5]);
        trial.claimed_by = Some(5);
        trial.attempt(6).instance = Some("i-6".to_owned());
        assert_eq!(trial.false_starts(), 5);
        trial.claimed_by = Some(6);
        assert_eq!(trial.false_starts(), 0);
        trial.attempt(6).reason = Some(StopReason::UnfitInstance { cause: "no GPU answers".to_owned() }.into());
        assert_eq!(trial.false_starts(), 5);
    }

    #[test]
    fn an_attempt_that_is_interrupted_while_it_fetches_data_does_not_count_at_first() {
        let tried = |attempts: &[(u64, i32)]| {
            let mut trial = Trial::new(SweepId::derive("b", "k", "v"), 0, JobId::from("j".to_owned()));
            for ((bytes, code), number) in attempts.iter().zip(1..) {
                let attempt = trial.attempt(number);
                attempt.fetch = Some(Fetch { bytes: *bytes, of_bytes: 9, seconds: 1 });
                attempt.exit_code = Some(*code);
                trial.ended = number;
            }
            trial.tried()
        };
        let (interrupted, failed) = (75, 1);
        assert_eq!(tried(&[(0, interrupted), (8, interrupted), (9, interrupted), (8, failed)]), 2);
        assert_eq!(tried(&[(1, interrupted); 12]), 2, "a trial that never gets its data ends");
    }
}
