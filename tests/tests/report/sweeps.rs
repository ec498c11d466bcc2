//! Sweeps that never ran: the records that the control plane would have stored.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::{SignedDuration, Timestamp};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde_json::{Map, Value, json};
use spotsweep_protocol::ids::JobId;
use spotsweep_protocol::metric::{Metric, Source};
use spotsweep_records::sweep::upload::Upload;
use spotsweep_records::sweep::{Over, Plan, Ranking, Stage, Sweep};
use spotsweep_records::trial::{Attempt, HOST_GONE, INTERRUPTED_EXIT_CODE, JobStatus, Trial};
use spotsweep_report::cost::Cost;
use spotsweep_report::diagnosis::Diagnosis;
use spotsweep_report::page::curves::{self, Curve};
use spotsweep_report::page::{Report, Sources, render};

const START: i64 = 1_795_212_000;
const ZONES: [&str; 3] = ["us-east-1a", "us-east-1c", "us-east-1d"];
const HOURLY_USD: (f64, f64) = (0.918, 3.06);

/// The properties of a synthetic sweep.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) trials: u32,
    pub(crate) parameters: usize,
    pub(crate) points: u32,
    /// Index of the first trial that has not ended, and all after it.
    pub(crate) running_from: u32,
    pub(crate) is_priced: bool,
    /// Text that stands for names and values that people choose.
    pub(crate) text: &'static str,
}

/// All records of a sweep.
pub(crate) struct Synthetic {
    sweep: Sweep,
    plan: Plan,
    trials: Vec<Trial>,
    parameters: String,
    file: String,
    curves: BTreeMap<u32, BTreeMap<String, Curve>>,
    costs: BTreeMap<u32, Cost>,
    diagnoses: BTreeMap<u32, Diagnosis>,
}

struct Rng(ChaCha8Rng);

impl Rng {
    /// A random number from 0 to 1.
    fn share(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / f64::from(u32::MAX)
    }

    fn below(&mut self, end: u32) -> u32 {
        self.0.next_u32() % end
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(START + second).unwrap()
}

impl Shape {
    /// Makes a sweep. The same shape gives the same sweep.
    pub(crate) fn roll(&self) -> Synthetic {
        let mut rng = Rng(ChaCha8Rng::seed_from_u64(7));
        let upload = Upload {
            bucket: "sweeps-bucket".into(),
            key: format!("sweeps/{}.yaml", self.name),
            version_id: None,
            fingerprint: "1".into(),
            size: None,
            uploaded_at: at(0),
        };
        let mut sweep = Sweep::new(upload);
        sweep.enter(if self.running_from < self.trials { Stage::Running } else { Stage::Settled });
        let plan = json!({ "trials": self.trials, "queue": "q", "definition": "train:3", "attempts": 50, "parts": [] });
        let metric = Some(Ranking { name: format!("val_loss{}", self.text), maximize: false, over: Over::Last });
        let mut rolled = Synthetic {
            plan: Plan { metric, ..serde_json::from_value(plan).unwrap() },
            trials: Vec::new(),
            parameters: String::new(),
            file: format!(
                "# {}\nmethod: random\nparameters:\n  lr: {{distribution: log_uniform_values, min: 0.0001, max: 0.1}}\n",
                self.text
            ),
            curves: BTreeMap::new(),
            costs: BTreeMap::new(),
            diagnoses: BTreeMap::new(),
            sweep,
        };
        for index in 0..self.trials {
            self.roll_trial(index, &mut rolled, &mut rng);
        }
        rolled
    }

    fn roll_trial(&self, index: u32, into: &mut Synthetic, rng: &mut Rng) {
        let parameters = self.roll_parameters(rng);
        let base = loss_of(&parameters, rng);
        writeln!(into.parameters, "{}", json!({ "index": index, "parameters": parameters })).unwrap();
        let mut trial = Trial::new(into.sweep.id.clone(), index, JobId::from(format!("job:{index}")));
        let fails = index % 17 == 5;
        let is_open = index >= self.running_from;
        roll_attempts(&mut trial, fails, is_open, rng);
        if !fails {
            let record = self.roll_record(base, rng);
            let of_trial = curves::read(record.as_bytes(), &[format!("val_loss{}", self.text), "val_accuracy".into()]);
            for (name, curve) in &of_trial {
                if let Some((step, last)) = curve.points(curves::MAX_POINTS).last().copied() {
                    trial.metrics.insert(name.clone(), Metric::of(last, Some(step), Source::Stated));
                }
            }
            into.curves.insert(index, of_trial);
        } else if !is_open {
            let log_lines = vec![
                format!("epoch 1 {}", self.text),
                "Traceback (most recent call last):".into(),
                format!("RuntimeError: CUDA out of memory {}", self.text),
            ];
            let advice = Some("lower the batch size or ask for a larger GPU".into());
            into.diagnoses.insert(
                index,
                Diagnosis { cause: Some(format!("out of GPU memory {}", self.text)), advice, log_lines },
            );
        }
        if self.is_priced && !is_open {
            let hours = trial.run_seconds() / 3_600.0;
            let cost = Cost {
                instance_usd: hours * HOURLY_USD.0,
                on_demand_usd: hours * HOURLY_USD.1,
                storage_usd: hours * 0.03,
                ..Cost::default()
            };
            into.costs.insert(index, cost);
        }
        into.trials.push(trial);
    }

    fn roll_parameters(&self, rng: &mut Rng) -> Map<String, Value> {
        let mut parameters = Map::new();
        parameters.insert("lr".into(), json!(10_f64.powf(-4.0 + 3.0 * rng.share())));
        let optimizers = ["adam", "sgd", if self.text.is_empty() { "lion" } else { self.text }];
        parameters.insert(format!("optimizer{}", self.text), json!(optimizers[rng.below(3) as usize]));
        parameters.insert("hidden_units".into(), json!(32 << rng.below(4)));
        parameters.insert("use_augmentation".into(), json!(rng.below(2) == 1));
        parameters.insert(
            "model".into(),
            json!({ "depth": 2 + rng.below(6), "dropout": (rng.share() * 50.0).round() / 100.0 }),
        );
        for at in 6..self.parameters {
            parameters.insert(format!("regularisation_{at}"), json!((rng.share() * 1_000.0).round() / 1_000.0));
        }
        parameters.insert("epochs".into(), json!(100));
        parameters
    }

    /// Makes a trial's `metrics.jsonl`.
    fn roll_record(&self, base: f64, rng: &mut Rng) -> String {
        let mut record = String::new();
        for step in 1..=self.points {
            let progress = f64::from(step) / f64::from(self.points);
            let loss = base + 2.0 * (-4.0 * progress).exp() + 0.05 * rng.share();
            let metrics = json!({ format!("val_loss{}", self.text): loss, "val_accuracy": 1.0 / (1.0 + loss) });
            writeln!(record, "{}", json!({ "time": 0.0, "step": step, "metrics": metrics })).unwrap();
        }
        record
    }
}

/// The loss of these parameters: the best learning rate is in the middle, deeper is better, one optimizer is worse, and
/// the rest is noise.
fn loss_of(parameters: &Map<String, Value>, rng: &mut Rng) -> f64 {
    let lr = parameters["lr"].as_f64().unwrap().log10() + 2.5;
    let depth = parameters["model"]["depth"].as_f64().unwrap();
    let is_sgd = parameters.values().any(|value| value == "sgd");
    0.2 + 0.5 * lr * lr - 0.04 * depth + if is_sgd { 0.2 } else { 0.0 } + 0.15 * rng.share()
}

fn roll_attempts(trial: &mut Trial, fails: bool, is_open: bool, rng: &mut Rng) {
    let mut clock = 60 + i64::from(rng.below(3_000));
    let mut zone = rng.below(3) as usize;
    let interruptions = if rng.below(4) == 0 { 1 + rng.below(4) } else { 0 };
    for number in 1..=interruptions + 1 {
        let seconds = 600 + i64::from(rng.below(4_000));
        let is_last = number == interruptions + 1;
        let stopped_at = (!is_last || !is_open).then(|| at(clock + seconds));
        let (exit_code, reason) = match (is_last, number % 2) {
            (true, _) if is_open => (None, None),
            (true, _) if fails => (Some(1), Some("Essential container in task exited".into())),
            (true, _) => (Some(0), None),
            (false, 0) => (Some(INTERRUPTED_EXIT_CODE), Some("Essential container in task exited".into())),
            (false, _) => (None, Some(format!("{HOST_GONE} (instance i-0{number}) terminated.").into())),
        };
        let (started_at, zone_name) = (Some(at(clock)), Some(ZONES[zone].to_owned()));
        let instance = Some(format!("i-0{:07x}", rng.below(1 << 28)));
        trial.attempts.insert(
            number,
            Attempt { started_at, stopped_at, exit_code, reason, zone: zone_name, instance, ..Attempt::default() },
        );
        clock += seconds + 90 + i64::from(rng.below(600));
        zone = (zone + rng.below(3) as usize) % ZONES.len();
    }
    trial.ended = if is_open { interruptions } else { interruptions + 1 };
    trial.status = match (is_open, fails) {
        (true, _) => JobStatus::Running,
        (false, true) => JobStatus::Failed,
        (false, false) => JobStatus::Succeeded,
    };
}

impl Synthetic {
    /// Removes all trials' records, as if the file had just been dropped.
    pub(crate) fn before_its_first_trial(mut self) -> Self {
        self.trials.clear();
        self.curves.clear();
        self.costs.clear();
        self.diagnoses.clear();
        self
    }

    /// Removes the metric's name, as if the file named none.
    pub(crate) fn without_metric(mut self) -> Self {
        self.plan.metric = None;
        self
    }

    /// Changes the parameters to numbers of all sizes. One has a long name, and not all trials have another one.
    pub(crate) fn with_odd_parameters(mut self) -> Self {
        self.parameters.clear();
        for index in self.trials.iter().map(|trial| trial.index) {
            let mut parameters = json!({
                "huge": if index % 2 == 0 { 1e300 } else { -1e300 },
                "near": 1e6 + f64::from(index) * 1e-4,
                "wide": 10_f64.powf(f64::from(index) * 25.0 - 300.0),
                ("name".repeat(60)): index,
            });
            if index % 3 == 0 {
                parameters["sometimes"] = json!(index);
            }
            writeln!(self.parameters, "{}", json!({ "index": index, "parameters": parameters })).unwrap();
        }
        self
    }

    /// Changes the trials as if a third of the parameter sets had been trained three times each.
    pub(crate) fn repeated(mut self, parameter: &str) -> Self {
        let sets = self.trials.len() / 3;
        let repeats = json!({ "parameter": parameter, "values": [1, 2, 3], "sets": sets });
        self.plan.repeats = serde_json::from_value(repeats).unwrap();
        let lines: Vec<Value> = self.parameters.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        self.parameters.clear();
        for index in 0..3 * sets {
            let mut parameters = lines[index % sets]["parameters"].clone();
            parameters[parameter] = json!(1 + index / sets);
            writeln!(self.parameters, "{}", json!({ "index": index, "parameters": parameters })).unwrap();
        }
        self
    }

    /// Changes the sweep into a Bayesian search with early stopping: the first trials cover the space, and a model
    /// suggests the others.
    pub(crate) fn searched(mut self) -> Self {
        self.plan.suggests = true;
        let rule = json!({ "type": "hyperband", "bands": [3, 9, 27], "eta": 3.0, "strict": true });
        self.plan.early_stopping = serde_json::from_value(json!({ "rule": rule, "unit": "step" })).unwrap();
        let name = &self.plan.metric.as_ref().unwrap().name;
        let sets = self.plan.repeats.as_ref().map_or(u64::MAX, |repeats| repeats.sets);
        for trial in &mut self.trials {
            let off = f64::from(trial.index % 5) * 0.1 - 0.2;
            let mean = trial.metrics.get(name).map_or(1.0, |metric| metric.last + off);
            let model = json!({ "Model": { "mean": mean, "deviation": 0.05 + 0.01 * f64::from(trial.index % 7) } });
            let basis = if trial.index < 4 { json!("Initial") } else { model };
            let basis = if u64::from(trial.index) < sets { basis } else { Value::Null };
            trial.suggested = serde_json::from_value(json!({ "parameters": "{}", "basis": basis })).unwrap();
        }
        self
    }

    /// Keeps so many trials with one attempt each, which take these seconds. They start at five minutes past an hour.
    pub(crate) fn lasting(mut self, seconds: &[f64]) -> Self {
        self.plan.trials = u32::try_from(seconds.len()).unwrap();
        self.trials.truncate(seconds.len());
        for (trial, seconds) in self.trials.iter_mut().zip(seconds) {
            let (started_at, zone) = (at(300), Some(ZONES[0].to_owned()));
            let stopped_at = Some(started_at + SignedDuration::from_secs_f64(*seconds));
            let attempt = Attempt { started_at: Some(started_at), stopped_at, zone, ..Attempt::default() };
            (trial.attempts, trial.ended) = ([(1, attempt)].into(), 1);
        }
        self
    }

    /// Gives a trial a smaller loss than all others, in an attempt that has claimed it or in one that has not.
    pub(crate) fn led_by(mut self, index: u32, is_claimed: bool) -> Self {
        let name = &self.plan.metric.as_ref().unwrap().name;
        let trial = &mut self.trials[index as usize];
        trial.metrics.insert(name.clone(), Metric::of(-1.0, None, Source::Stated));
        trial.claimed_by = is_claimed.then_some(trial.ended + 1);
        self
    }

    /// Sets the cost of all trials' instances together to so many USD.
    pub(crate) fn costing(mut self, usd: f64) -> Self {
        let each = usd / self.costs.len() as f64;
        let cost = Cost { instance_usd: each, on_demand_usd: each * 2.0, ..Cost::default() };
        self.costs.values_mut().for_each(|held| *held = cost);
        self
    }

    /// Renders the report page.
    pub(crate) fn page(&self) -> String {
        render(&Report::of(&Sources {
            sweep: &self.sweep,
            plan: &self.plan,
            trials: &self.trials,
            parameters: self.parameters.as_bytes(),
            file: Some(&self.file),
            curves: &self.curves,
            costs: &self.costs,
            control_plane_usd: (!self.costs.is_empty()).then_some(0.02),
            diagnoses: &self.diagnoses,
            warnings: &[],
            now: at(30_000),
        }))
    }

    /// Indexes of the trials that succeeded, smallest loss first.
    pub(crate) fn by_loss(&self) -> Vec<u32> {
        let name = &self.plan.metric.as_ref().unwrap().name;
        let mut good: Vec<&Trial> = self.trials.iter().filter(|trial| trial.status == JobStatus::Succeeded).collect();
        good.sort_by(|left, right| left.metrics[name].last.total_cmp(&right.metrics[name].last));
        good.iter().map(|trial| trial.index).collect()
    }

    /// Number of trials with curves.
    pub(crate) fn curves(&self) -> usize {
        self.curves.len()
    }

    /// Number of attempts of the `most` trials that were interrupted most often.
    pub(crate) fn attempts(&self, most: usize) -> usize {
        let mut counts: Vec<usize> = self.trials.iter().map(|trial| trial.attempts.len()).collect();
        counts.sort_unstable();
        counts.iter().rev().take(most).sum()
    }

    /// Number of trials that failed.
    pub(crate) fn failed(&self) -> usize {
        self.trials.iter().filter(|trial| trial.status == JobStatus::Failed).count()
    }
}
