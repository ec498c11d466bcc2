//! Runs a sweep from its file to its end on a virtual clock: the real `handle`, the emulator's World, simulated
//! runners, and the faults that AWS permits. One seed gives one run.

mod agent;
mod chaos;
mod curve;
mod data;
mod data_sets;
mod delivery;
mod disk;
mod effects;
mod forged;
mod invariants;
mod kept;
mod mixture;
mod rng;
mod training;
mod vanishing;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use spotsweep_control_plane::input::Input;
use spotsweep_protocol::claim::{packed_key, secret_parameter};
use spotsweep_records::sweep::Stage;
use spotsweep_records::workspace::SWEEP_TAG;
use spotsweep_world::AttemptKey;
use spotsweep_world::Timings;
use spotsweep_world::ebs::{CreateVolume, Tags};

use crate::harness::{Account, BUCKET, Harness};
use crate::injected_bug::InjectedBug;
use crate::kernel::{Kernel, Moment};
use agent::Agent;
pub use chaos::Chaos;
use data::Disks;
pub use data_sets::{DataFaults, DataSets};
pub(crate) use forged::FORGER;
use forged::Stray;
pub use invariants::INVARIANTS;
pub use mixture::Mixture;
use rng::Rng;
pub use training::habits::{Format, Habits, Layout, OnSignal, Replacing, StartedBy};
pub use watch::{BY_HAND, Resume, Watch};

/// A run that takes longer than this makes no progress any more. Kept workspaces stay for a day after the last look at
/// an open sweep.
const LONGEST: Duration = Duration::from_secs(15 * 86_400);

/// The most times of one run at which something is due. It only stops endless runs.
const MOST_TIMES: usize = 2_000_000;

/// The SHA-256 of the packed folder that a sweep may name.
const FOLDER: &str = "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f";

/// A seed uses the first one, two or three of these zones.
const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];

/// The instance type with two GPUs, and the vCPUs of four such instances: a seed without GPUs has as many instances.
const GPU_INSTANCES: (&str, u32) = ("g5g.16xlarge", 256);

/// The `stalled` limit of sweeps whose trainings may stall.
const STALLED: &str = "10m";

/// The topic of sweeps that have a budget or whose trainings may stall.
const TOPIC: &str = "arn:aws:sns:us-east-1:000000000000:sweeps";

/// What the simulation does at a later virtual time.
#[derive(Debug, Clone)]
enum Scheduled {
    /// A runner takes its next step.
    Step(AttemptKey),
    /// A request reaches `trial-claim`, and no runner waits for its answer.
    Ask(Stray),
    /// A runner reads the metadata service and finds a notice.
    Poll(AttemptKey),
    /// A container gets SIGTERM, and is killed after a grace.
    Terminate {
        key: AttemptKey,
        grace: Duration,
    },
    Kill(AttemptKey),
    /// EC2 reclaims one instance, or all instances of a zone.
    Reclaim,
    /// A zone has capacity again.
    Reopen(String),
    /// The instance of an attempt vanishes.
    Vanish {
        key: AttemptKey,
        is_dead: bool,
    },
    /// An instance that was cut off is connected again.
    Reconnect(String),
    /// Another sweep file is dropped.
    Drop(String),
    /// An object of a data set is changed.
    ChangeData,
    /// From now on no fault is injected.
    Calm,
}

/// The simulation of one seed.
#[derive(Debug)]
pub struct Simulation {
    /// The emulated account, with the control plane's functions.
    pub harness: Harness,
    /// What the run has recorded for the invariants.
    pub watch: Watch,
    /// Epochs of each trial.
    pub epochs: u32,
    /// Duration of one epoch.
    pub epoch: Duration,
    chaos: Chaos,
    rng: Rng,
    kernel: Kernel<Scheduled>,
    agents: BTreeMap<AttemptKey, Agent>,
    started: Timestamp,
    reclaims: usize,
    /// The time since which each dead instance is dead.
    dead: BTreeMap<String, Timestamp>,
    passed: usize,
    steps: u64,
    /// The data sets of the sweeps, if they have any, and the disks on which instances have them.
    data: Option<DataSets>,
    disks: Disks,
    /// The number of sweeps that run at the same time.
    sweeps: usize,
    /// Whether a second sweep is to go on from the kept workspace of the first trial.
    continues: bool,
    /// Whether a second sweep is to start from the checkpoint that was uploaded for the first trial.
    restores: bool,
    log: Option<Vec<String>>,
    inputs: Option<Vec<(Timestamp, Input)>>,
}

impl Simulation {
    /// Starts a run in which a sweep file has just been dropped.
    pub fn new(seed: u64, account: &Account, chaos: Chaos, file: &str) -> Self {
        let harness = Harness::with(seed, account);
        let started = harness.now;
        let mut simulation = Self {
            harness,
            watch: Watch::default(),
            epochs: 10,
            epoch: Duration::from_secs(60),
            chaos,
            rng: Rng::new(seed),
            kernel: Kernel::default(),
            agents: BTreeMap::new(),
            started,
            reclaims: 0,
            dead: BTreeMap::new(),
            passed: 0,
            steps: 0,
            data: None,
            disks: Disks::default(),
            sweeps: 1,
            continues: false,
            restores: false,
            log: None,
            inputs: None,
        };
        simulation.drop_file("sim.yaml", file);
        simulation.kernel.start_schedule(started);
        simulation.at(simulation.chaos.ends_after, Scheduled::Calm);
        simulation.begin_trouble();
        simulation
    }

    /// Starts a run whose sweep, account and faults the seed alone decides.
    pub fn of_seed(seed: u64) -> Self {
        Self::mixed(seed, &Mixture::of_seed(seed))
    }

    /// Starts the run of a seed with a mixture of the caller's choice.
    pub fn mixed(seed: u64, mixture: &Mixture) -> Self {
        Self::mixed_with(seed, mixture, &mixture.file())
    }

    /// Starts the run of a seed and a mixture with a sweep file of the caller's choice.
    pub fn mixed_with(seed: u64, mixture: &Mixture, file: &str) -> Self {
        let zones = ZONES.iter().take(mixture.zones as usize);
        let mut machines = Account::default();
        if mixture.gpus {
            (machines.instance_type, machines.max_vcpus) = GPU_INSTANCES;
        }
        if mixture.data.is_some_and(|data| data.on_few_instances) {
            machines.max_vcpus /= 2;
        }
        let account = Account {
            timings: Timings::realistic(),
            zones: zones.map(ToString::to_string).collect(),
            workspace_gib: 20,
            initialization_rate: mixture.initialization_rate,
            // Shorter pauses only repeat the same calls more often.
            poll: Duration::from_secs(20),
            page_trials: mixture.page_trials,
            ..machines
        };
        let mut simulation = Self::new(seed, &account, mixture.chaos.clone(), file);
        simulation.epochs = mixture.epochs;
        (simulation.continues, simulation.restores) = (mixture.continues, mixture.restores);
        let mut world = simulation.harness.cloud.world();
        world.trouble_mut().failing_volumes = mixture.failing_volumes;
        world.trouble_mut().failing_starts = mixture.failing_starts;
        world.trouble_mut().failing_snapshots = mixture.failing_snapshots;
        world.trouble_mut().defective_instances = mixture.defective_instances;
        world.trouble_mut().failing_instances = mixture.failing_instances;
        world.trouble_mut().visible_after_ms = u64::from(mixture.visible_after_seconds) * 1000;
        drop(world);
        simulation.give_data(mixture);
        simulation.harness.cloud.put(&packed_key(FOLDER), "a folder");
        simulation.harness.cloud.add_parameter(&secret_parameter(BUCKET, "KEY"), true);
        simulation.harness.cloud.add_managed_secret("team/key", false);
        simulation
    }

    /// Makes a volume that a user tagged some minutes before the sweep. The sweep adopts it under the name [`BY_HAND`].
    ///
    /// # Panics
    /// If the World refuses the volume.
    pub fn make_by_hand(&mut self, zone: &str) {
        let request = CreateVolume {
            zone: zone.into(),
            size_gib: Some(100),
            tags: Tags::from([("Name", BY_HAND), (SWEEP_TAG, "adopted")]),
            ..CreateVolume::default()
        };
        self.harness.cloud.world().create_volume(request).expect("the emulator makes a volume");
        self.harness.pass(Duration::from_secs(120));
    }

    /// Drops another sweep file.
    pub fn drop_file(&mut self, name: &str, file: &str) {
        let dropped = self.harness.put(name, file);
        self.kernel.deliver(self.harness.now, dropped);
    }

    /// Runs until the sweep is settled and nothing is left, or until an invariant fails.
    ///
    /// # Errors
    /// The invariant that does not hold, and why.
    pub fn run(&mut self) -> Result<(), String> {
        self.run_until(Self::is_settled)?;
        self.check(|invariant| invariant.at_the_end)?;
        self.go_on_from_what_is_kept()?;
        self.outlast_what_is_kept()?;
        self.outlast_strays()
    }

    /// Runs until `holds` returns true.
    ///
    /// # Errors
    /// As for [`Self::run`].
    pub fn run_until(&mut self, holds: impl Fn(&Self) -> bool) -> Result<(), String> {
        for _ in 0..MOST_TIMES {
            while let Some(moment) = self.kernel.due(&self.harness) {
                self.take_place(moment)?;
            }
            self.check(|invariant| invariant.after_every_step)?;
            if holds(self) {
                return Ok(());
            }
            self.advance()?;
        }
        Err("more is due than in any run".into())
    }

    /// Advances the clock to the next time at which something is due.
    fn advance(&mut self) -> Result<(), String> {
        let Some(next) = self.kernel.next_due(&self.harness) else {
            return Err("nothing is due any more, and the sweep is not settled".into());
        };
        if next - LONGEST > self.started {
            return Err(format!("not settled after {LONGEST:?}: {}", self.watch.open(&self.harness)));
        }
        self.harness.advance(next);
        Ok(())
    }

    /// Switches on an injected bug.
    pub fn plant(&mut self, injected_bug: InjectedBug) {
        self.harness.plant(injected_bug);
    }

    /// Injects only the faults with these numbers, counted from 0.
    pub fn only_faults(&mut self, strokes: BTreeSet<u64>) {
        self.rng.only_faults(strokes);
    }

    /// Records every decided input from now on.
    pub fn keep_inputs(&mut self) {
        self.harness.store.decision_log.keep();
        self.inputs = Some(Vec::new());
    }

    /// The inputs recorded so far.
    pub fn inputs(&self) -> &[(Timestamp, Input)] {
        self.inputs.as_deref().unwrap_or_default()
    }

    /// The number of faults so far.
    pub fn strokes(&self) -> u64 {
        self.rng.strokes()
    }

    /// Records a log line for every invocation from now on.
    pub fn keep_log(&mut self) {
        self.log = Some(Vec::new());
    }

    /// The log lines recorded so far. The same seed gives the same lines.
    pub fn log(&self) -> &[String] {
        self.log.as_deref().unwrap_or_default()
    }

    /// The virtual time since the file was dropped.
    pub fn elapsed(&self) -> Duration {
        Duration::try_from(self.harness.now.duration_since(self.started)).unwrap_or_default()
    }

    /// The fault points that all invocations have passed: two for each call on AWS.
    pub fn passed(&self) -> usize {
        self.passed
    }

    /// The number of scheduled entries executed so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The number of reclaims so far.
    pub fn reclaims(&self) -> usize {
        self.reclaims
    }

    fn take_place(&mut self, moment: Moment<Scheduled>) -> Result<(), String> {
        match moment {
            Moment::Emitted(event) => self.send(&event),
            Moment::Started(start) => self.start(start),
            Moment::Killed(attempt) => self.kill(&attempt),
            Moment::Stopped(key, grace) => self.at(Duration::ZERO, Scheduled::Terminate { key, grace }),
            Moment::Deliver(delivery) => self.deliver(delivery),
            Moment::Own(entry) => self.execute(entry)?,
        }
        for event in self.harness.announced() {
            self.send(&event);
        }
        Ok(())
    }

    fn execute(&mut self, entry: Scheduled) -> Result<(), String> {
        self.steps += 1;
        match entry {
            Scheduled::Step(key) => self.step(&key)?,
            Scheduled::Ask(stray) => self.stray(stray),
            Scheduled::Poll(key) => self.poll(&key)?,
            Scheduled::Terminate { key, grace } => self.terminate(&key, grace)?,
            Scheduled::Kill(key) => self.end_container(&key),
            Scheduled::Reclaim => self.reclaim(),
            Scheduled::Reopen(zone) => {
                let now = self.harness.now;
                self.harness.cloud.world().set_zone_capacity(&zone, None, now);
            }
            Scheduled::Vanish { key, is_dead } => self.vanish(&key, is_dead),
            Scheduled::Reconnect(instance) => self.reconnect(&instance),
            Scheduled::Drop(file) => self.drop_file("beside.yaml", &file),
            Scheduled::ChangeData => DataSets::change(&self.harness),
            Scheduled::Calm => self.end_trouble(),
        }
        Ok(())
    }

    fn is_settled(&self) -> bool {
        self.harness.store.sweeps_in(&Stage::Settled) >= self.sweeps
    }

    fn at(&mut self, after: Duration, entry: Scheduled) {
        self.kernel.at(self.harness.now + after, entry);
    }
}
