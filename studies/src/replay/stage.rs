//! One policy in one window: the World, the clock, the record of the zones, and the attempts.
//!
//! A byte in this World stands for a MiB. Only rates and differences matter, and so a checkpoint of 100 GiB takes 100
//! KiB of memory. The World's rates in bytes per second are the model's in MiB per second.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spotsweep_control_plane::handle::HandleError;
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::Reply;
use spotsweep_records::sweep;
use spotsweep_records::trial::retry_rules;
use spotsweep_simulation::cloud::retry_strategy;
use spotsweep_simulation::harness::{Account, Harness, QUEUE};
use spotsweep_simulation::kernel::{Kernel, Moment};
use spotsweep_world::AttemptKey;
use spotsweep_world::trace::{Change, Trace};

mod attempt;
mod script;
mod setting;
mod tally;
mod workspace;

use super::agent::{Agent, Doing, TRIAL};
use super::ledger::{Ledger, Outcome};
use super::{Plan, Policy, Study};
use setting::timings;
pub(super) use setting::volume_gib;
use tally::outages;

/// The instance type of the recorded traces.
pub(super) const INSTANCE_TYPE: &str = "p3.2xlarge";
const INSTANCE_VCPUS: u32 = 8;

/// The time from an event to its function. EventBridge states "typically half a second", and S3's events take "seconds"
/// (fact 15).
const DELIVERY: Duration = Duration::from_secs(1);

/// The most times of one run at which something is due: a bound that no run reaches.
const MOST_TIMES: usize = 20_000_000;

/// What the run does at a later virtual time.
#[derive(Debug, Clone)]
pub(super) enum Scheduled {
    /// Takes the step of an attempt with this number.
    Step(AttemptKey, u64),
    /// A runner finds the notice.
    Warned(AttemptKey),
    /// Submits a trial's job, for the policies without a control plane.
    Submit(u32),
    /// Opens or closes a zone.
    Turn(Change),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Trial {
    /// The seconds of training that are saved.
    pub(super) saved: f64,
    pub(super) finished: Option<Timestamp>,
    /// All costs at its end, in USD.
    pub(super) finished_usd: f64,
    /// The time at which it was ended because others had passed it.
    pub(super) ended: Option<Timestamp>,
    /// The time at which its training was last interrupted, and how long it had trained by then.
    pub(super) stopped: Option<(Timestamp, f64)>,
}

pub(super) struct Stage<'a> {
    pub(super) plan: &'a Plan,
    pub(super) policy: Policy,
    pub(super) study: Option<&'a Study>,
    pub(super) harness: Harness,
    pub(super) ledger: Ledger,
    pub(super) trials: Vec<Trial>,
    pub(super) agents: BTreeMap<AttemptKey, Agent>,
    /// The volumes to delete.
    pub(super) discarded: Vec<String>,
    pub(super) trace: &'a Trace,
    pub(super) started: Timestamp,
    pub(super) kernel: Kernel<Scheduled>,
    /// The times without capacity in any zone.
    pub(super) outages: Vec<(Timestamp, Timestamp)>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        policy: Policy,
        study: Option<&'a Study>,
        trace: &'a Trace,
    ) -> Result<Self, String> {
        let workspace_gib = volume_gib(plan);
        let account = Account {
            timings: timings(plan, policy),
            zones: plan.zones.clone(),
            instance_type: INSTANCE_TYPE,
            // Instances under notice still count, and must not prevent new ones.
            max_vcpus: plan.trials * INSTANCE_VCPUS * 4,
            workspace_gib,
            ..Account::default()
        };
        let harness = Harness::with(1, &account);
        let started = harness.now;
        let mut stage = Self {
            plan,
            policy,
            study,
            harness,
            ledger: Ledger::default(),
            trials: vec![Trial::default(); plan.trials as usize],
            agents: BTreeMap::new(),
            discarded: Vec::new(),
            trace,
            started,
            kernel: Kernel::default(),
            outages: outages(plan, trace, started),
        };
        stage.set_up(workspace_gib)?;
        Ok(stage)
    }

    /// Runs until every trial is done and nothing causes costs any more, or until the record ends.
    pub(super) async fn run(mut self) -> Result<Outcome, String> {
        let end = self.started + self.trace.duration();
        for _ in 0..MOST_TIMES {
            while let Some(moment) = self.kernel.due(&self.harness) {
                self.take_place(moment).await?;
            }
            self.discard()?;
            self.ledger.note(&self.harness.cloud.world());
            if self.is_over() || self.harness.now >= end {
                if let Some(answer) = self.harness.cloud.get("sweeps/replay.yaml.rejected.json") {
                    return Err(format!("the sweep file was rejected: {}", String::from_utf8_lossy(&answer)));
                }
                return Ok(self.outcome(end));
            }
            self.advance(end);
        }
        Err("more is due than in any run".into())
    }

    fn is_over(&self) -> bool {
        let done = self.trials.iter().all(|trial| trial.finished.or(trial.ended).is_some());
        let idle = || self.harness.cloud.world().instances().all(|instance| !instance.state.is_live());
        let settled = || match self.policy {
            Policy::Spotsweep => self.harness.store.has_sweep_in(&sweep::Stage::Settled),
            Policy::SeedScript => self.discarded.is_empty(),
            Policy::S3Checkpoint | Policy::S3OnNotice | Policy::Restart | Policy::OnDemand => true,
        };
        done && settled() && idle()
    }

    /// Advances the clock to the next time at which something is due, at most to the end of the record.
    fn advance(&mut self, end: Timestamp) {
        let next = self.kernel.next_due(&self.harness).map_or(end, |next| next.min(end)).max(self.harness.now);
        let objects = self.object_gib();
        let seconds = next.duration_since(self.harness.now).as_secs_f64();
        self.ledger.hold(&self.harness.cloud.world(), seconds, objects);
        self.harness.advance(next);
    }

    /// Returns the GiB in S3: the dataset if the policy downloads it, and the newest checkpoint of each open trial.
    fn object_gib(&self) -> f64 {
        let model = &self.plan.parameters;
        let saved = self.trials.iter().filter(|trial| trial.saved > 0.0 && trial.finished.is_none()).count();
        match self.policy {
            Policy::Spotsweep | Policy::SeedScript => 0.0,
            Policy::S3Checkpoint | Policy::S3OnNotice => model.dataset_gib + saved as f64 * model.checkpoint_gib,
            Policy::Restart | Policy::OnDemand => model.dataset_gib,
        }
    }

    async fn take_place(&mut self, moment: Moment<Scheduled>) -> Result<(), String> {
        match moment {
            Moment::Emitted(event) => self.emitted(&event)?,
            Moment::Started(start) => self.start(&start)?,
            Moment::Killed(key) | Moment::Stopped(key, _) => self.killed(&key),
            Moment::Deliver(delivery) => {
                if self.invoke(&delivery.event).await?.is_none() {
                    // An event that Lambda gives up is lost here.
                    let _ = self.kernel.retry(self.harness.now, delivery);
                }
            }
            Moment::Own(Scheduled::Step(key, number)) => self.step(&key, number).await?,
            Moment::Own(Scheduled::Warned(key)) => self.warned(&key).await?,
            Moment::Own(Scheduled::Submit(trial)) => self.submit(trial)?,
            Moment::Own(Scheduled::Turn(turn)) => self.turn(&turn)?,
        }
        for event in self.harness.announced() {
            self.send(&event);
        }
        Ok(())
    }

    fn turn(&mut self, turn: &Change) -> Result<(), String> {
        let now = self.harness.now;
        let mut world = self.harness.cloud.world();
        if turn.available {
            world.set_zone_capacity(&turn.zone, None, now);
            return Ok(());
        }
        let notice = Duration::from_secs_f64(self.plan.parameters.notice_seconds);
        world.reclaim_zone(&turn.zone, Some(notice), now).map(|_| ()).map_err(|error| error.to_string())
    }

    fn emitted(&mut self, event: &Value) -> Result<(), String> {
        let detail = &event["detail"];
        if event["detail-type"] == "EC2 Spot Instance Interruption Warning" {
            let here = |agent: &&Agent| detail["instance-id"] == agent.instance.as_str();
            let warned: Vec<Agent> = self.agents.values().filter(here).cloned().collect();
            for agent in warned {
                self.at(agent.next_poll(self.harness.now), Scheduled::Warned(agent.key));
            }
        }
        if self.policy == Policy::Spotsweep {
            self.send(event);
        } else if event["source"] == "aws.batch" && detail["status"] == "FAILED" {
            // Batch tries at most ten times. Then the owner of the trial submits it again.
            let name = detail["jobName"].as_str().unwrap_or_default();
            let trial = name.strip_prefix("trial-").and_then(|number| number.parse().ok());
            self.at(Duration::ZERO, Scheduled::Submit(trial.ok_or_else(|| format!("{name} is no trial"))?));
        }
        Ok(())
    }

    pub(super) fn send(&mut self, event: &Value) {
        self.kernel.deliver(self.harness.now + DELIVERY, event.clone());
    }

    fn submit(&mut self, trial: u32) -> Result<(), String> {
        let request = json!({
            "jobName": format!("trial-{trial}"), "jobQueue": QUEUE, "jobDefinition": "train",
            "containerOverrides": { "environment": [{ "name": TRIAL, "value": trial.to_string() }] },
            "retryStrategy": retry_strategy(10, &retry_rules()),
        });
        let request = serde_json::from_value(request).map_err(|error| error.to_string())?;
        self.ledger.called(1);
        let answer = self.harness.cloud.world().submit_job(request);
        match answer {
            Err(error) if error.status == 429 => self.at(Duration::from_secs(1), Scheduled::Submit(trial)),
            Err(error) => return Err(error.to_string()),
            Ok(_) => {}
        }
        Ok(())
    }

    /// Runs one invocation, and returns the reply if it succeeds. An error that must never occur ends the run.
    pub(super) async fn invoke(&mut self, event: &Value) -> Result<Option<Option<Reply>>, String> {
        let report = self.harness.deliver(event).await;
        self.ledger.invoked(&self.harness.calls.take());
        self.note_ended();
        match report {
            Ok(report) => Ok(Some(report.reply)),
            Err(error @ (HandleError::Illegal(_) | HandleError::Steps)) => Err(chain(&error)),
            Err(_may_be_tried_again) => Ok(None),
        }
    }

    fn killed(&mut self, key: &AttemptKey) {
        let Some(agent) = self.agents.remove(key) else { return };
        if !matches!(agent.doing, Doing::Leaving { .. }) {
            self.interrupted(agent.trial, agent.progress(self.harness.now));
        }
    }

    /// Returns the seconds of training of one trial.
    pub(super) fn total_seconds(&self) -> f64 {
        self.plan.hours * 3600.0
    }

    pub(super) fn at(&mut self, after: Duration, scheduled: Scheduled) {
        self.kernel.at(self.harness.now + after, scheduled);
    }
}
