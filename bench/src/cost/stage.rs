//! A sweep on the virtual clock: the real `handle` over the emulated cloud, with its state in a table that reads the
//! meter. Nothing goes wrong but what is asked for: all instances are in one zone, and each interruption takes that
//! zone with the two minutes' notice and opens the other one, so that every workspace moves.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spotsweep_aws::{DynamoStore, RETENTION_DAYS, Reader};
use spotsweep_control_plane::event::{self, Event};
use spotsweep_control_plane::handle::{HandleError, handle};
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::Reply;
use spotsweep_protocol::ids::SweepId;
use spotsweep_simulation::harness::{Account, Harness};
use spotsweep_simulation::nouns;
use spotsweep_tests::course::Unpublished;
use spotsweep_tests::local::Table;
use spotsweep_world::Timings;
use spotsweep_world::{AttemptKey, Effect};

use super::agent::Agent;
use super::patience::Patience;
use super::tally::{Cause, Tally};

const ZONES: [&str; 2] = ["us-east-1a", "us-east-1b"];

/// From an event to its function (EventBridge: "typically half a second").
const DELIVERY: Duration = Duration::from_secs(1);

/// Lambda's retries of an asynchronous invocation (fact 34).
const RETRIES: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(120)];

/// The schedule of infra/control-plane.yaml.
const RECONCILE: Duration = Duration::from_secs(300);

/// EC2's notice before it takes an instance.
const NOTICE: Duration = Duration::from_secs(120);

/// How often a runner looks at the metadata service (fact 32).
const IMDS_POLL: Duration = Duration::from_secs(5);

/// One trial's container starts so long after the one's before it. They never start in step, and here one invocation
/// follows the other: what an invocation waits for at the end of a trial (8 s) must not be over for the next one.
const APART: Duration = Duration::from_secs(12);

/// Happenings of one run: a bound, not a tuning.
const MOST_HAPPENINGS: usize = 10_000_000;

/// The sweep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// How many; up to the burst of EC2's buckets (50 attachments, fact 23) none is throttled.
    pub(crate) trials: u32,
    /// Training of each.
    pub(crate) training: Duration,
    /// Interruptions of each.
    pub(crate) interruptions: u32,
    /// Between two lines of figures.
    pub(crate) line: Duration,
}

/// What happens at some time.
enum Happening {
    /// An event reaches its function, for the first time or again.
    Deliver { event: Value, tries: usize },
    /// An attempt does its step with this number.
    Step(AttemptKey, u64),
    /// A runner sees the notice.
    Warned(AttemptKey),
    /// A zone is taken, another one opens.
    Strike(u32),
    /// The schedule fires.
    Tick,
}

/// One run.
pub(crate) struct Stage {
    pub(crate) plan: Plan,
    pub(super) harness: Harness,
    /// The sweep.
    pub(crate) sweep: SweepId,
    pub(super) tally: Tally,
    /// By trial: training that is safe.
    pub(crate) saved: Vec<Duration>,
    agents: BTreeMap<AttemptKey, Agent>,
    table: Table,
    store: Unpublished,
    happenings: BTreeMap<(Timestamp, u64), Happening>,
    sequence: u64,
    struck: bool,
}

impl Stage {
    /// The file is dropped.
    pub(crate) async fn new(plan: Plan) -> Self {
        let harness = Harness::with(
            1,
            &Account {
                timings: Timings::realistic(),
                zones: ZONES.map(String::from).into(),
                instance_type: "p3.2xlarge",
                // Those under notice still count.
                max_vcpus: plan.trials * 8 * 2,
                workspace_gib: spotsweep_control_plane::settings::WORKSPACE_GIB,
                ..Account::default()
            },
        );
        let dropped = harness.put("cost.yaml", &file(plan.trials));
        let Ok(Event::SweepUploaded(upload)) = event::parse(dropped.clone()) else {
            unreachable!("an upload's event: {dropped}");
        };
        let table = Table::serve().await;
        let store = Unpublished(DynamoStore::new(&table.config(), "table".to_owned(), RETENTION_DAYS));
        let saved = vec![Duration::ZERO; plan.trials as usize];
        let mut stage = Self {
            plan,
            harness,
            sweep: upload.sweep(),
            tally: Tally::default(),
            saved,
            agents: BTreeMap::new(),
            table,
            store,
            happenings: BTreeMap::new(),
            sequence: 0,
            struck: false,
        };
        stage.set_up();
        stage.send(&dropped);
        stage.at(RECONCILE, Happening::Tick);
        stage
    }

    fn set_up(&mut self) {
        // An instance for each trial.
        let needs = json!([{ "type": "VCPU", "value": "8" }, { "type": "MEMORY", "value": "49152" },
            { "type": "GPU", "value": "1" }]);
        let container = json!({ "image": "train:1", "command": ["train"], "resourceRequirements": needs });
        let definition = json!({ "jobDefinitionName": "train", "type": "container", "containerProperties": container });
        let definition = serde_json::from_value(definition).expect("a definition");
        let now = self.harness.now;
        let mut world = self.harness.cloud.world();
        world.register_job_definition(definition).expect("Batch takes the definition");
        world.set_zone_capacity(ZONES[1], Some(0), now);
    }

    /// Runs until something holds.
    pub(crate) async fn run_until(&mut self, holds: impl Fn(&Self) -> bool) {
        for _ in 0..MOST_HAPPENINGS {
            self.take_effects().await;
            if holds(self) {
                return;
            }
            self.go_on().await;
        }
        unreachable!("more happenings than a run may have");
    }

    /// Whether everything is over and nothing is left.
    pub(crate) fn is_over(&self) -> bool {
        let is_done = self.saved.iter().all(|saved| *saved >= self.plan.training);
        let is_settled = || self.harness.cloud.get(&format!("{}summary.json", self.sweep.results_prefix())).is_some();
        // Nothing is left but the schedule.
        is_done && self.agents.is_empty() && self.happenings.len() == 1 && is_settled()
    }

    /// Whether every trial trains.
    pub(crate) fn all_train(&self) -> bool {
        self.agents.len() == self.saved.len() && self.agents.values().all(Agent::trains)
    }

    /// Reads the table.
    pub(crate) fn reader(&self) -> Reader {
        Reader::new(&self.table.config(), "table".to_owned())
    }

    /// What was counted.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    async fn go_on(&mut self) {
        let due = self.harness.cloud.world().next_due();
        let first = self.happenings.keys().next().map(|(at, _)| *at);
        let next = due.into_iter().chain(first).min().expect("the schedule goes on for ever");
        self.harness.now = self.harness.now.max(next);
        self.harness.cloud.world().advance(self.harness.now);
        self.take_effects().await;
        while let Some(entry) = self.happenings.first_entry().filter(|entry| entry.key().0 <= self.harness.now) {
            let happening = entry.remove();
            self.happen(happening).await;
            // What it has killed must not take another step.
            self.take_effects().await;
        }
    }

    async fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Deliver { event, tries } => {
                if self.invoke(&event).await.is_none()
                    && let Some(wait) = RETRIES.get(tries)
                {
                    self.at(*wait, Happening::Deliver { event, tries: tries + 1 });
                }
            }
            Happening::Step(key, number) => self.step(&key, number).await,
            Happening::Warned(key) => self.warned(&key).await,
            Happening::Strike(number) => self.strike(number),
            Happening::Tick => {
                let tick = self.harness.reconcile();
                self.at(Duration::ZERO, Happening::Deliver { event: tick, tries: 0 });
                self.at(RECONCILE, Happening::Tick);
            }
        }
        for event in self.harness.announced() {
            self.send(&event);
        }
    }

    fn strike(&mut self, number: u32) {
        let now = self.harness.now;
        let (taken, opened) = (ZONES[number as usize % 2], ZONES[(number as usize + 1) % 2]);
        let mut world = self.harness.cloud.world();
        world.set_zone_capacity(opened, None, now);
        world.reclaim_zone(taken, Some(NOTICE), now).expect("the zone can be taken");
    }

    async fn take_effects(&mut self) {
        let effects = self.harness.cloud.world().take_effects();
        for effect in effects {
            match effect {
                Effect::Emit(event) => self.emitted(&event),
                Effect::Start(start) => {
                    let zone = self.harness.cloud.world().instance(&start.instance).map(|found| found.zone.clone());
                    let agent = Agent::new(&start, zone.expect("a container runs on an instance"));
                    let behind = APART * agent.index;
                    self.go_on_after(agent, behind);
                }
                Effect::Kill(key) | Effect::Stop { attempt: key, .. } => drop(self.agents.remove(&key)),
            }
        }
    }

    fn emitted(&mut self, event: &Value) {
        if event["detail-type"] == "EC2 Spot Instance Interruption Warning" {
            let here = |agent: &&Agent| event["detail"]["instance-id"] == agent.instance.as_str();
            let warned: Vec<_> = self.agents.values().filter(here).map(|agent| agent.key.clone()).collect();
            warned.into_iter().for_each(|key| self.at(IMDS_POLL, Happening::Warned(key)));
        }
        if self.harness.permissions.function_of(event).is_some() {
            self.send(event);
        }
    }

    /// An attempt's next step, if it still lives and nothing has come between.
    async fn step(&mut self, key: &AttemptKey, number: u64) {
        if self.agents.get(key).is_none_or(|agent| agent.step != number) {
            return;
        }
        let Some(agent) = self.agents.remove(key) else { return };
        self.take_step(agent).await;
    }

    /// The metadata service has told the attempt that its instance goes.
    async fn warned(&mut self, key: &AttemptKey) {
        let Some(agent) = self.agents.remove(key) else { return };
        self.heed(agent).await;
    }

    /// The first training of all begins the clock of the strikes: they fall at equal distances within it.
    pub(super) fn training_begins(&mut self) {
        if !std::mem::replace(&mut self.struck, true) {
            let strikes = self.plan.interruptions;
            for number in 0..strikes {
                self.at(self.plan.training * (number + 1) / (strikes + 1), Happening::Strike(number));
            }
        }
    }

    pub(super) fn go_on_after(&mut self, mut agent: Agent, wait: Duration) {
        agent.step += 1;
        self.at(wait, Happening::Step(agent.key.clone(), agent.step));
        self.agents.insert(agent.key.clone(), agent);
    }

    /// One invocation; its reply where it answered. What must never be ends the run.
    pub(super) async fn invoke(&mut self, event: &Value) -> Option<Option<Reply>> {
        self.harness.cloud.world().advance(self.harness.now);
        let (store, now) = (&self.store, self.harness.now);
        let patience = Patience::new(&self.harness.cloud, now);
        let parsed = event::parse(event.clone()).expect("the event parses");
        let executor = self.harness.cloud.executor(&patience);
        let nouns = nouns::of(&parsed);
        let done = handle(store, &executor, nouns, self.harness.settings(), parsed, now).await;
        drop(executor);
        self.harness.now = patience.ends();
        let waited = self.harness.now.duration_since(now).as_secs_f64();
        self.tally.invoked(Cause::of(event), self.table.take(), &self.harness.calls.take(), waited);
        match done {
            Ok(report) => Some(report.reply),
            Err(error @ (HandleError::Illegal(_) | HandleError::Steps)) => unreachable!("{}", chain(&error)),
            Err(_may_be_tried_again) => None,
        }
    }

    /// Puts an event on the bus.
    fn send(&mut self, event: &Value) {
        self.at(DELIVERY, Happening::Deliver { event: event.clone(), tries: 0 });
    }

    fn at(&mut self, after: Duration, happening: Happening) {
        self.sequence += 1;
        self.happenings.insert((self.harness.now + after, self.sequence), happening);
    }
}

fn file(trials: u32) -> String {
    format!(
        "method: grid\nmetric: {{name: loss, goal: minimize}}\nparameters:\n  \
         seed: {{distribution: int_uniform, min: 1, max: {trials}}}\n"
    )
}
