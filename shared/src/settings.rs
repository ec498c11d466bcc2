//! What a deployment fixes for all sweeps. Read from the environment once, at cold start.

use std::time::Duration;

/// A deployment's names and times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Queue for files that name none.
    pub queue: Option<String>,
    /// Job definition for files that name none.
    pub job_definition: Option<String>,
    /// Name of the `trial-claim` function, handed to every runner.
    pub claim_function: String,
    /// How long one invocation may hold a record's pending command before another takes over.
    /// Longer than any function's timeout, and than ListJobs takes to show a new job.
    pub lease: Duration,
    /// How long Running work may be silent before Batch is asked about it.
    pub recheck: Duration,
}

/// Longer than the functions' timeout of 60 s by as much again.
pub const LEASE: Duration = Duration::from_secs(120);

/// See [`Settings::recheck`].
pub const RECHECK: Duration = Duration::from_secs(600);

/// Longest time between two re-drives of the same stage.
pub const LONGEST_BACKOFF: Duration = Duration::from_secs(6 * 3600);

impl Settings {
    /// Reads `SPOTSWEEP_QUEUE`, `SPOTSWEEP_JOB_DEFINITION`, `SPOTSWEEP_CLAIM_FUNCTION`,
    /// `SPOTSWEEP_LEASE_SECONDS` and `SPOTSWEEP_RECHECK_SECONDS`.
    ///
    /// # Errors
    /// The name of a variable that is absent and needed, or not a number.
    pub fn from_variables(get: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let text = |name: &str| get(name).filter(|value| !value.is_empty());
        let seconds = |name: &str, otherwise: Duration| match text(name) {
            None => Ok(otherwise),
            Some(value) => value
                .parse()
                .map(Duration::from_secs)
                .map_err(|_| format!("{name} is {value:?}; set it to a whole number of seconds")),
        };
        Ok(Self {
            queue: text("SPOTSWEEP_QUEUE"),
            job_definition: text("SPOTSWEEP_JOB_DEFINITION"),
            claim_function: text("SPOTSWEEP_CLAIM_FUNCTION")
                .ok_or("SPOTSWEEP_CLAIM_FUNCTION is not set; infra/control-plane.yaml sets it")?,
            lease: seconds("SPOTSWEEP_LEASE_SECONDS", LEASE)?,
            recheck: seconds("SPOTSWEEP_RECHECK_SECONDS", RECHECK)?,
        })
    }
}
