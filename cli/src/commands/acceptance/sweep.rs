//! The four trials of a run: the sweep file, and the model that undisturbed training makes.

use std::time::Duration;

use serde_json::{Value, json};

const SCRIPT: &str = include_str!("train.sh");
/// Key of the sweep file.
pub(super) const KEY: &str = "sweeps/spotsweep-acceptance.yaml";
/// The metric that the script prints with each step.
pub(super) const METRIC: &str = "loss";
/// A target for each trial.
const TARGETS: [u32; 4] = [1_000, 2_000, 3_000, 4_000];
/// Attempts of a trial. Both injections may interrupt the same trial, and EC2 may take an instance itself.
pub(super) const ATTEMPTS: u32 = 4;
/// Time limit of the whole sweep in hours. After it no attempt starts again.
const MAX_HOURS: u32 = 2;

/// How long things take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    pub(super) steps: u32,
    /// Seconds of one step.
    pub(super) step_seconds: f64,
    /// Time after which Batch ends an attempt. It is at least a minute (fact 18).
    pub(super) timeout: Duration,
    /// Length of an instance-hour of the estimate.
    pub(super) hour: Duration,
    /// For how long Batch keeps an instance without jobs. It is some minutes, but no document says how many.
    pub(super) idle: Duration,
    /// Time until the first instance must have started.
    pub(super) patience: Duration,
    /// Time between two tries of an injection.
    pub(super) rest: Duration,
    /// Time until a new rule matches events: "Allow a short period of time for changes to take effect"
    /// (<https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutRule.html>).
    pub(super) new_rule: Duration,
    /// Time between two looks at the run.
    pub(super) poll: Duration,
    /// Time after which the run is given up.
    pub(super) deadline: Duration,
    /// For how long events may still arrive after the sweep has settled.
    pub(super) late: Duration,
}

impl Pace {
    /// A training takes thirteen minutes, so that a notice of two minutes ends while it trains, even if the notice
    /// comes two minutes late.
    pub(super) const AWS: Self = Self {
        steps: 390,
        step_seconds: 2.0,
        timeout: Duration::from_secs(1_200),
        hour: Duration::from_secs(3_600),
        idle: Duration::from_secs(300),
        patience: Duration::from_secs(1_200),
        rest: Duration::from_secs(30),
        new_rule: Duration::from_secs(60),
        poll: Duration::from_secs(5),
        // This is long enough for one trial at a time.
        deadline: Duration::from_secs(9_000),
        late: Duration::from_secs(60),
    };
    /// On the local stack a notice is two seconds. Prices are as on AWS, so an hour is short, and a limit can be
    /// reached.
    pub(super) const LOCAL: Self = Self {
        steps: 60,
        step_seconds: 0.2,
        timeout: Duration::from_secs(1_200),
        hour: Duration::from_secs(20),
        idle: Duration::from_secs(5),
        patience: Duration::from_secs(20),
        rest: Duration::from_secs(1),
        new_rule: Duration::from_secs(3),
        poll: Duration::from_millis(300),
        deadline: Duration::from_secs(300),
        late: Duration::from_secs(2),
    };

    /// Longest time of all attempts of all trials together. Batch ends each of them at its timeout.
    pub(super) fn most_training(self) -> Duration {
        self.timeout * (trials() * ATTEMPTS)
    }
}

/// Makes the sweep file, as JSON, which is YAML too.
pub(super) fn file(pace: Pace, queue: &str, definition: &str, gpus: bool, max_usd: f64) -> Value {
    let mut file = json!({
        "method": "grid",
        "metric": { "name": METRIC, "goal": "minimize" },
        "parameters": {
            "target": { "values": TARGETS },
            "steps": { "value": pace.steps },
            "seconds": { "value": pace.step_seconds },
        },
        "spotsweep": {
            "queue": queue,
            "job_definition": definition,
            "command": ["sh", "-c", SCRIPT],
            "workspace": { "size": "1GiB" },
            "attempts": ATTEMPTS,
            "timeout": pace.timeout.as_secs(),
            "budget": { "max_usd": max_usd, "max_hours": MAX_HOURS },
        },
    });
    if gpus {
        file["spotsweep"]["resources"] = json!({ "gpus": 1 });
    }
    file
}

/// Number of trials.
pub(super) fn trials() -> u32 {
    u32::try_from(TARGETS.len()).unwrap_or(u32::MAX)
}

/// The model of a trial that trains each step once.
pub(super) fn model(index: u32, pace: Pace) -> Option<String> {
    let target = u64::from(*TARGETS.get(usize::try_from(index).ok()?)?);
    let weights = (1..=u64::from(pace.steps)).fold(0, |weights, step| (weights * 31 + target + step) % 65_521);
    Some(weights.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_sweep_is_valid_and_fits_into_a_job() {
        let text = file(Pace::AWS, "spotsweep-spot", "spotsweep-train", true, 2.0).to_string();
        let read = spotsweep_sweep_file::parse(KEY, "", text.as_bytes()).unwrap();
        let settings = &read.settings;
        assert_eq!((settings.attempts, settings.timeout_seconds), (Some(4), Some(1_200)));
        let trials = u64::try_from(TARGETS.len()).unwrap();
        let most = trials * u64::from(settings.attempts.unwrap()) * u64::from(settings.timeout_seconds.unwrap());
        assert_eq!(Pace::AWS.most_training(), Duration::from_secs(most), "what Batch allows bounds a run");
        assert_eq!(settings.resources.as_ref().and_then(|resources| resources.gpus), Some(1));
        assert!(!SCRIPT.contains("${"), "macros");
        assert!(crate::dropped::upload_to("b", KEY.to_owned()).is_sweep_file());
    }
}
