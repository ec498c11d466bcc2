//! The configuration of an emulator.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;

use spotsweep_world::{Settings, Timings};

/// The configuration of [`crate::Emulator::serve`].
#[derive(Debug, Clone)]
pub struct Config {
    /// The AWS region in ARNs, events and IMDS.
    pub region: String,
    /// The account id in ARNs and events: 12 digits.
    pub account: String,
    /// The names of the availability zones, such as `us-east-1a`.
    pub zones: Vec<String>,
    /// The folder for attempts (`attempts/…`), their output (`logs/…`), volumes (`volumes/…`), snapshots
    /// (`snapshots/…`) and devices (`instances/…`). It is made if missing.
    pub work_dir: PathBuf,
    /// The way in which volumes store their bytes.
    pub volumes: Volumes,
    /// The program `spotsweep-container`, which gives each job a container: its own mounts, `/dltraining`, `/storage`,
    /// home and changes ([`crate::container`]). If `None`, jobs are plain processes with the machine's own files, and
    /// `SPOTSWEEP_ROOT` names each job's folder.
    pub container: Option<PathBuf>,
    /// The words before each job's command, like an image's ENTRYPOINT. May be empty.
    pub entrypoint: Vec<String>,
    /// The folder of every image that is no `file:///folder`. If `None`, such images are empty.
    pub images: Option<PathBuf>,
    /// The whole environment from which every job starts. Nothing is inherited.
    pub job_env: Vec<(String, String)>,
    /// The durations of emulated actions.
    pub timings: Timings,
    /// Seed of all ids. The same seed and the same calls give the same ids.
    pub seed: u64,
    /// Receives a copy of each emitted event, in order.
    pub observer: Option<mpsc::UnboundedSender<Value>>,
    /// The injected faults between the event bus and its targets.
    pub injection: Injection,
}

impl Config {
    /// Returns the defaults: `us-east-1` with zones a, b and c, account 000000000000, an empty environment, no
    /// entrypoint, no injected faults.
    ///
    /// The seed comes from the clock, so that two stacks never return the same job id.
    pub fn new(work_dir: PathBuf) -> Self {
        Config {
            region: "us-east-1".into(),
            account: "000000000000".into(),
            zones: ["us-east-1a", "us-east-1b", "us-east-1c"].map(String::from).into(),
            work_dir,
            volumes: Volumes::Directories,
            container: None,
            entrypoint: Vec::new(),
            images: None,
            job_env: Vec::new(),
            timings: Timings::default(),
            seed: Timestamp::now().as_microsecond().unsigned_abs(),
            observer: None,
            injection: Injection::default(),
        }
    }

    /// Returns the World's part of the configuration.
    pub fn settings(&self) -> Settings {
        Settings {
            region: self.region.clone(),
            account: self.account.clone(),
            zones: self.zones.clone(),
            timings: self.timings,
            seed: self.seed,
        }
    }
}

/// The form of a volume for a job, which finds it under `SPOTSWEEP_DEV`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Volumes {
    /// A link to a folder.
    #[default]
    Directories,
    /// A block device, as on AWS, with real file systems and mounts. It needs Linux as root, losetup and fsfreeze, and
    /// [`Config::container`], because each job mounts its own.
    BlockDevices,
}

/// Faults between the event bus and its targets. The default has none.
///
/// EventBridge promises at-least-once delivery in no order, and `aws.ec2` events only at best effort (fact 2). Each
/// field causes one of these effects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Injection {
    /// The share of events that are delivered twice, 0 to 1.
    pub duplicate: f64,
    /// The shortest and the longest delay of a delivery.
    pub delay: (Duration, Duration),
    /// The share of deliveries that are delayed by up to [`Injection::REORDER_WINDOW`] more, 0 to 1.
    pub reorder: f64,
    /// The share of best-effort (`aws.ec2`) events that are never delivered, 0 to 1.
    pub lose_best_effort: f64,
    /// The seed of the random choices.
    pub seed: u64,
}

impl Injection {
    /// The longest additional delay of a reordered delivery.
    pub const REORDER_WINDOW: Duration = Duration::from_secs(2);
}

impl Default for Injection {
    fn default() -> Self {
        Injection {
            duplicate: 0.0,
            delay: (Duration::ZERO, Duration::ZERO),
            reorder: 0.0,
            lose_best_effort: 0.0,
            seed: 0,
        }
    }
}
