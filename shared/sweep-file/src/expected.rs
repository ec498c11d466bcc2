//! Estimates the hours that Spot interruptions add to a sweep.
//!
//! The estimate assumes interruptions at random times, at the rate of a record. A trial with checkpoints loses some
//! training time at each of them. A trial without checkpoints must train without an interruption, and starts from the
//! beginning until it has done so or has no attempt left.

use serde::{Deserialize, Serialize};

use crate::settings::ATTEMPTS;
use crate::{Settings, SweepFile, Warning, Workspace};

/// Interruptions of a trial per hour of training, in the hard record that `docs/replay.md` replays: 10 372 in 10 000
/// hours (us-east-1, checkpoints of 1 GiB, no initialization rate, as is the default).
pub const INTERRUPTIONS_PER_HOUR: f64 = 10_372.0 / 10_000.0;
/// Seconds from an interruption until the trial trains again, in the same record (median).
const RESUME_SECONDS: f64 = 223.0;
/// Seconds of training that an interruption costs a training that does not handle the signal and saves a checkpoint
/// every 15 minutes (`docs/replay.md`).
const LOST_SECONDS: f64 = 461.0;
/// Hours of a trial for which costs are given if its length is not known.
const USUAL_HOURS: [f64; 3] = [1.0, 4.0, 10.0];
/// Billed hours per useful hour from which a training has to save checkpoints.
const MOST_BILLED_HOURS: f64 = 2.0;

/// The expected bill of a sweep on Spot, if each of its trials trains for `trial_hours`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Hours of training of one trial.
    pub trial_hours: f64,
    /// Hours of training of all trials.
    pub useful_hours: f64,
    /// Hours billed for all trials, if they save a checkpoint every 15 minutes. Absent if the trials have no workspace
    /// to keep checkpoints in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed_hours_with_checkpoints: Option<f64>,
    /// Hours billed for all trials, if they save no checkpoints.
    pub billed_hours_without_checkpoints: f64,
    /// The share of trials without checkpoints that finish within their attempts, 0 to 1.
    pub finished_without_checkpoints: f64,
}

impl Expected {
    /// Estimates trials that train for `hours` hours each, which must be more than 0.
    pub fn of(trials: u64, hours: f64, attempts: Option<u8>, has_workspace: bool) -> Self {
        let trial = OneTrial { hours, attempts: attempts.unwrap_or(ATTEMPTS) };
        let count = trials as f64;
        // Rounding must not turn trials of a few seconds into zero hours.
        let digits = if hours * count < 1.0 { 1e6 } else { 100.0 };
        let rounded = |value: f64| (value * digits).round() / digits;
        Self {
            trial_hours: hours,
            useful_hours: rounded(count * hours),
            billed_hours_with_checkpoints: has_workspace
                .then(|| rounded(count * hours * billed_per_hour_with_checkpoints(LOST_SECONDS))),
            billed_hours_without_checkpoints: rounded(count * trial.billed_hours()),
            finished_without_checkpoints: (trial.finished() * 10_000.0).round() / 10_000.0,
        }
    }

    /// Estimates trials that train for as long as one attempt may run, or for usual lengths if there is no limit.
    pub fn of_limit(trials: u64, limit_seconds: Option<u32>, attempts: Option<u8>, has_workspace: bool) -> Vec<Self> {
        let limit = limit_seconds.map(|seconds| vec![f64::from(seconds) / 3600.0]);
        let hours = limit.unwrap_or_else(|| USUAL_HOURS.to_vec());
        hours.into_iter().map(|hours| Self::of(trials, hours, attempts, has_workspace)).collect()
    }
}

/// Returns the hours billed per useful hour of training, if an interruption costs `lost_seconds` of training.
pub fn billed_per_hour_with_checkpoints(lost_seconds: f64) -> f64 {
    1.0 + INTERRUPTIONS_PER_HOUR * (lost_seconds + RESUME_SECONDS) / 3600.0
}

/// Returns the hours billed per useful hour of training, for trials of `hours` hours that save no checkpoints.
pub fn billed_per_hour_without_checkpoints(hours: f64) -> f64 {
    let whole = unbroken(hours);
    (1.0 - whole) / whole * (1.0 / INTERRUPTIONS_PER_HOUR + RESUME_SECONDS / 3600.0) / hours
}

/// Whether at least half of the bill is lost, for trials of `hours` hours that save no checkpoints.
pub fn needs_checkpoints(hours: f64) -> bool {
    billed_per_hour_without_checkpoints(hours) >= MOST_BILLED_HOURS
}

/// Returns the probability of `hours` hours without an interruption.
fn unbroken(hours: f64) -> f64 {
    (-INTERRUPTIONS_PER_HOUR * hours).exp()
}

struct OneTrial {
    hours: f64,
    attempts: u8,
}

impl OneTrial {
    /// Returns the probability that one of the attempts finishes.
    fn finished(&self) -> f64 {
        1.0 - (1.0 - unbroken(self.hours)).powi(self.attempts.into())
    }

    /// Returns the expected number of attempts times their expected length. Each attempt but the first also takes time
    /// to resume.
    fn billed_hours(&self) -> f64 {
        let whole = unbroken(self.hours);
        // A 64-bit float cannot hold so small a probability; then all attempts are used.
        let finished = self.finished();
        let attempts = if finished > 0.0 { finished / whole } else { f64::from(self.attempts) };
        attempts * (1.0 - whole) / INTERRUPTIONS_PER_HOUR + (attempts - 1.0) * RESUME_SECONDS / 3600.0
    }
}

impl Settings {
    /// Whether a trial has a volume for checkpoints by the sweep file. The deployment may still have none.
    pub fn has_workspace(&self) -> bool {
        self.workspace != Some(Workspace::Off)
    }
}

impl SweepFile {
    /// Returns a warning about trials that may run for long without a workspace for checkpoints. `None` if a timeout
    /// keeps them short, or if their length is not known.
    pub fn long_without_checkpoints(&self) -> Option<Warning> {
        let hours = f64::from(self.settings.timeout_seconds?) / 3600.0;
        let expected = Expected::of(self.trial_count(), hours, self.settings.attempts, false);
        needs_checkpoints(hours).then(|| {
            let message = format!(
                "without a workspace an interrupted trial starts from its beginning: with trials of {hours:.1} h, {:.0} hours \
                 are expected to be billed for {:.0} useful ones, and {:.1} % of the trials end",
                expected.billed_hours_without_checkpoints,
                expected.useful_hours,
                expected.finished_without_checkpoints * 100.0
            );
            let help = "delete `workspace: off` and save checkpoints, shorten `timeout`, or use a queue with on-demand instances";
            Warning(self.problem_at("workspace", message, help))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    use super::*;

    /// Draws one trial without checkpoints, interrupted at random. Returns its billed hours, and whether it finishes.
    fn drawn(random: &mut ChaCha8Rng, hours: f64, attempts: u8) -> (f64, bool) {
        let mut billed = 0.0;
        for attempt in 0..attempts {
            billed += if attempt > 0 { RESUME_SECONDS / 3600.0 } else { 0.0 };
            let share = (random.next_u32() as f64 + 1.0) / 4_294_967_297.0;
            let until = -share.ln() / INTERRUPTIONS_PER_HOUR;
            if until >= hours {
                return (billed + hours, true);
            }
            billed += until;
        }
        (billed, false)
    }

    #[test]
    fn expected_hours_are_the_mean_of_trials_that_are_drawn() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let trials = 40_000;
        for (hours, attempts) in [(0.5, 50), (1.0, 3), (2.0, 50), (4.0, 20)] {
            let (mut billed, mut finished) = (0.0, 0);
            for _ in 0..trials {
                let (hours, is_finished) = drawn(&mut random, hours, attempts);
                billed += hours;
                finished += usize::from(is_finished);
            }
            let expected = Expected::of(trials, hours, Some(attempts), true);
            let apart = |computed: f64, drawn: f64| (computed / drawn - 1.0).abs();
            assert!(
                apart(expected.billed_hours_without_checkpoints, billed) < 0.02,
                "{hours} h: {billed} {expected:?}"
            );
            let share = finished as f64 / trials as f64;
            assert!(apart(expected.finished_without_checkpoints, share) < 0.02, "{hours} h: {share} {expected:?}");
        }
    }

    /// The ratio does not depend on how few trials finish: attempts raise the bill and the finished trials in
    /// proportion.
    #[test]
    fn a_useful_hour_costs_the_same_with_any_number_of_attempts() {
        let per_hour = billed_per_hour_without_checkpoints(2.0);
        let one = OneTrial { hours: 2.0, attempts: 100 };
        assert!((one.billed_hours() / (one.finished() * 2.0) / per_hour - 1.0).abs() < 0.03);
        let hopeless = Expected::of(1, 10_000.0, None, false);
        assert_eq!((hopeless.finished_without_checkpoints, hopeless.billed_hours_with_checkpoints), (0.0, None));
        assert!((50.0..52.0).contains(&hopeless.billed_hours_without_checkpoints), "{hopeless:?}");
    }

    #[test]
    fn long_trials_without_a_workspace_are_warned_of() {
        let warned = |settings: &str| {
            let text = format!("spotsweep: {{{settings}}}\ntrials: [{{lr: 1}}]\n");
            let file = crate::parse("f.yaml", "", text.as_bytes()).unwrap();
            file.warnings.first().map(|warning| (warning.0.line, warning.0.message.clone()))
        };
        let (line, message) = warned("timeout: 10h, workspace: off").unwrap();
        assert!(line == 1 && message.contains("starts from its beginning"), "{message}");
        for fine in ["timeout: 10h", "timeout: 1h, workspace: off", "workspace: off"] {
            assert_eq!(warned(fine), None, "{fine}");
        }
    }
}
