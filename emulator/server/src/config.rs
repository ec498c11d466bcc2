//! What an emulator is told at its start.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;

use spotsweep_world::{Settings, Timings};

/// Everything [`crate::Emulator::serve`] needs to know.
#[derive(Debug, Clone)]
pub struct Config {
    /// The AWS region that ARNs, events and IMDS name.
    pub region: String,
    /// The account id that ARNs and events name: 12 digits.
    pub account: String,
    /// Names of the availability zones, such as `us-east-1a`.
    pub zones: Vec<String>,
    /// Folder for attempts (`attempts/…`), their output (`logs/…`), volumes (`volumes/…`), snapshots
    /// (`snapshots/…`) and devices (`instances/…`). Made if missing.
    pub work_dir: PathBuf,
    /// How volumes keep their bytes.
    pub volumes: Volumes,
    /// The program `spotsweep-container`, which gives each job a container's view of this machine: own mounts, `/dltraining`,
    /// `/storage`, home and changes ([`crate::container`]). None: jobs are plain processes with the machine's own files, and
    /// `SPOTSWEEP_ROOT` names each one's folder.
    pub container: Option<PathBuf>,
    /// What is put before each job's command, as an image's ENTRYPOINT would be. May be empty.
    pub entrypoint: Vec<String>,
    /// The whole environment that every job starts from: nothing is inherited.
    pub job_env: Vec<(String, String)>,
    /// How long things take.
    pub timings: Timings,
    /// Seed of all ids. The same seed and the same calls give the same ids.
    pub seed: u64,
    /// Receives a copy of each emitted event, in order.
    pub observer: Option<mpsc::UnboundedSender<Value>>,
    /// What goes wrong on the way from the event bus to its targets.
    pub injection: Injection,
}

impl Config {
    /// Defaults: `us-east-1` with zones a, b and c, account 000000000000, an empty environment,
    /// no entrypoint, no injected trouble.
    ///
    /// The seed comes from the clock, so that two stacks never hand out the same job id.
    pub fn new(work_dir: PathBuf) -> Self {
        Config {
            region: "us-east-1".into(),
            account: "000000000000".into(),
            zones: ["us-east-1a", "us-east-1b", "us-east-1c"].map(String::from).into(),
            work_dir,
            volumes: Volumes::Directories,
            container: None,
            entrypoint: Vec::new(),
            job_env: Vec::new(),
            timings: Timings::default(),
            seed: Timestamp::now().as_microsecond().unsigned_abs(),
            observer: None,
            injection: Injection::default(),
        }
    }

    /// The part of the configuration that the World sees.
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

/// What a volume is for a job that finds it under `SPOTSWEEP_DEV`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Volumes {
    /// A link to a folder.
    #[default]
    Directories,
    /// A block device, as on AWS, with real file systems and mounts. Linux as root, with losetup and fsfreeze; needs
    /// [`Config::container`], because each job mounts its own.
    BlockDevices,
}

/// Trouble between the event bus and its targets. The default is none.
///
/// EventBridge promises at-least-once delivery in no order, and `aws.ec2` events are best effort
/// only (fact 2): each field makes one of these visible.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Injection {
    /// Share of events that are delivered twice, 0 to 1.
    pub duplicate: f64,
    /// Every delivery waits a time between these two.
    pub delay: (Duration, Duration),
    /// Share of deliveries held back for up to [`Injection::REORDER_WINDOW`] more, 0 to 1.
    pub reorder: f64,
    /// Share of best-effort (`aws.ec2`) events that never arrive, 0 to 1.
    pub lose_best_effort: f64,
    /// Seed of the choices.
    pub seed: u64,
}

impl Injection {
    /// How long a reordered delivery may be held back.
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
