//! Whether another attempt follows: Batch starts it by these rules, or the trial's job is submitted again.

use super::{
    AGENT_FAILED, HOST_GONE, INTERRUPTED_EXIT_CODE, JOB_ATTEMPTS, JobStatus, MAX_FALSE_STARTS, NOT_STARTED, Trial,
};

/// The property of an ended attempt that a rule matches
/// (<https://docs.aws.amazon.com/batch/latest/APIReference/API_EvaluateOnExit.html>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryOn {
    /// Batch's reason.
    StatusReason,
    /// The container's exit code.
    ExitCode,
    /// The container's reason.
    Reason,
}

/// One rule of a job's retry strategy. The first rule that matches counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryRule {
    /// The property that it matches.
    pub on: RetryOn,
    /// The matched text. A `*` at the end matches any rest.
    pub pattern: String,
    /// Whether Batch starts another attempt.
    pub retries: bool,
}

/// Returns the rules of every job. Batch retries interruptions and failures of Docker, ECR and the ECS agent; every
/// other end is final. Without the last rule Batch would retry an end that no rule matches. Batch takes five rules at
/// most (fact 18).
pub fn retry_rules() -> [RetryRule; 5] {
    let rule = |on, pattern, retries| RetryRule { on, pattern, retries };
    [
        rule(RetryOn::StatusReason, format!("{HOST_GONE}*"), true),
        rule(RetryOn::ExitCode, INTERRUPTED_EXIT_CODE.to_string(), true),
        rule(RetryOn::StatusReason, format!("{NOT_STARTED}*"), true),
        rule(RetryOn::Reason, format!("{AGENT_FAILED}*"), true),
        rule(RetryOn::Reason, "*".to_owned(), false),
    ]
}

/// Returns how many attempts the job of a trial gets that has `tried` so many of those that its sweep file allows.
pub fn job_attempts(attempts: u32, tried: usize) -> u32 {
    attempts.saturating_sub(u32::try_from(tried).unwrap_or(u32::MAX)).clamp(1, JOB_ATTEMPTS)
}

impl Trial {
    /// Whether Batch has failed the job only because of interruptions or false starts, so that it can be submitted
    /// again. `attempts` is what the sweep file allows the trial. Batch retries reclaims until the attempts of one job
    /// are used up. It is not documented whether a rule matches an end without a reason.
    pub fn is_worn_out(&self, attempts: u32) -> bool {
        let before = self.round.saturating_mul(JOB_ATTEMPTS);
        let is_last = self.ended == before.saturating_add(job_attempts(attempts, self.tried_until(before)));
        let last = self.attempts.get(&self.ended);
        let was_interrupted = last.is_some_and(|last| last.is_lost() || (is_last && last.was_interrupted()))
            || self.was_killed_under_notice(self.ended);
        let is_false_start = (1..MAX_FALSE_STARTS).contains(&self.false_starts());
        self.status == JobStatus::Failed && (was_interrupted || is_false_start)
    }
}
