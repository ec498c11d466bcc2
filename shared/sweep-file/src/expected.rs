//! What Spot interruptions make of a sweep's hours.
//!
//! Interruptions are taken to fall at random, at the rate of a record. A trial with checkpoints loses a part of its time
//! at each of them. A trial without has to come through in one piece, and begins again until it does or has no attempt
//! left.

use serde::{Deserialize, Serialize};

use crate::settings::ATTEMPTS;
use crate::{Settings, SweepFile, Warning, Workspace};

/// Interruptions of a trial in an hour of training, in the hard record that `docs/replay.md` replays: 10 372 in 10 000
/// hours (us-east-1, checkpoints of 1 GiB, no initialization rate, as is the default).
pub const INTERRUPTIONS_PER_HOUR: f64 = 10_372.0 / 10_000.0;
/// Seconds from an interruption until the trial trains again, in the same record (median).
const RESUME_SECONDS: f64 = 223.0;
/// Seconds of training that an interruption costs a training without a handler of the signal, whose checkpoints are 15
/// minutes apart (`docs/replay.md`).
const LOST_SECONDS: f64 = 461.0;
/// Hours of a trial for which costs are given where no hours are known.
const USUAL_HOURS: [f64; 3] = [1.0, 4.0, 10.0];
/// From so many billed hours for each useful one, a training has to save checkpoints.
const MOST_BILLED_HOURS: f64 = 2.0;

/// What a sweep is expected to be billed on Spot, if each of its trials trains for so long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Hours of training of one trial.
    pub trial_hours: f64,
    /// Hours of training of all trials.
    pub useful_hours: f64,
    /// Hours that all trials are billed, if they go on from checkpoints that are 15 minutes apart. Absent where the trials
    /// have no workspace to keep them in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed_hours_with_checkpoints: Option<f64>,
    /// Hours that all trials are billed, if they save no checkpoints.
    pub billed_hours_without_checkpoints: f64,
    /// The share of trials without checkpoints that come to their end within their attempts, 0 to 1.
    pub finished_without_checkpoints: f64,
}

impl Expected {
    /// For trials that train for so many hours each, more than 0.
    pub fn of(trials: u64, hours: f64, attempts: Option<u8>, has_workspace: bool) -> Self {
        let trial = OneTrial { hours, attempts: attempts.unwrap_or(ATTEMPTS) };
        let count = trials as f64;
        // Trials of seconds are no trials of nothing.
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

    /// For trials of the most that one attempt may run, or of usual lengths where there is no limit.
    pub fn of_limit(trials: u64, limit_seconds: Option<u32>, attempts: Option<u8>, has_workspace: bool) -> Vec<Self> {
        let limit = limit_seconds.map(|seconds| vec![f64::from(seconds) / 3600.0]);
        let hours = limit.unwrap_or_else(|| USUAL_HOURS.to_vec());
        hours.into_iter().map(|hours| Self::of(trials, hours, attempts, has_workspace)).collect()
    }
}

/// Hours billed for an hour of training that counts, if an interruption costs so many seconds of training.
pub fn billed_per_hour_with_checkpoints(lost_seconds: f64) -> f64 {
    1.0 + INTERRUPTIONS_PER_HOUR * (lost_seconds + RESUME_SECONDS) / 3600.0
}

/// Hours billed for an hour of training that counts, in trials of so many hours that save no checkpoints.
pub fn billed_per_hour_without_checkpoints(hours: f64) -> f64 {
    let whole = unbroken(hours);
    (1.0 - whole) / whole * (1.0 / INTERRUPTIONS_PER_HOUR + RESUME_SECONDS / 3600.0) / hours
}

/// Whether most of what is billed is lost, in trials of so many hours that save no checkpoints.
pub fn needs_checkpoints(hours: f64) -> bool {
    billed_per_hour_without_checkpoints(hours) >= MOST_BILLED_HOURS
}

/// The chance of so many hours without an interruption.
fn unbroken(hours: f64) -> f64 {
    (-INTERRUPTIONS_PER_HOUR * hours).exp()
}

/// A trial without checkpoints.
struct OneTrial {
    hours: f64,
    attempts: u8,
}

impl OneTrial {
    /// The chance that one of the attempts comes through.
    fn finished(&self) -> f64 {
        1.0 - (1.0 - unbroken(self.hours)).powi(self.attempts.into())
    }

    /// The expected number of attempts times the expected length of one; each but the first resumes first.
    fn billed_hours(&self) -> f64 {
        let whole = unbroken(self.hours);
        // Of so small a chance nothing is left in a 64-bit float, and all attempts are used.
        let finished = self.finished();
        let attempts = if finished > 0.0 { finished / whole } else { f64::from(self.attempts) };
        attempts * (1.0 - whole) / INTERRUPTIONS_PER_HOUR + (attempts - 1.0) * RESUME_SECONDS / 3600.0
    }
}

impl Settings {
    /// Whether a trial has a volume for checkpoints, as far as the file says: a deployment may have none.
    pub fn has_workspace(&self) -> bool {
        self.workspace != Some(Workspace::Off)
    }
}

impl SweepFile {
    /// What to know of trials that may run for long, and have no workspace for checkpoints. `None` for those that a
    /// timeout keeps short, or whose length is not known.
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

    /// One trial without checkpoints, interrupted at random: what it is billed, and whether it ends.
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

    /// However few trials end: attempts make the bill larger and the ends more, in the same proportion.
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
