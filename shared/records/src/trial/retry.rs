//! Which ends of an attempt Batch answers with another attempt.

use super::{AGENT_FAILED, HOST_GONE, INTERRUPTED_EXIT_CODE, NOT_STARTED};

/// What of an ended attempt a rule is about
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

/// One rule of a job's retry strategy. The first that matches counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryRule {
    /// What it looks at.
    pub on: RetryOn,
    /// What it matches; a `*` at the end stands for any rest.
    pub pattern: String,
    /// Whether Batch starts another attempt.
    pub retries: bool,
}

/// The rules of every job: interruptions are started again, and so are failures of Docker, ECR and the ECS agent;
/// everything else is final. Without the last rule Batch would retry whatever no rule matches. Batch takes five rules at
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
