//! The World: Batch, EC2 and EBS as one deterministic state machine, with their effects on each other.
//!
//! It has no clock, network, threads or randomness of its own. Each call has the time as an argument. The effects that
//! it wants are returned as [`Effect`]s, and the ends of jobs are reported with [`World::job_exited`]. It keeps the
//! bytes of volumes in memory, unless these are kept outside ([`World::with_bytes_outside`]). The local stack runs it
//! by the wall clock and with real child processes (crate `spotsweep-emulator`), the simulation by a virtual clock. The
//! same inputs give the same outputs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

pub mod batch;
mod calls;
mod capacity;
pub mod catalog;
pub mod ebs;
pub mod ec2;
pub mod ecs;
mod error;
mod events;
mod filter;
pub mod fis;
mod ids;
mod instance;
mod lag;
mod offerings;
pub mod prices;
mod refusal;
pub mod rng;
mod snapshot;
mod throttle;
mod timings;
pub mod trace;
mod trouble;

use batch::Batch;
use calls::Calls;
pub use calls::{Call, Failure, Fault, FaultKind, FaultWhen};
use ebs::Ebs;
pub use error::{ApiError, Service};
pub use events::whole_seconds;
pub use filter::{Filter, Selection};
use ids::{Ids, RunRef};
pub use instance::{Defect, Instance, InstanceState};
use lag::Past;
pub use offerings::{InstanceType, Subnet};
use throttle::Throttle;
pub use timings::Timings;
pub use trouble::Trouble;

/// The settings of a World.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The AWS region that ARNs and events name.
    pub region: String,
    /// The account id that ARNs and events name.
    pub account: String,
    /// Names of the availability zones.
    pub zones: Vec<String>,
    /// How long things take.
    pub timings: Timings,
    /// Seed of all ids.
    pub seed: u64,
}

/// An effect that the World wants outside of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Puts this event on the default event bus.
    Emit(Value),
    /// Runs the container of an attempt.
    Start(Start),
    /// Stops an attempt's container as `docker stop` does: SIGTERM, then SIGKILL after the grace.
    Stop {
        /// The attempt.
        attempt: AttemptKey,
        /// The time from SIGTERM to SIGKILL.
        grace: Duration,
    },
    /// Ends an attempt's container at once, because its instance is gone.
    Kill(AttemptKey),
}

/// Names one attempt of one job or array child.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptKey {
    /// Job id; `<parent>:<index>` for an array child.
    pub job: String,
    /// The attempt's number, from 1.
    pub attempt: u32,
}

/// A container to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The attempt.
    pub attempt: AttemptKey,
    /// The EC2 instance on which it runs.
    pub instance: String,
    /// The job definition's image.
    pub image: String,
    /// The command, after overrides and `Ref::` parameters.
    pub command: Vec<String>,
    /// Variables of the job definition, the overrides, and Batch itself (in this order).
    pub environment: Vec<(String, String)>,
    /// CloudWatch log stream: `<definition>/default/<id>`.
    pub log_stream: String,
    /// ARN of the attempt's ECS task.
    pub task: String,
}

impl Start {
    /// Returns the value of a variable. If several have the same name, the last one counts.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a variable that is a whole number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u32> {
        self.variable(name)?.parse().ok()
    }
}

/// Something that happens at a later time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The scheduler looks at a submitted job, which ends the state SUBMITTED.
    Evaluate { job: usize },
    /// A container's image is pulled.
    Pulled { run: RunRef, attempt: u32 },
    /// An attempt has reached its timeout.
    TimedOut { run: RunRef, attempt: u32 },
    /// An instance has booted.
    Booted { instance: String },
    /// An instance without jobs has reached the idle time, if it has had none since then.
    Idle { instance: String, since: Timestamp },
    /// An experiment of FIS chooses its targets.
    BeginExperiment { experiment: String },
    /// An experiment of FIS has done all its actions.
    EndExperiment { experiment: String },
    /// FIS sends the notice of an interruption.
    Warn { instance: String },
    /// The time of an interruption notice is over.
    Reclaim { instance: String },
    /// A shutting-down instance is terminated.
    Terminated { instance: String },
    /// A terminated instance disappears from DescribeInstances.
    Forgotten { instance: String },
    /// The creation of a volume ends.
    VolumeReady { volume: String },
    /// A volume disappears from DescribeVolumes.
    VolumeGone { volume: String },
    /// An attachment's device is in place.
    Attached { volume: String, number: u64 },
    /// udev updates the links to a disk that has appeared or disappeared.
    Linked { instance: String, disk: u32 },
    /// A detachment ends.
    Detached { volume: String, number: u64 },
    /// A snapshot's blocks are copied.
    SnapshotDone { snapshot: String },
}

/// The services of one account in one region. See the module's documentation.
#[derive(Debug)]
pub struct World {
    settings: Settings,
    now: Timestamp,
    ids: Ids,
    timers: BTreeSet<(Timestamp, u64, Timer)>,
    next_timer: u64,
    effects: Vec<Effect>,
    batch: Batch,
    instances: BTreeMap<String, Instance>,
    /// Most instances for which a zone has Spot capacity. A zone without an entry has no limit.
    zone_capacity: BTreeMap<String, u32>,
    ebs: Ebs,
    fis: fis::Fis,
    /// Whether ECS's events about container instances are put on the bus. No function of the product uses them.
    ecs_events: bool,
    trouble: Trouble,
    throttle: Throttle,
    /// The randomness of what lost instances had not written out.
    losses: rng::Rng,
    starts: timings::Spread,
    calls: Calls,
    past: Past,
}

impl World {
    /// Makes an empty account.
    pub fn new(settings: Settings) -> Self {
        World {
            ids: Ids::new(settings.seed),
            throttle: Throttle::new(settings.seed),
            losses: rng::Rng::new(settings.seed.rotate_left(32)),
            starts: timings::Spread::default(),
            settings,
            now: Timestamp::UNIX_EPOCH,
            timers: BTreeSet::new(),
            next_timer: 0,
            effects: Vec::new(),
            batch: Batch::default(),
            instances: BTreeMap::new(),
            zone_capacity: BTreeMap::new(),
            ebs: Ebs::default(),
            fis: fis::Fis::default(),
            ecs_events: false,
            trouble: Trouble::default(),
            calls: Calls::default(),
            past: Past::default(),
        }
    }

    /// Also puts ECS's events about container instances on the bus.
    #[must_use]
    pub fn with_ecs_events(self) -> Self {
        Self { ecs_events: true, ..self }
    }

    /// Returns the settings of the World.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the World's present time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Executes everything that is due by `now`. An earlier `now` than the last one counts as the last one, because the
    /// World's time does not run backwards, whatever a wall clock does.
    pub fn advance(&mut self, now: Timestamp) {
        self.remember();
        while self.timers.first().is_some_and(|(at, _, _)| *at <= now) {
            let Some((at, _, timer)) = self.timers.pop_first() else { break };
            self.now = self.now.max(at);
            self.fire(timer);
            self.schedule();
            self.remember();
        }
        self.now = self.now.max(now);
    }

    /// Returns when [`World::advance`] next has something to do.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _, _)| *at)
    }

    /// Returns the effects that the World has wanted since the last call, in order.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Limits how many instances run in a zone at once. `None` removes the limit.
    pub fn set_zone_capacity(&mut self, zone: &str, instances: Option<u32>, now: Timestamp) {
        self.advance(now);
        match instances {
            Some(limit) => self.zone_capacity.insert(zone.to_owned(), limit),
            None => self.zone_capacity.remove(zone),
        };
        self.schedule();
    }

    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Evaluate { job } => self.evaluate(job),
            Timer::Pulled { run, attempt } => self.image_pulled(run, attempt),
            Timer::TimedOut { run, attempt } => self.attempt_timed_out(run, attempt),
            Timer::Booted { instance } => self.booted(&instance),
            Timer::Idle { instance, since } => self.idle_over(&instance, since),
            Timer::BeginExperiment { experiment } => self.begin_experiment(&experiment),
            Timer::EndExperiment { experiment } => self.end_experiment(&experiment),
            Timer::Warn { instance } => self.warn(&instance),
            Timer::Reclaim { instance } => self.shut_down(&instance, instance::Cause::SpotReclaim),
            Timer::Terminated { instance } => self.terminated(&instance),
            Timer::Forgotten { instance } => {
                self.instances.remove(&instance);
            }
            Timer::VolumeReady { volume } => self.volume_ready(&volume),
            Timer::VolumeGone { volume } => self.volume_gone(&volume),
            Timer::Attached { volume, number } => self.attached(&volume, number),
            Timer::Linked { instance, disk } => self.linked(&instance, disk),
            Timer::Detached { volume, number } => self.set_detached(&volume, number),
            Timer::SnapshotDone { snapshot } => self.snapshot_done(&snapshot),
        }
    }

    fn after(&mut self, delay: Duration, timer: Timer) {
        let at = self.now.saturating_add(delay).unwrap_or(Timestamp::MAX);
        self.next_timer += 1;
        self.timers.insert((at, self.next_timer, timer));
    }

    /// Returns the ARN `arn:aws:<service>:<region>:<account>:<resource>`.
    fn arn(&self, service: &str, resource: &str) -> String {
        format!("arn:aws:{service}:{}:{}:{resource}", self.settings.region, self.settings.account)
    }
}
