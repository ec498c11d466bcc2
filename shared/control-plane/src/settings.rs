//! What is the same for all sweeps of a deployment. It is read from the environment once, at cold start.

use std::time::Duration;

use spotsweep_records::sweep::pages::PAGE_TRIALS;
use spotsweep_sweep_file::{Defaults, initialization_rate};

/// A deployment's names and times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The deployment's bucket. Only uploads to it are sweep files.
    pub bucket: String,
    /// Queue for files that name none.
    pub queue: Option<String>,
    /// Job definition for files that name none.
    pub job_definition: Option<String>,
    /// Name of the `trial-claim` function, which every runner invokes.
    pub claim_function: String,
    /// ARN of the role whose credentials attempts get, each limited to its own trial.
    pub trial_role: String,
    /// ARN of the parameters of this account and region in Parameter Store, to which a parameter's path is added.
    pub parameters: String,
    /// Patterns of the secrets that sweeps may read, besides the deployment's own, with IAM's wildcards: of paths in
    /// Parameter Store, which begin with a slash, and of names in Secrets Manager.
    pub allowed_secrets: Vec<String>,
    /// How long one invocation may hold a record's pending command before another takes over. It is longer than any
    /// function's timeout, and longer than ListJobs takes to show a new job.
    pub lease: Duration,
    /// Values that replace missing ones of a sweep file.
    pub defaults: Defaults,
    /// GiB of a trial's volume if the file names none. With 0 only sweeps that ask for volumes get them.
    pub workspace_gib: u32,
    /// MiB/s at which a volume loads its snapshot if the file names none; absent for EC2's default rate.
    pub initialization_rate: Option<u32>,
    /// How long a runner that waits for its workspace waits between two requests.
    pub poll: Duration,
    /// How many trials' records one invocation reads.
    pub page_trials: u32,
    /// How long a running trial or sweep may be without events before Batch is asked about it.
    pub recheck: Duration,
}

/// The default of [`Settings::lease`]: twice the functions' timeout of 60 s.
pub const LEASE: Duration = Duration::from_secs(120);

/// The default of [`Settings::workspace_gib`]: room for some checkpoints and a dataset. gp3 at $0.08 per GiB and month
/// costs 0.2 cents per hour.
pub const WORKSPACE_GIB: u32 = 20;

/// How long the workspace of a failed trial is kept if the file does not say: long enough for a weekend.
pub const KEEP_FAILED_SECONDS: u32 = 3 * 86_400;

/// The default of [`Settings::poll`]. An attachment takes a few seconds.
pub const POLL: Duration = Duration::from_secs(2);

/// The default of [`Settings::recheck`].
pub const RECHECK: Duration = Duration::from_secs(600);

/// Longest time between two redrives of the same stage, so that a sweep continues soon after an outage.
pub const LONGEST_BACKOFF: Duration = Duration::from_secs(15 * 60);

impl Settings {
    /// Reads `SPOTSWEEP_BUCKET`, `SPOTSWEEP_QUEUE`, `SPOTSWEEP_JOB_DEFINITION`, `SPOTSWEEP_CLAIM_FUNCTION`,
    /// `SPOTSWEEP_TRIAL_ROLE`, `SPOTSWEEP_PARAMETERS`, `SPOTSWEEP_ALLOWED_SECRETS`, `SPOTSWEEP_DEFAULT_TRIALS`, `SPOTSWEEP_WORKSPACE_GIB`, `SPOTSWEEP_INITIALIZATION_RATE`,
    /// `SPOTSWEEP_POLL_MS`, `SPOTSWEEP_LEASE_SECONDS` and `SPOTSWEEP_RECHECK_SECONDS`.
    ///
    /// # Errors
    /// Returns a text with the name of a variable that is missing, or that has an invalid value.
    pub fn from_variables(get: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let text = |name: &str| get(name).filter(|value| !value.is_empty());
        let wanted =
            |name: &str| text(name).ok_or_else(|| format!("{name} is not set; infra/control-plane.yaml sets it"));
        let number = |name: &str, unit: &str, otherwise: u64| match text(name) {
            None => Ok(otherwise),
            Some(value) => {
                value.parse().map_err(|_| format!("{name} is {value:?}; set it to a whole number of {unit}"))
            }
        };
        let seconds =
            |name: &str, otherwise: Duration| number(name, "seconds", otherwise.as_secs()).map(Duration::from_secs);
        let poll_ms = u64::try_from(POLL.as_millis()).unwrap_or(u64::MAX);
        let rate = number("SPOTSWEEP_INITIALIZATION_RATE", "MiB/s", 0)?;
        let trials = number("SPOTSWEEP_DEFAULT_TRIALS", "trials", Defaults::default().trials)?;
        let gib = number("SPOTSWEEP_WORKSPACE_GIB", "GiB", u64::from(WORKSPACE_GIB))?;
        Ok(Self {
            bucket: wanted("SPOTSWEEP_BUCKET")?,
            queue: text("SPOTSWEEP_QUEUE"),
            job_definition: text("SPOTSWEEP_JOB_DEFINITION"),
            claim_function: wanted("SPOTSWEEP_CLAIM_FUNCTION")?,
            trial_role: wanted("SPOTSWEEP_TRIAL_ROLE")?,
            parameters: wanted("SPOTSWEEP_PARAMETERS")?,
            allowed_secrets: text("SPOTSWEEP_ALLOWED_SECRETS")
                .iter()
                .flat_map(|all| all.split(','))
                .map(str::to_owned)
                .collect(),
            defaults: Defaults { run_cap: None, trials },
            workspace_gib: u32::try_from(gib).map_err(|_| format!("SPOTSWEEP_WORKSPACE_GIB is {gib}, too large"))?,
            initialization_rate: initialization_rate(rate).ok_or_else(|| {
                format!("SPOTSWEEP_INITIALIZATION_RATE is {rate}; set it to 0 or to 100 to 300 MiB/s")
            })?,
            poll: Duration::from_millis(number("SPOTSWEEP_POLL_MS", "milliseconds", poll_ms)?),
            lease: seconds("SPOTSWEEP_LEASE_SECONDS", LEASE)?,
            page_trials: PAGE_TRIALS,
            recheck: seconds("SPOTSWEEP_RECHECK_SECONDS", RECHECK)?,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_ec2_does_not_take_fails_at_the_start() {
        let read = |rate: Option<&str>| {
            Settings::from_variables(|name| match name {
                "SPOTSWEEP_BUCKET" | "SPOTSWEEP_CLAIM_FUNCTION" | "SPOTSWEEP_TRIAL_ROLE" | "SPOTSWEEP_PARAMETERS" => {
                    Some("name".into())
                }
                "SPOTSWEEP_INITIALIZATION_RATE" => rate.map(str::to_owned),
                _unset => None,
            })
        };
        for (rate, expected) in [(None, None), (Some("0"), None), (Some("100"), Some(100)), (Some("300"), Some(300))] {
            assert_eq!(read(rate).unwrap().initialization_rate, expected, "{rate:?}");
        }
        for rate in ["99", "301", "4294967396", "fast"] {
            let error = read(Some(rate)).unwrap_err();
            assert!(error.contains("SPOTSWEEP_INITIALIZATION_RATE") && error.contains("MiB/s"), "{error}");
        }
    }
}
