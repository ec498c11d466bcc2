//! Puts all instances of a fleet under notice at once. It runs the real `handle`, EC2's request limits as documented
//! (fact 23), Lambda's limits, and runners that save, release and leave, on a virtual clock.
//!
//! Commands also wait on the virtual clock: for the SDK's standard retries, and before another CreateSnapshot.

mod clock;
mod functions;
mod runner;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use spotsweep_records::trial::Trial;
use spotsweep_records::workspace::Stage;
use spotsweep_simulation::harness::{Account, Harness};
use spotsweep_simulation::kernel::{Kernel, Moment};
use spotsweep_world::{AttemptKey, Timings};

use clock::{Asked, Clock, Going};

/// The time between the interruption notice and the end of the instance.
const NOTICE: Duration = Duration::from_secs(120);

/// EC2's bucket for CreateSnapshot: its size, and its refill per second (fact 23).
const BURST: f64 = 100.0;
const PER_SECOND: f64 = 5.0;

/// The time from an event to its function. EventBridge states "typically half a second".
const DELIVERY: Duration = Duration::from_millis(500);

/// The longest simulated time: a bound that no run reaches.
const LONGEST: Duration = Duration::from_secs(4 * 3600);

/// The fleet that is interrupted.
#[derive(Debug, Clone, Copy)]
pub struct Fleet {
    /// The number of instances, all in one zone.
    pub instances: u32,
    /// The number of trials on each instance.
    pub trials_each: u32,
}

/// The outcome of an interruption. Times are in seconds from the notice.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetOutcome {
    /// The number of trials, each with its volume.
    pub workspaces: usize,
    /// The workspaces whose snapshot was begun before their instance ended.
    pub begun_in_time: usize,
    /// The snapshots that CreateSnapshot's bucket allowed until then.
    pub allowed_in_time: f64,
    /// The time at which no volume was attached any more, by the records.
    pub parked_seconds: f64,
    /// The time at which each workspace's final snapshot had been begun.
    pub saved_seconds: f64,
    /// The time at which the bucket had allowed as many snapshots as were made.
    pub allowed_seconds: f64,
    /// The throttled calls of EC2, by action.
    pub throttled: BTreeMap<&'static str, u32>,
    /// The failed invocations of functions.
    pub failed: u32,
}

/// One run, shared by its futures.
struct Scene {
    harness: Harness,
    kernel: RefCell<Kernel<Going>>,
    asked: Asked,
    /// The attempts whose container lives.
    live: RefCell<BTreeSet<AttemptKey>>,
    /// Whether the notice has been given.
    noticed: Cell<bool>,
    mounted: Cell<usize>,
    /// The number of running invocations.
    running: Cell<usize>,
    failed: Cell<u32>,
}

/// Starts the fleet, reclaims all its instances, and runs until every workspace is saved.
///
/// # Errors
/// Returns what did not finish in time.
pub fn interrupt(fleet: Fleet) -> Result<FleetOutcome, String> {
    let trials = fleet.instances * fleet.trials_each;
    let account = Account {
        timings: Timings::realistic(),
        zones: vec!["us-east-1a".into()],
        instance_type: match fleet.trials_each {
            1 | 2 => "c7i.large",
            _ => "c7i.xlarge",
        },
        max_vcpus: trials,
        workspace_gib: 20,
        ..Account::default()
    };
    let harness = Harness::with(1, &account);
    let scene = Rc::new(Scene {
        harness,
        kernel: RefCell::default(),
        asked: Asked::default(),
        live: RefCell::default(),
        noticed: Cell::new(false),
        mounted: Cell::new(0),
        running: Cell::new(0),
        failed: Cell::new(0),
    });
    let lines: String = (0..trials).map(|trial| format!("- {{a: {trial}}}\n")).collect();
    let dropped = scene.harness.put("sweep.yaml", &lines);
    scene.send(dropped);
    scene.kernel.borrow_mut().start_schedule(scene.clock().now());

    scene.run_until(|scene| scene.mounted.get() == trials as usize)?;
    let outcome = scene.take(trials as usize);
    // The futures that still wait own the scene.
    scene.kernel.take();
    outcome
}

impl Scene {
    fn clock(&self) -> Clock<'_> {
        Clock { cloud: &self.harness.cloud, asked: &self.asked }
    }

    /// Begins a function or a runner.
    fn begin(&self, future: impl Future<Output = ()> + 'static) {
        self.kernel.borrow_mut().at(self.clock().now(), Box::pin(future));
    }

    /// Delivers an event to its function, if a rule matches it.
    fn send(&self, event: Value) {
        if self.harness.permissions.function_of(&event).is_some() {
            self.kernel.borrow_mut().deliver(self.clock().now() + DELIVERY, event);
        }
    }

    /// Runs until `holds` returns true.
    fn run_until(self: &Rc<Self>, holds: impl Fn(&Self) -> bool) -> Result<(), String> {
        let latest = self.clock().now() + LONGEST;
        let mut looked = Timestamp::MIN;
        loop {
            while let Some(moment) = self.due() {
                self.take_place(moment);
            }
            let now = self.clock().now();
            // The condition is checked once a second, because it reads thousands of records.
            if now.duration_since(looked).as_secs() >= 1 {
                looked = now;
                if holds(self) {
                    return Ok(());
                }
            }
            let next = self.kernel.borrow().next_due(&self.harness).filter(|next| *next <= latest);
            let next = next.ok_or_else(|| format!("not within {} s", LONGEST.as_secs()))?;
            self.harness.cloud.world().advance(next);
        }
    }

    fn due(&self) -> Option<Moment<Going>> {
        self.kernel.borrow_mut().due(&self.harness)
    }

    fn take_place(self: &Rc<Self>, moment: Moment<Going>) {
        match moment {
            Moment::Emitted(event) => self.send(event),
            Moment::Started(start) => {
                self.live.borrow_mut().insert(start.attempt.clone());
                self.begin(runner::run(Rc::clone(self), start));
            }
            Moment::Killed(attempt) | Moment::Stopped(attempt, _) => {
                self.live.borrow_mut().remove(&attempt);
            }
            Moment::Deliver(delivery) => self.begin(functions::deliver(Rc::clone(self), delivery)),
            Moment::Own(mut going) => {
                if going.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                    // A future at a fault point of a call goes on after the others of this moment.
                    let at = self.asked.take().unwrap_or_else(|| self.clock().now());
                    self.kernel.borrow_mut().at(at, going);
                }
            }
        }
        self.harness.announced().into_iter().for_each(|event| self.send(event));
    }

    /// Gives the notice to all instances, and returns the outcome.
    fn take(self: &Rc<Self>, workspaces: usize) -> Result<FleetOutcome, String> {
        let began = self.clock().now();
        {
            let mut world = self.harness.cloud.world();
            world.trouble_mut().request_limits = true;
            world.reclaim_zone("us-east-1a", Some(NOTICE), began).map_err(|error| error.to_string())?;
        }
        self.noticed.set(true);
        let since = |scene: &Self| scene.clock().now().duration_since(began).as_secs_f64();

        self.run_until(|scene| since(scene) >= NOTICE.as_secs_f64())?;
        let begun: BTreeSet<String> =
            self.harness.cloud.world().snapshots().map(|snapshot| snapshot.volume.clone()).collect();
        self.run_until(|scene| scene.all(|trial| stands(trial, |stage| !is_on_an_instance(stage))))?;
        let parked_seconds = since(self);
        self.run_until(|scene| scene.all(is_saved))?;
        Ok(FleetOutcome {
            workspaces,
            begun_in_time: begun.len(),
            allowed_in_time: (BURST + PER_SECOND * NOTICE.as_secs_f64()).min(workspaces as f64),
            parked_seconds,
            saved_seconds: since(self),
            allowed_seconds: (workspaces as f64 - BURST).max(0.0) / PER_SECOND,
            throttled: self.harness.cloud.throttled(),
            failed: self.failed.get(),
        })
    }

    fn all(&self, holds: impl Fn(&Trial) -> bool) -> bool {
        let mut all = true;
        self.harness.store.each_trial(|trial| all &= holds(trial));
        all
    }
}

fn stands(trial: &Trial, holds: impl Fn(&Stage) -> bool) -> bool {
    trial.workspace.as_ref().is_some_and(|workspace| holds(&workspace.stage))
}

fn is_on_an_instance(stage: &Stage) -> bool {
    matches!(stage, Stage::Attaching { .. } | Stage::Attached { .. } | Stage::Detaching { .. })
}

/// Whether a snapshot with all the trial's bytes has been begun.
fn is_saved(trial: &Trial) -> bool {
    let Some(workspace) = &trial.workspace else { return false };
    let saved = workspace.volume.saved_by.and_then(|operation| workspace.snapshots.get(&operation));
    saved.is_some_and(|snapshot| snapshot.id.is_some())
}
