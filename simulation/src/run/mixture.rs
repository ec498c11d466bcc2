//! The size and the faults of a run, as its seed decides them.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use spotsweep_records::sweep::pages::PAGE_TRIALS;

use super::chaos::Chaos;
use super::{DataSets, FOLDER, STALLED, TOPIC};

/// Values of `keep_failed` and `keep_succeeded`.
const KEPT: [(&str, &str); 4] = [("20m", "0"), ("1m", "0"), ("0", "0"), ("1h", "20m")];

/// Values of `early_terminate`.
const RULES: [&str; 4] = [
    "{type: hyperband, min_iter: 1, eta: 2}",
    "{type: asha, grace_period: 1, max_t: 100, reduction_factor: 2}",
    "{type: median, grace_period: 1, min_samples_required: 2}",
    "{type: interruption, min_iter: 1, eta: 2}",
];

/// Values of `parameters` for sweeps with suggestions, and of `repeats`. The first space has as many parameter
/// sets as the largest sweep has trials.
const SPACES: [(&str, Option<&str>); 3] = [
    ("{a: {values: [x, y, z]}, b: {values: [1, 2]}}", None),
    ("{a: {values: [x, y, z]}, b: {min: 0.0, max: 1.0}}", None),
    ("{b: {min: 0.0, max: 1.0}}", Some("{parameter: seed, values: [1, 2]}")),
];

/// The highest initialization rate, in MiB/s (fact 25).
const RATE: u32 = 300;

/// The size and the faults of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Mixture {
    /// The random faults.
    pub chaos: Chaos,
    /// Availability zones with a subnet, from 1 to 3.
    pub zones: u32,
    /// Number of trials of the sweep.
    pub trials: u32,
    /// Epochs of each trial.
    pub epochs: u32,
    /// How many volumes, from the first, fail.
    pub failing_volumes: u32,
    /// How many containers, from the first, cannot start; fewer than the number after which a trial is given up.
    pub failing_starts: u32,
    /// How many instances, from the first, cannot train.
    pub defective_instances: u32,
    /// How many of the instances after those fail each training without any other sign of a defect.
    pub failing_instances: u32,
    /// How many snapshots, from the first, fail.
    pub failing_snapshots: u32,
    /// Seconds for which EC2 does not find a new resource.
    pub visible_after_seconds: u32,
    /// The initialization rate of a volume in MiB/s, if the deployment asks for one.
    pub initialization_rate: Option<u32>,
    /// Name and value of the limit in the sweep file, if any.
    pub budget: Option<(&'static str, f64)>,
    /// `keep_failed` and `keep_succeeded` of the sweep file.
    pub keep: (&'static str, &'static str),
    /// `early_terminate` of the sweep file.
    pub early_terminate: Option<&'static str>,
    /// `parameters` of the sweep file, if the sweep has suggestions, and its `repeats`.
    pub suggested: Option<(&'static str, Option<&'static str>)>,
    /// Whether a second sweep goes on from the kept workspace of the first trial.
    pub continues: bool,
    /// Whether a second sweep starts from the uploaded checkpoint of that trial, if nothing is kept.
    pub restores: bool,
    /// Whether each trial asks for one GPU, on instances with two GPUs and room for two trials.
    pub gpus: bool,
    /// Whether the sweep file names a container image, a packed folder of code, and secrets.
    pub image: bool,
    /// The data sets of the sweeps, if they have any.
    pub data: Option<DataSets>,
    /// Trials on a page: one, so that even a small sweep has several pages, or as many as in a deployment.
    pub page_trials: u32,
}

impl Mixture {
    /// The mixture that the seed alone decides.
    pub fn of_seed(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
        let mut chaos = Chaos::mixed(&mut rng);
        let mut upto = |most: u32| rng.next_u32() % (most + 1);
        let mixture = Self {
            chaos: Chaos::none(),
            zones: 1 + upto(2),
            // One to three trials are enough to find most bugs.
            trials: 1 + upto(3).saturating_sub(1),
            epochs: 1 + upto(5),
            failing_volumes: upto(3) / 2,
            failing_starts: upto(4),
            defective_instances: 0,
            failing_instances: 0,
            failing_snapshots: upto(3),
            visible_after_seconds: 4 * upto(2),
            initialization_rate: None,
            // The limit is so low that the sweep reaches it before some trials start.
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
            image: false,
            data: None,
            page_trials: PAGE_TRIALS,
        };
        chaos.fails = (upto(3) == 0).then(|| upto(mixture.trials - 1));
        chaos.fails_in_setup = chaos.fails.is_some_and(|index| index % 3 == 1);
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
        let habits = mixture.chaos.habits.with_processes(|among| choose(&mut upto, among));
        let restores = upto(3) == 0;
        let mut some = |among: u32, share: f64| if upto(among - 1) == 0 { share } else { 0.0 };
        let (terminated, unheard, mute) = (some(3, 0.3), some(3, 0.1), some(4, 0.02));
        let chaos = Chaos { vanishing, late_links, habits, terminated, unheard, mute, ..mixture.chaos };
        let mixture = Self { gpus, restores, chaos, ..mixture }.at_rate(&mut upto);
        let unsent = if upto(3) == 0 { 0.2 } else { 0.0 };
        let image = upto(7) == 0;
        let mixture = Self { image, chaos: Chaos { unsent, ..mixture.chaos }, ..mixture }.with_data(&mut upto);
        let habits = mixture.chaos.habits.with_replacing(|among| choose(&mut upto, among));
        Self { chaos: Chaos { habits, ..mixture.chaos }, ..mixture }
    }

    /// The sweep file.
    pub(super) fn file(&self) -> String {
        let trials = match self.suggested {
            Some((parameters, _)) => format!("method: bayes\nrun_cap: {}\nparameters: {parameters}\n", self.trials),
            None => {
                let trials: String = (0..self.trials).map(|trial| format!("- {{a: {trial}}}\n")).collect();
                format!("trials:\n{trials}")
            }
        };
        let (failed, succeeded) = self.keep;
        let mut settings = vec![format!("workspace: {{keep_failed: {failed}, keep_succeeded: {succeeded}}}")];
        settings.extend(self.budget.map(|(limit, value)| format!("budget: {{{limit}: {value}}}")));
        settings.extend((self.chaos.hangs > 0.0).then(|| format!("stalled: {STALLED}")));
        if settings.len() > 1 {
            settings.push(format!("notifications: {{topic: \"{TOPIC}\"}}"));
        }
        settings.extend(self.gpus.then(|| "resources: {gpus: 1}".to_owned()));
        let secrets = "{KEY: KEY, MANAGED: /aws/reference/secretsmanager/team/key}";
        let image = || format!("image: \"me/train:2\", code: {{sha256: {FOLDER}}}, secrets: {secrets}");
        settings.extend(self.image.then(image));
        let repeats = self.suggested.and_then(|(_, repeats)| repeats);
        settings.extend(repeats.map(|repeats| format!("repeats: {repeats}")));
        settings.extend(self.data.map(DataSets::settings));
        let settings = settings.join(", ");
        let has_metric = self.early_terminate.is_some() || self.suggested.is_some();
        let metric = if has_metric { "metric: {name: accuracy, goal: maximize}\n" } else { "" };
        let rule = self.early_terminate.map(|rule| format!("early_terminate: {rule}\n")).unwrap_or_default();
        format!("{trials}spotsweep: {{{settings}}}\n{metric}{rule}")
    }

    /// The sweeps of some seeds have data sets.
    fn with_data(self, upto: &mut impl FnMut(u32) -> u32) -> Self {
        match DataSets::mixed(upto) {
            Some((data, faults)) => Self { data: Some(data), chaos: Chaos { data: faults, ..self.chaos }, ..self },
            None => self,
        }
    }

    /// Some deployments ask for an initialization rate. The quota refuses it in half of them.
    fn at_rate(self, upto: &mut impl FnMut(u32) -> u32) -> Self {
        let drawn = upto(3);
        let chaos = Chaos { refuses_rate: drawn == 0, ..self.chaos };
        Self { initialization_rate: (drawn < 2).then_some(RATE), chaos, ..self }
    }

    /// Some seeds have suggestions, and some have early stopping.
    fn adaptive(self, upto: &mut impl FnMut(u32) -> u32) -> Self {
        let mixture = match upto(6) {
            0 => {
                let suggested = Some(SPACES[usize::try_from(upto(2)).unwrap_or(0)]);
                Self { trials: 2 + 2 * upto(2), epochs: 1 + upto(3), suggested, ..self }
            }
            _most => self,
        };
        match upto(4) {
            // With fewer or shorter trials, early stopping hardly occurs.
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
            // Both together must not give a trial more false starts in a row than it survives.
            0 => Self { defective_instances: 1 + upto(2), failing_starts: self.failing_starts.min(1), ..self },
            _most => self,
        }
    }

    fn on_failing_instances(self, upto: &mut impl FnMut(u32) -> u32) -> Self {
        match upto(5) {
            // There are enough trials that some train on other instances.
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

/// A number that is less than `among`.
fn choose(upto: &mut impl FnMut(u32) -> u32, among: usize) -> usize {
    usize::try_from(upto(u32::try_from(among).unwrap_or(1) - 1)).unwrap_or(0)
}
