//! What a seed makes of a run.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use spotsweep_records::sweep::pages::PAGE_TRIALS;

use super::chaos::Chaos;

/// `keep_failed` and `keep_succeeded` of seeds.
const KEPT: [(&str, &str); 4] = [("20m", "0"), ("1m", "0"), ("0", "0"), ("1h", "20m")];

/// `early_terminate` of seeds.
const RULES: [&str; 4] = [
    "{type: hyperband, min_iter: 1, eta: 2}",
    "{type: asha, grace_period: 1, max_t: 100, reduction_factor: 2}",
    "{type: median, grace_period: 1, min_samples_required: 2}",
    "{type: interruption, min_iter: 1, eta: 2}",
];

/// `parameters` of seeds whose sweep has them suggested, and `repeats`. The first has as many sets as trials at most.
const SPACES: [(&str, Option<&str>); 3] = [
    ("{a: {values: [x, y, z]}, b: {values: [1, 2]}}", None),
    ("{a: {values: [x, y, z]}, b: {min: 0.0, max: 1.0}}", None),
    ("{b: {min: 0.0, max: 1.0}}", Some("{parameter: seed, values: [1, 2]}")),
];

/// The highest initialization rate, in MiB/s (fact 25).
const RATE: u32 = 300;

/// What a seed makes of a run: how large it is, and what goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Mixture {
    /// What goes wrong by chance.
    pub chaos: Chaos,
    /// Availability zones with a subnet, 1 to 3.
    pub zones: u32,
    /// Trials of the sweep.
    pub trials: u32,
    /// Epochs of each.
    pub epochs: u32,
    /// The first so many volumes come to nothing.
    pub failing_volumes: u32,
    /// The first so many containers can't be started; fewer than a trial is given up for.
    pub failing_starts: u32,
    /// The first so many instances cannot train.
    pub defective_instances: u32,
    /// After those, the first so many instances fail each training, and nothing else shows it.
    pub failing_instances: u32,
    /// The first so many snapshots fail.
    pub failing_snapshots: u32,
    /// How long EC2 does not find what was just made.
    pub visible_after_seconds: u32,
    /// MiB/s at which a volume loads its snapshot, where the deployment asks for a rate.
    pub initialization_rate: Option<u32>,
    /// Name and value of the limit that the sweep file sets, if any.
    pub budget: Option<(&'static str, f64)>,
    /// `keep_failed` and `keep_succeeded` of the sweep file.
    pub keep: (&'static str, &'static str),
    /// `early_terminate` of the sweep file.
    pub early_terminate: Option<&'static str>,
    /// `parameters` of the sweep file where they are suggested, and its `repeats`.
    pub suggested: Option<(&'static str, Option<&'static str>)>,
    /// Whether a second sweep goes on from what is kept of the first trial.
    pub continues: bool,
    /// Whether it goes on from what is collected of that trial, where nothing is kept.
    pub restores: bool,
    /// Whether each trial asks for one GPU, on instances that have two and room for two trials.
    pub gpus: bool,
    /// Trials of a page: of one trial, so that even a small sweep has several, or as deployed.
    pub page_trials: u32,
}

impl Mixture {
    /// Decided by the seed alone.
    pub fn of_seed(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
        let mut chaos = Chaos::mixed(&mut rng);
        let mut upto = |most: u32| rng.next_u32() % (most + 1);
        let mixture = Self {
            chaos: Chaos::none(),
            zones: 1 + upto(2),
            // One trial, two or three: most defects need no more.
            trials: 1 + upto(3).saturating_sub(1),
            epochs: 1 + upto(5),
            failing_volumes: upto(3) / 2,
            failing_starts: upto(4),
            defective_instances: 0,
            failing_instances: 0,
            failing_snapshots: upto(3),
            visible_after_seconds: 4 * upto(2),
            initialization_rate: None,
            // So low that some trials are still to come when it is reached.
            budget: match upto(15) {
                0 => Some(("max_hours", 0.2)),
                1 => Some(("max_usd", 0.004)),
                _most => None,
            },
            keep: KEPT[0],
            early_terminate: None,
            suggested: None,
            continues: false,
            restores: false,
            gpus: false,
            page_trials: PAGE_TRIALS,
        };
        chaos.fails = (upto(3) == 0).then(|| upto(mixture.trials - 1));
        let kept = KEPT[usize::try_from(upto(3)).unwrap_or(0)];
        chaos.hangs = if upto(3) == 0 { f64::from(1 + upto(1)) / 4.0 } else { 0.0 };
        (chaos.late_requests, chaos.forged) = (f64::from(upto(4)) / 10.0, f64::from(upto(4)) / 10.0);
        let mixture = Self { chaos, keep: kept, ..mixture }.adaptive(&mut upto).on_defective_instances(&mut upto);
        let continues = upto(1) == 0;
        let page_trials = if upto(2) == 0 { 1 } else { PAGE_TRIALS };
        let vanishing = if upto(5) == 0 { f64::from(1 + upto(1)) / 4.0 } else { 0.0 };
        let mixture = Self { continues, page_trials, ..mixture }.on_failing_instances(&mut upto);
        let late_links = Duration::from_secs(120 * u64::from(upto(3)));
        let gpus = upto(3) == 0;
        let choose = |most: usize| usize::try_from(upto(u32::try_from(most).unwrap_or(1) - 1)).unwrap_or(0);
        let habits = mixture.chaos.habits.with_processes(choose);
        let restores = upto(3) == 0;
        let mut some = |among: u32, share: f64| if upto(among - 1) == 0 { share } else { 0.0 };
        let (terminated, unheard, mute) = (some(3, 0.3), some(3, 0.1), some(4, 0.02));
        let chaos = Chaos { vanishing, late_links, habits, terminated, unheard, mute, ..mixture.chaos };
        let mixture = Self { gpus, restores, chaos, ..mixture }.at_rate(&mut upto);
        let unsent = if upto(3) == 0 { 0.2 } else { 0.0 };
        Self { chaos: Chaos { unsent, ..mixture.chaos }, ..mixture }
    }

    /// Some deployments ask for an initialization rate, which the quota of half of them refuses.
    fn at_rate(self, upto: &mut impl FnMut(u32) -> u32) -> Self {
        let drawn = upto(3);
        let chaos = Chaos { refuses_rate: drawn == 0, ..self.chaos };
        Self { initialization_rate: (drawn < 2).then_some(RATE), chaos, ..self }
    }

    /// In some seeds parameters are suggested, and in some trials are stopped early.
    fn adaptive(self, upto: &mut impl FnMut(u32) -> u32) -> Self {
        let mixture = match upto(6) {
            0 => {
                let suggested = Some(SPACES[usize::try_from(upto(2)).unwrap_or(0)]);
                Self { trials: 2 + 2 * upto(2), epochs: 1 + upto(3), suggested, ..self }
            }
            _most => self,
        };
        match upto(4) {
            // Of fewer trials than three, or shorter ones, hardly any is stopped.
            0 => Self {
                trials: mixture.suggested.map_or(3 + upto(3), |_| mixture.trials),
                epochs: 3 + upto(3),
                early_terminate: Some(RULES[usize::try_from(upto(3)).unwrap_or(0)]),
                ..mixture
            },
            _most => mixture,
        }
    }

    fn on_defective_instances(self, upto: &mut impl FnMut(u32) -> u32) -> Self {
        match upto(3) {
            // With them no more false starts in a row than a trial survives.
            0 => Self { defective_instances: 1 + upto(2), failing_starts: self.failing_starts.min(1), ..self },
            _most => self,
        }
    }

    fn on_failing_instances(self, upto: &mut impl FnMut(u32) -> u32) -> Self {
        match upto(5) {
            // Trials enough that some train on other instances.
            0 => Self {
                failing_instances: 1,
                trials: self.trials.max(4),
                defective_instances: 0,
                failing_starts: self.failing_starts.min(1),
                ..self
            },
            _most => self,
        }
    }
}
