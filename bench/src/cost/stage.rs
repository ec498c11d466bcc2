//! A sweep on the virtual clock: the real `handle` over the emulated cloud, with a table that counts its units. There
//! are no faults except the planned interruptions. All instances are in one zone. Each interruption takes that zone
//! with the two minutes' notice and opens the other one, so that every workspace moves.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use spotsweep_aws::{DynamoStore, RETENTION_DAYS, Reader};
use spotsweep_control_plane::event::{self, Event};
use spotsweep_control_plane::handle::{HandleError, handle};
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::Reply;
use spotsweep_protocol::ids::SweepId;
use spotsweep_simulation::container::Container;
use spotsweep_simulation::harness::{Account, Harness};
use spotsweep_simulation::kernel::{Kernel, Moment};
use spotsweep_simulation::nouns;
use spotsweep_tests::course::Unpublished;
use spotsweep_tests::local::Table;
use spotsweep_world::{AttemptKey, Start, Timings};

use super::agent::Agent;
use super::tally::{Cause, Tally};
use super::virtual_wait::VirtualWait;

const ZONES: [&str; 2] = ["us-east-1a", "us-east-1b"];

/// The time from an event to its function (EventBridge: "typically half a second").
const DELIVERY: Duration = Duration::from_secs(1);

/// The notice before EC2 takes an instance.
const NOTICE: Duration = Duration::from_secs(120);

/// The period in which a runner polls the metadata service (fact 32).
const IMDS_POLL: Duration = Duration::from_secs(5);

/// The time between the starts of two trials' containers, which never start together. Invocations run one after the
/// other here. So an invocation that waits at the end of a trial (8 s) must not delay the next trial's.
const APART: Duration = Duration::from_secs(12);

/// The most times of one run at which something is due: a bound that no run reaches.
const MOST_TIMES: usize = 10_000_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// The number of trials. Up to the burst of EC2's buckets (50 attachments, fact 23) nothing is throttled.
    pub(crate) trials: u32,
    /// The time that each trial trains.
    pub(crate) training: Duration,
    /// The interruptions of each trial.
    pub(crate) interruptions: u32,
    /// The time between two lines of figures.
    pub(crate) line: Duration,
}

/// What the run does at a later virtual time.
enum Scheduled {
    /// Takes the step of an attempt with this number.
    Step(AttemptKey, u64),
    /// A runner finds the notice.
    Warned(AttemptKey),
    /// EC2 takes a zone, and another one opens.
    Reclaim(u32),
}

pub(crate) struct Stage {
    pub(crate) plan: Plan,
    pub(super) harness: Harness,
    pub(crate) sweep: SweepId,
    pub(super) tally: Tally,
    /// The training of each trial that is saved.
    pub(crate) saved: Vec<Duration>,
    agents: BTreeMap<AttemptKey, Agent>,
    table: Table,
    store: Unpublished,
    kernel: Kernel<Scheduled>,
    has_scheduled_reclaims: bool,
}

impl Stage {
    pub(crate) async fn new(plan: Plan) -> Self {
        let harness = Harness::with(
            1,
            &Account {
                timings: Timings::realistic(),
                zones: ZONES.map(String::from).into(),
                instance_type: "p3.2xlarge",
                // Instances under notice still count.
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
            kernel: Kernel::default(),
            has_scheduled_reclaims: false,
        };
        stage.set_up();
        stage.send(&dropped);
        stage.kernel.start_schedule(stage.harness.now);
        stage
    }

    fn set_up(&mut self) {
        // The job needs an instance of its own.
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

    pub(crate) async fn run_until(&mut self, holds: impl Fn(&Self) -> bool) {
        for _ in 0..MOST_TIMES {
            while let Some(moment) = self.kernel.due(&self.harness) {
                self.take_place(moment).await;
            }
            if holds(self) {
                return;
            }
            let next = self.kernel.next_due(&self.harness).expect("the schedule goes on for ever");
            self.harness.advance(next);
        }
        unreachable!("more is due than in any run");
    }

    /// Whether all trials are done and only the schedule is left.
    pub(crate) fn is_over(&self) -> bool {
        let is_done = self.saved.iter().all(|saved| *saved >= self.plan.training);
        let is_settled = || self.harness.cloud.get(&format!("{}summary.json", self.sweep.results_prefix())).is_some();
        // Only the schedule is left.
        is_done && self.agents.is_empty() && self.kernel.is_idle() && is_settled()
    }

    pub(crate) fn all_train(&self) -> bool {
        self.agents.len() == self.saved.len() && self.agents.values().all(Agent::trains)
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(&self.table.config(), "table".to_owned())
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    async fn take_place(&mut self, moment: Moment<Scheduled>) {
        match moment {
            Moment::Emitted(event) => self.emitted(&event),
            Moment::Started(start) => self.started(&start),
            Moment::Killed(key) | Moment::Stopped(key, _) => drop(self.agents.remove(&key)),
            Moment::Deliver(delivery) => {
                if self.invoke(&delivery.event).await.is_none() {
                    // An event that Lambda gives up is lost here.
                    let _ = self.kernel.retry(self.harness.now, delivery);
                }
            }
            Moment::Own(Scheduled::Step(key, number)) => self.step(&key, number).await,
            Moment::Own(Scheduled::Warned(key)) => self.warned(&key).await,
            Moment::Own(Scheduled::Reclaim(number)) => self.reclaim(number),
        }
        for event in self.harness.announced() {
            self.send(&event);
        }
    }

    fn reclaim(&mut self, number: u32) {
        let now = self.harness.now;
        let (taken, opened) = (ZONES[number as usize % 2], ZONES[(number as usize + 1) % 2]);
        let mut world = self.harness.cloud.world();
        world.set_zone_capacity(opened, None, now);
        world.reclaim_zone(taken, Some(NOTICE), now).expect("the zone can be taken");
    }

    fn started(&mut self, start: &Start) {
        let container = Container::of(start, &self.harness.cloud.world());
        let agent = Agent::new(container.expect("each container belongs to a trial"));
        let behind = APART * agent.container.trial.index;
        self.go_on_after(agent, behind);
    }

    fn emitted(&mut self, event: &Value) {
        if event["detail-type"] == "EC2 Spot Instance Interruption Warning" {
            let here = |agent: &&Agent| event["detail"]["instance-id"] == agent.container.instance.as_str();
            let warned: Vec<_> = self.agents.values().filter(here).map(|agent| agent.container.key.clone()).collect();
            warned.into_iter().for_each(|key| self.at(IMDS_POLL, Scheduled::Warned(key)));
        }
        if self.harness.permissions.function_of(event).is_some() {
            self.send(event);
        }
    }

    /// Takes an attempt's next step, if it still runs and its step has not changed.
    async fn step(&mut self, key: &AttemptKey, number: u64) {
        if self.agents.get(key).is_none_or(|agent| agent.step != number) {
            return;
        }
        let Some(agent) = self.agents.remove(key) else { return };
        self.take_step(agent).await;
    }

    /// An attempt finds the interruption notice of its instance.
    async fn warned(&mut self, key: &AttemptKey) {
        let Some(agent) = self.agents.remove(key) else { return };
        self.stop_training(agent).await;
    }

    /// Schedules the reclaims at the first training of all, at equal distances within it.
    pub(super) fn training_begins(&mut self) {
        if !std::mem::replace(&mut self.has_scheduled_reclaims, true) {
            let reclaims = self.plan.interruptions;
            for number in 0..reclaims {
                self.at(self.plan.training * (number + 1) / (reclaims + 1), Scheduled::Reclaim(number));
            }
        }
    }

    pub(super) fn go_on_after(&mut self, mut agent: Agent, wait: Duration) {
        agent.step += 1;
        self.at(wait, Scheduled::Step(agent.container.key.clone(), agent.step));
        self.agents.insert(agent.container.key.clone(), agent);
    }

    /// Runs one invocation, and returns the reply if it succeeds. An error that must never occur ends the run.
    pub(super) async fn invoke(&mut self, event: &Value) -> Option<Option<Reply>> {
        self.harness.cloud.world().advance(self.harness.now);
        let (store, now) = (&self.store, self.harness.now);
        let wait = VirtualWait::new(&self.harness.cloud, now);
        let parsed = event::parse(event.clone()).expect("the event parses");
        let executor = self.harness.cloud.executor(&wait);
        let nouns = nouns::of(&parsed);
        let done = handle(store, &executor, nouns, self.harness.settings(), parsed, now).await;
        drop(executor);
        self.harness.now = wait.ends();
        let waited = self.harness.now.duration_since(now).as_secs_f64();
        self.tally.invoked(Cause::of(event), self.table.take(), &self.harness.calls.take(), waited);
        match done {
            Ok(report) => Some(report.reply),
            Err(error @ (HandleError::Illegal(_) | HandleError::Steps)) => unreachable!("{}", chain(&error)),
            Err(_may_be_tried_again) => None,
        }
    }

    fn send(&mut self, event: &Value) {
        self.kernel.deliver(self.harness.now + DELIVERY, event.clone());
    }

    fn at(&mut self, after: Duration, scheduled: Scheduled) {
        self.kernel.at(self.harness.now + after, scheduled);
    }
}

fn file(trials: u32) -> String {
    format!(
        "method: grid\nmetric: {{name: loss, goal: minimize}}\nparameters:\n  \
         seed: {{distribution: int_uniform, min: 1, max: {trials}}}\n"
    )
}
