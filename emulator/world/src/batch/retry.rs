//! The retryStrategy, which decides whether a failed attempt is retried (fact 18; EvaluateOnExit in the Batch API
//! reference).

use serde::{Deserialize, Serialize};

use crate::ApiError;

const MOST_ATTEMPTS: u32 = 10;
const MOST_RULES: usize = 5;
const LONGEST_PATTERN: usize = 512;

/// The number of attempts of a job, and the rules for retries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryStrategy {
    /// 1 to 10 attempts; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// At most 5 rules. The first that matches decides, and without a match the attempt is retried.
    #[serde(default)]
    pub evaluate_on_exit: Vec<EvaluateOnExit>,
}

/// A rule. All its conditions must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EvaluateOnExit {
    /// The pattern for the attempt's statusReason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_status_reason: Option<String>,
    /// The pattern for the container's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_reason: Option<String>,
    /// The pattern for the exit code in decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_exit_code: Option<String>,
    /// `RETRY` or `EXIT`, in any case.
    #[serde(default)]
    pub action: String,
}

impl RetryStrategy {
    pub(super) fn attempts(&self) -> u32 {
        self.attempts.unwrap_or(1)
    }

    /// Checks the documented limits.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        if !(1..=MOST_ATTEMPTS).contains(&self.attempts()) {
            return Err(refused("Retry strategy attempts must be between 1 and 10"));
        }
        if self.evaluate_on_exit.len() > MOST_RULES {
            return Err(refused("Retry strategy evaluateOnExit must have at most 5 entries"));
        }
        if !self.evaluate_on_exit.is_empty() && self.attempts.is_none() {
            return Err(refused("Retry strategy attempts must be given with evaluateOnExit"));
        }
        self.evaluate_on_exit.iter().try_for_each(EvaluateOnExit::check)
    }

    /// Whether attempt number `attempt`, which has failed in this way, is retried.
    pub(super) fn retries(
        &self,
        attempt: u32,
        status_reason: &str,
        reason: Option<&str>,
        exit_code: Option<i32>,
    ) -> bool {
        if attempt >= self.attempts() {
            return false;
        }
        // An absent reason or exit code counts as empty, so `*` matches it and `75` does not.
        let exit_code = exit_code.map(|code| code.to_string()).unwrap_or_default();
        let decided = self.evaluate_on_exit.iter().find(|rule| {
            matches(rule.on_status_reason.as_deref(), status_reason)
                && matches(rule.on_reason.as_deref(), reason.unwrap_or_default())
                && matches(rule.on_exit_code.as_deref(), &exit_code)
        });
        decided.is_none_or(|rule| rule.action.eq_ignore_ascii_case("RETRY"))
    }
}

impl EvaluateOnExit {
    fn check(&self) -> Result<(), ApiError> {
        let action_known = ["RETRY", "EXIT"].iter().any(|a| self.action.eq_ignore_ascii_case(a));
        if !action_known {
            return Err(refused("evaluateOnExit action must be RETRY or EXIT"));
        }
        let text = |c: char| c.is_alphanumeric() || c == '.' || c == ':' || c.is_whitespace();
        let conditions = [
            ("onStatusReason", &self.on_status_reason, text as fn(char) -> bool),
            ("onReason", &self.on_reason, text),
            ("onExitCode", &self.on_exit_code, |c: char| c.is_ascii_digit()),
        ];
        if conditions.iter().all(|(_, pattern, _)| pattern.is_none()) {
            return Err(refused("evaluateOnExit needs one of onStatusReason, onReason and onExitCode"));
        }
        for (name, pattern, allowed) in conditions {
            let Some(pattern) = pattern else { continue };
            let start = pattern.strip_suffix('*').unwrap_or(pattern);
            if pattern.len() > LONGEST_PATTERN || !start.chars().all(allowed) {
                let message = format!("evaluateOnExit {name} '{pattern}' is not a valid pattern");
                return Err(refused(&message));
            }
        }
        Ok(())
    }
}

fn matches(pattern: Option<&str>, text: &str) -> bool {
    let Some(pattern) = pattern else { return true };
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => text == pattern,
    }
}

fn refused(message: &str) -> ApiError {
    ApiError::client(format!("Error executing request, Exception : {message}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn strategy(json: &str) -> RetryStrategy {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn rules_decide_as_documented() {
        let ours = r#"{"attempts":10,"evaluateOnExit":[{"onStatusReason":"host ec2*","action":"retry"},
            {"onExitCode":"75","action":"RETRY"},{"onReason":"*","action":"EXIT"}]}"#;
        let both = r#"{"attempts":2,"evaluateOnExit":[{"onExitCode":"1*","onReason":"OutOf*","action":"EXIT"}]}"#;
        let host = "Host EC2 (instance i-04b17daec78ef4a0b) terminated.";
        let exited = "Essential container in task exited";
        let cases = [
            (ours, 1, host, None, None, true),
            (ours, 10, host, None, None, false),
            (ours, 3, exited, None, Some(75), true),
            (ours, 3, exited, None, Some(175), false),
            (ours, 3, exited, None, Some(1), false),
            (ours, 3, "Task failed to start", Some("CannotPullContainerError: x"), None, false),
            (both, 1, exited, Some("OutOfMemoryError"), Some(137), false),
            (both, 1, exited, None, Some(137), true),
            (both, 1, exited, Some("OutOfMemoryError"), Some(2), true),
            (r#"{"attempts":2}"#, 1, exited, None, Some(1), true),
            ("{}", 1, exited, None, Some(1), false),
        ];
        for (json, attempt, status_reason, reason, code, wanted) in cases {
            let decided = strategy(json).retries(attempt, status_reason, reason, code);
            assert_eq!(decided, wanted, "{json} {attempt} {status_reason} {reason:?} {code:?}");
        }
    }

    #[test]
    fn limits_are_checked() {
        let rule = r#"{"onReason":"a","action":"EXIT"}"#;
        let six = format!(r#"{{"attempts":2,"evaluateOnExit":[{}]}}"#, [rule; 6].join(","));
        let refused = [
            r#"{"attempts":0}"#,
            r#"{"attempts":11}"#,
            six.as_str(),
            r#"{"evaluateOnExit":[{"onReason":"a","action":"EXIT"}]}"#,
            r#"{"attempts":2,"evaluateOnExit":[{"action":"EXIT"}]}"#,
            r#"{"attempts":2,"evaluateOnExit":[{"onReason":"a","action":"AGAIN"}]}"#,
            r#"{"attempts":2,"evaluateOnExit":[{"onReason":"a*b","action":"EXIT"}]}"#,
            r#"{"attempts":2,"evaluateOnExit":[{"onExitCode":"7x","action":"EXIT"}]}"#,
        ];
        for json in refused {
            assert!(strategy(json).check().is_err(), "{json}");
        }
        assert!(strategy(r#"{"attempts":10,"evaluateOnExit":[{"onExitCode":"7*","action":"retry"}]}"#).check().is_ok());
    }
}
