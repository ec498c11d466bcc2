//! The limits for a stall: a training that shows no sign of life.

use serde::{Deserialize, Serialize};

/// The signs of life that a stalled training does not show.
pub const NO_SIGN: &str = "no output, metric, checkpoint or GPU activity";

/// The limits for a training that shows no sign of life: no output, metric, checkpoint or GPU activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StallRule {
    /// Seconds without a sign until the stall is reported; absent if it never is.
    pub warn_seconds: Option<u32>,
    /// Seconds without a sign until the attempt is ended; absent if it never is. Not less than `warn_seconds`.
    pub end_seconds: Option<u32>,
    /// Whether such an end also ends the trial, because earlier attempts have ended in the same way.
    pub is_last: bool,
}

impl StallRule {
    /// Seconds without a sign until a stall is reported, unless the limit of the sweep file is shorter.
    pub const WARN_SECONDS: u32 = 3600;

    /// The limits without a report and without an end.
    pub const OFF: Self = Self { warn_seconds: None, end_seconds: None, is_last: false };
}

impl Default for StallRule {
    /// Returns a report after an hour, and no end.
    fn default() -> Self {
        Self { warn_seconds: Some(Self::WARN_SECONDS), ..Self::OFF }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_without_a_rule_means_a_report_after_an_hour() {
        assert_eq!(serde_json::from_str::<StallRule>("{}").unwrap(), StallRule::default());
        for rule in [StallRule::OFF, StallRule::default(), StallRule { end_seconds: Some(1800), ..StallRule::OFF }] {
            let written = serde_json::to_string(&rule).unwrap();
            assert_eq!(serde_json::from_str::<StallRule>(&written).unwrap(), rule, "{written}");
        }
    }
}
