//! The rules by which Batch starts another attempt after an attempt's end.

use super::{AGENT_FAILED, HOST_GONE, INTERRUPTED_EXIT_CODE, NOT_STARTED};

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
