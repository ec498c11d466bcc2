//! The interrupted attempts of a trial.

use super::{Attempt, INTERRUPTED_EXIT_CODE, Leaving, Reason, Trial};

/// The exit code of a container that SIGKILL has ended.
const KILLED_EXIT_CODE: i32 = 137;

impl Trial {
    /// Returns the interrupted attempts with their numbers. The last attempt is left out if spotsweep ended the trial
    /// (a person, the budget, a limit), because its runner then ends as after an interruption.
    pub fn interruptions(&self) -> impl Iterator<Item = (u32, &Attempt)> {
        let is_stopped = self.is_over() && self.reason.as_ref().is_some_and(|reason| reason.stopped().is_some());
        let last = self.attempts.keys().next_back().filter(|_| is_stopped).copied();
        let attempts = self.attempts.iter().map(|(number, attempt)| (*number, attempt));
        attempts.filter(move |(number, _)| Some(*number) != last && self.was_interrupted(*number))
    }

    /// Whether an attempt was interrupted.
    pub fn was_interrupted(&self, number: u32) -> bool {
        self.attempts.get(&number).is_some_and(Attempt::was_interrupted) || self.was_killed_under_notice(number)
    }

    /// Whether SIGKILL ended the container of an attempt whose instance EC2 takes. The ECS agent sends it after the
    /// grace of a task that it stops (<https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_ContainerDefinition.html>,
    /// `stopTimeout`), so it does not show that the training failed.
    pub(super) fn was_killed_under_notice(&self, number: u32) -> bool {
        let Some(attempt) = self.attempts.get(&number) else { return false };
        let workspace = self.workspace.as_ref();
        let is_noticed =
            || attempt.leaving == Some(Leaving::Noticed) || workspace.is_some_and(|found| found.was_noticed(number));
        attempt.exit_code == Some(KILLED_EXIT_CODE) && !attempt.has_timed_out() && is_noticed()
    }

    /// Returns why an attempt was interrupted, for people. Where the runner ended the container, Batch's reason says
    /// only that the container has exited.
    pub fn why_interrupted(&self, number: u32) -> Option<String> {
        let attempt = self.attempts.get(&number)?;
        let reason = attempt.reason.as_ref();
        if attempt.exit_code != Some(INTERRUPTED_EXIT_CODE) || reason.is_some_and(|reason| reason.stopped().is_some()) {
            return reason.map(Reason::to_string);
        }
        let is_noticed = self.workspace.as_ref().is_some_and(|workspace| workspace.was_noticed(number));
        let why = if is_noticed { "EC2 announced that it takes the instance" } else { "the runner left the instance" };
        Some(format!("{why} (exit code {INTERRUPTED_EXIT_CODE})"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use spotsweep_protocol::ids::{JobId, SweepId};

    use super::*;
    use crate::trial::JobStatus;

    fn trial(status: JobStatus, reason: Option<&str>) -> Trial {
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), 0, JobId::from("job:0".to_owned()));
        (trial.status, trial.reason, trial.ended) = (status, reason.map(Reason::from), 2);
        for number in [1, 2] {
            trial.attempt(number).exit_code = Some(INTERRUPTED_EXIT_CODE);
            trial.attempt(number).reason = Some("Essential container in task exited".into());
        }
        trial
    }

    #[test]
    fn the_attempt_in_which_a_trial_was_cancelled_is_no_interruption() {
        let numbers = |trial: &Trial| trial.interruptions().map(|(number, _)| number).collect::<Vec<_>>();
        assert_eq!(numbers(&trial(JobStatus::Failed, Some("spotsweep: cancelled by jo"))), [1]);
        assert_eq!(numbers(&trial(JobStatus::Failed, Some("spotsweep: budget reached: 5 USD"))), [1]);
        assert_eq!(numbers(&trial(JobStatus::Failed, Some("Essential container in task exited"))), [1, 2]);
        assert_eq!(numbers(&trial(JobStatus::Runnable, None)), [1, 2]);
    }

    #[test]
    fn a_kill_is_an_interruption_only_under_a_notice() {
        let mut trial = trial(JobStatus::Failed, Some("Essential container in task exited"));
        trial.attempt(2).exit_code = Some(KILLED_EXIT_CODE);
        assert!(!trial.was_interrupted(2) && !trial.is_worn_out(20), "it may have run out of memory");
        trial.attempt(2).leaving = Some(Leaving::Noticed);
        assert!(trial.was_interrupted(2) && trial.is_worn_out(20));
        trial.attempt(2).reason = Some("Job attempt duration exceeded timeout".into());
        assert!(!trial.was_interrupted(2) && !trial.is_worn_out(20));
    }

    #[test]
    fn why_an_attempt_was_interrupted_is_not_that_its_container_exited() {
        let mut trial = trial(JobStatus::Runnable, None);
        assert_eq!(trial.why_interrupted(1).unwrap(), "the runner left the instance (exit code 75)");
        let host = "Host EC2 (instance i-1) terminated.";
        (trial.attempt(2).exit_code, trial.attempt(2).reason) = (None, Some(host.into()));
        assert_eq!(trial.why_interrupted(2).unwrap(), host);
        assert_eq!(trial.why_interrupted(3), None);
    }
}
