//! A sweep from its file to the end on a virtual clock: the real `handle`, the emulator's World, simulated runners,
//! and everything that AWS may do to them. One seed, one run.

mod agent;
mod chaos;
mod watch;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use spotsweep::claim::Reply;
use spotsweep::lifecycle::Stage;
use spotsweep_emulator::Timings;
use spotsweep_emulator::world::{AttemptKey, Effect, Service, Start};

use crate::harness::{Account, Harness};
use agent::Agent;
pub use chaos::Chaos;
pub use watch::{BY_HAND, Resume, Watch};

/// How often the schedule fires.
pub const RECONCILE: Duration = Duration::from_secs(300);

/// A run that takes longer than this has come to a stop.
const LONGEST: Duration = Duration::from_secs(14 * 86_400);

/// Happenings of one run: a bound, not a tuning.
const MOST_HAPPENINGS: usize = 2_000_000;

/// Lambda's retries of an asynchronous invocation (facts 34).
const RETRIES: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(120)];

/// What happens at some time.
#[derive(Debug, Clone)]
enum Happening {
    /// An event reaches its function, for the first time or again.
    Deliver { event: Value, tries: usize },
    /// A runner does what it does next.
    Step(AttemptKey),
    /// A runner looks at the metadata service.
    Poll(AttemptKey),
    /// AWS takes an instance, or a zone's.
    Reclaim,
    /// A zone has capacity again.
    Reopen(String),
    /// The schedule fires.
    Tick,
}

/// One run.
#[derive(Debug)]
pub struct Simulation {
    /// The account.
    pub harness: Harness,
    /// What is watched for.
    pub watch: Watch,
    /// Epochs of every trial.
    pub epochs: u32,
    /// Time that one takes.
    pub epoch: Duration,
    chaos: Chaos,
    rng: ChaCha8Rng,
    happenings: BTreeMap<(Timestamp, u64), Happening>,
    sequence: u64,
    agents: BTreeMap<AttemptKey, Agent>,
    started: Timestamp,
    reclaims: usize,
    passed: usize,
    steps: u64,
    log: Option<Vec<String>>,
}

impl Simulation {
    /// An account in which a sweep file has just been dropped.
    pub fn new(seed: u64, account: &Account, chaos: Chaos, file: &str) -> Self {
        let harness = Harness::with(seed, account);
        let started = harness.now;
        let mut simulation = Self {
            harness,
            watch: Watch::default(),
            epochs: 10,
            epoch: Duration::from_secs(60),
            chaos,
            rng: ChaCha8Rng::seed_from_u64(seed),
            happenings: BTreeMap::new(),
            sequence: 0,
            agents: BTreeMap::new(),
            started,
            reclaims: 0,
            passed: 0,
            steps: 0,
            log: None,
        };
        let throttled = simulation.chaos.throttled;
        simulation.harness.cloud.world().trouble_mut().throttle_share.insert(Service::Ec2, throttled);
        let dropped = simulation.harness.put("sim.yaml", file);
        simulation.at(Duration::ZERO, Happening::Deliver { event: dropped, tries: 0 });
        simulation.at(RECONCILE, Happening::Tick);
        if let Some(mean) = simulation.chaos.reclaim_every {
            simulation.at(mean, Happening::Reclaim);
        }
        simulation
    }

    /// A sweep, an account and a mixture of trouble that the seed alone decides.
    pub fn of_seed(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
        let chaos = Chaos::mixed(&mut rng);
        let zones = 1 + rng.next_u32() % 3;
        let account = Account {
            timings: Timings::realistic(),
            zones: ["us-east-1a", "us-east-1b", "us-east-1c"]
                .iter()
                .take(zones as usize)
                .map(ToString::to_string)
                .collect(),
            workspace_gib: 20,
            ..Account::default()
        };
        let trials: String = (0..=rng.next_u32() % 3).map(|trial| format!("- {{a: {trial}}}\n")).collect();
        let trouble = [rng.next_u32() % 4, rng.next_u32() % 4, rng.next_u32() % 3];
        let mut simulation = Self::new(seed, &account, chaos, &trials);
        simulation.epochs = 1 + rng.next_u32() % 10;
        let mut world = simulation.harness.cloud.world();
        world.trouble_mut().failing_volumes = trouble[0] / 2;
        world.trouble_mut().failing_snapshots = trouble[1];
        world.trouble_mut().visible_after_ms = u64::from(trouble[2]) * 4000;
        drop(world);
        simulation
    }

    /// Runs until the sweep is settled and nothing is left, or until something is wrong; says what.
    pub async fn run(&mut self) -> Result<(), String> {
        self.run_until(Self::is_settled).await?;
        self.watch.check_end(&self.harness)
    }

    /// Runs until something holds.
    pub async fn run_until(&mut self, holds: impl Fn(&Self) -> bool) -> Result<(), String> {
        for _ in 0..MOST_HAPPENINGS {
            self.take_effects();
            self.watch.check(&self.harness)?;
            if holds(self) {
                return Ok(());
            }
            self.go_on().await?;
        }
        Err("more happenings than a run may have".into())
    }

    /// Lets happen what is next.
    async fn go_on(&mut self) -> Result<(), String> {
        let due = self.harness.cloud.world().next_due();
        let first = self.happenings.keys().next().map(|(at, _)| *at);
        let Some(next) = due.into_iter().chain(first).min() else {
            return Err("nothing is left to happen, and the sweep is not settled".into());
        };
        self.harness.now = self.harness.now.max(next);
        if self.harness.now - LONGEST > self.started {
            return Err(format!("not settled after {LONGEST:?}: {}", self.watch.open(&self.harness)));
        }
        self.harness.cloud.world().advance(self.harness.now);
        self.take_effects();
        while let Some(entry) = self.happenings.first_entry().filter(|entry| entry.key().0 <= self.harness.now) {
            let happening = entry.remove();
            self.steps += 1;
            self.happen(happening).await?;
            // What it has killed must not take another step.
            self.take_effects();
        }
        Ok(())
    }

    /// From now on keeps a line for every invocation.
    pub fn keep_log(&mut self) {
        self.log = Some(Vec::new());
    }

    /// The lines kept so far: the same for the same seed.
    pub fn log(&self) -> &[String] {
        self.log.as_deref().unwrap_or_default()
    }

    /// Virtual time since the file was dropped.
    pub fn elapsed(&self) -> Duration {
        Duration::try_from(self.harness.now.duration_since(self.started)).unwrap_or_default()
    }

    /// Fault points that all invocations have passed: two for each call on AWS.
    pub fn passed(&self) -> usize {
        self.passed
    }

    /// How many happenings there were.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// How many reclaims there were.
    pub fn reclaims(&self) -> usize {
        self.reclaims
    }

    async fn happen(&mut self, happening: Happening) -> Result<(), String> {
        match happening {
            Happening::Deliver { event, tries } => self.deliver(event, tries).await,
            Happening::Step(key) => self.step(&key).await?,
            Happening::Poll(key) => self.poll(&key).await,
            Happening::Reclaim => self.reclaim(),
            Happening::Reopen(zone) => {
                let now = self.harness.now;
                self.harness.cloud.world().set_zone_capacity(&zone, None, now);
            }
            Happening::Tick => {
                let tick = self.harness.reconcile();
                self.at(Duration::ZERO, Happening::Deliver { event: tick, tries: 0 });
                self.at(RECONCILE, Happening::Tick);
            }
        }
        for sweep in self.harness.cloud.take_announced() {
            let event = json!({
                "version": "0", "id": "own", "detail-type": "Sweep Settling", "source": "spotsweep",
                "account": "000000000000", "time": self.harness.now.to_string(), "region": "us-east-1",
                "resources": [], "detail": { "sweep": sweep.as_str() },
            });
            self.send(&event);
        }
        Ok(())
    }

    fn take_effects(&mut self) {
        let effects = self.harness.cloud.world().take_effects();
        for effect in effects {
            match effect {
                Effect::Emit(event) => self.send(&event),
                Effect::Start(start) => self.start(start),
                Effect::Kill(attempt) | Effect::Stop { attempt, .. } => {
                    if let Some(agent) = self.agents.remove(&attempt) {
                        self.watch.stopped(&agent.trial);
                    }
                }
            }
        }
    }

    fn start(&mut self, start: Start) {
        let zone = self.harness.cloud.world().instance(&start.instance).map(|found| found.zone.clone());
        let Some(agent) = Agent::new(&start, zone.unwrap_or_default(), self.harness.now) else { return };
        let key = start.attempt;
        self.agents.insert(key.clone(), agent);
        self.at(Duration::ZERO, Happening::Step(key.clone()));
        self.at(agent::IMDS_POLL, Happening::Poll(key));
    }

    /// Puts an event on the bus.
    fn send(&mut self, event: &Value) {
        if event["source"] == "aws.ec2" && self.chance(self.chaos.lost) {
            return;
        }
        let copies = if self.chance(self.chaos.doubled) { 2 } else { 1 };
        for _ in 0..copies {
            let delay = self.chaos.delay.mul_f64(self.dice());
            self.at(delay, Happening::Deliver { event: event.clone(), tries: 0 });
        }
    }

    async fn deliver(&mut self, event: Value, tries: usize) {
        if self.invoke(&event).await.is_none()
            && let Some(wait) = RETRIES.get(tries)
        {
            self.at(*wait, Happening::Deliver { event, tries: tries + 1 });
        }
    }

    /// One invocation, which may die at any of its calls; the reply where it answered.
    async fn invoke(&mut self, event: &Value) -> Option<Option<Reply>> {
        let by_chance = self.chance(self.chaos.killed).then(|| self.choose(24));
        let chosen = self.chaos.killed_at.and_then(|point| point.checked_sub(self.passed));
        let stop_at = chosen.or(by_chance);
        self.harness.crash.arm(stop_at);
        let answer = tokio::select! {
            biased;
            () = self.harness.crash.dead() => None,
            report = self.harness.deliver(event) => {
                if let Err(error) = &report {
                    self.watch.heard(error);
                }
                report.ok()
            }
        };
        self.passed += self.harness.crash.passed();
        self.harness.crash.arm(None);
        if let Some(log) = &mut self.log {
            let what = event["detail-type"].as_str().or(event["request"].as_str()).unwrap_or("?");
            let outcome = answer.as_ref().map_or("died or failed".to_owned(), |report| report.steps.join("; "));
            log.push(format!("{:.3} {what}: {outcome}", self.harness.now));
        }
        answer.map(|report| report.reply)
    }

    fn reclaim(&mut self) {
        let mean = self.chaos.reclaim_every.unwrap_or(RECONCILE);
        let training: Vec<String> = self.agents.values().map(|agent| agent.instance.clone()).collect();
        if self.reclaims < self.chaos.most_reclaims {
            let wait = mean.mul_f64(2.0 * self.dice());
            self.at(wait, Happening::Reclaim);
        }
        let Some(instance) = training.get(self.choose(training.len())) else { return };
        let notice = (!self.chance(self.chaos.unannounced)).then_some(Duration::from_secs(120));
        let now = self.harness.now;
        let zone = self.harness.cloud.world().instance(instance).map(|found| found.zone.clone());
        self.reclaims += 1;
        if let Some(zone) = zone.filter(|_| self.chance(self.chaos.zone_wide)) {
            let _ = self.harness.cloud.world().reclaim_zone(&zone, notice, now);
            self.at(Duration::from_secs(900), Happening::Reopen(zone));
        } else {
            // One that is going already can't be taken again.
            let _ = self.harness.cloud.world().reclaim(instance, notice, now);
        }
    }

    fn is_settled(&self) -> bool {
        self.harness.store.has_sweep_in(&Stage::Settled)
    }

    fn at(&mut self, after: Duration, happening: Happening) {
        self.sequence += 1;
        self.happenings.insert((self.harness.now + after, self.sequence), happening);
    }

    /// From 0 to 1.
    fn dice(&mut self) -> f64 {
        f64::from(self.rng.next_u32()) / f64::from(u32::MAX)
    }

    fn chance(&mut self, share: f64) -> bool {
        share > 0.0 && self.dice() < share
    }

    fn choose(&mut self, among: usize) -> usize {
        usize::try_from(self.rng.next_u32()).unwrap_or(0) % among.max(1)
    }
}
