//! A simulated runner: claims, mounts, trains, seals, leaves, as `spotsweep-runner` does.

mod command;
mod gpus;
mod notices;
mod restored;
mod workspace;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spotsweep_protocol::claim::{ClaimRequest, Found, Machine, Market, Outputs, Reply, Request, Rollback, Seal};
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::metric::{Metric, Source};
use spotsweep_protocol::rungs::Reached;
use spotsweep_protocol::secret::{Secret, TOKEN_VARIABLE};
use spotsweep_protocol::stall::StallRule;
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::INTERRUPTED_EXIT_CODE;
use spotsweep_records::workspace::TrialRef;
use spotsweep_seal::Sealer;
use spotsweep_world::{AttemptKey, Defect, Start};

use self::command::Stopping;
use super::curve;
use super::training::{STEPS, Training};
use super::{Happening, Simulation};
use crate::injected_bug::InjectedBug;

/// How often a runner looks at the metadata service (fact 32).
pub(super) const IMDS_POLL: Duration = Duration::from_secs(5);

/// How long a runner waits after a call that failed.
const PAUSE: Duration = Duration::from_secs(2);

/// How long a runner asks again after calls that failed (`SPOTSWEEP_PATIENCE_SECONDS`).
const PATIENCE: Duration = Duration::from_secs(300);

/// The runner's exit code where the trial is not its own.
const REFUSED: i32 = 77;

/// One attempt.
#[derive(Debug, Clone)]
pub(super) struct Agent {
    pub(super) trial: TrialRef,
    pub(super) instance: String,
    zone: String,
    job: String,
    pub(super) attempt: u32,
    /// ARN of its ECS task.
    task: String,
    /// UUIDs of the GPUs that its grant names.
    gpus: Vec<String>,
    token: Option<Secret>,
    started: Timestamp,
    sequence: u64,
    /// Whether its metadata service is silent.
    pub(super) is_blind: bool,
    /// Seconds without a sign of life, where its training was ended for that.
    stalled_seconds: Option<u64>,
    /// Where its trial is compared with others.
    rungs: Vec<u64>,
    /// Whether it has fetched a part of the checkpoint that its trial starts from, and the step of what it has restored.
    has_begun_restoring: bool,
    restored: Option<u32>,
    /// Since when its claims are not answered.
    unanswered_since: Option<Timestamp>,
    doing: Doing,
}

/// What a runner is at.
#[derive(Debug, Clone)]
enum Doing {
    Starting,
    AwaitingEnd,
    Claiming,
    Mounting { volume: String, found: Found, sealer: Box<Sealer>, stalls: StallRule },
    Training(Box<Run>),
    Stopping(Box<Run>, Box<Stopping>),
    Leaving { step: u32, seal: Option<Seal>, rollback: Option<Rollback> },
    Ending { step: u32, exit_code: i32 },
}

/// A command that runs, and what looks after it.
#[derive(Debug, Clone)]
struct Run {
    volume: String,
    sealer: Sealer,
    training: Training,
    /// When files are sealed next.
    seal_at: Timestamp,
    /// What is done where the training hangs.
    stalls: StallRule,
    /// Rungs that were reported.
    reported: usize,
}

impl Agent {
    pub(super) fn new(start: &Start, zone: String, now: Timestamp) -> Option<Self> {
        let number = |name: &str| start.number(name).unwrap_or(0);
        let sweep = SweepId::parse(start.variable("SPOTSWEEP_SWEEP")?)?;
        let index = number("SPOTSWEEP_FIRST_INDEX") + number("AWS_BATCH_JOB_ARRAY_INDEX");
        Some(Self {
            trial: TrialRef { sweep, index },
            instance: start.instance.clone(),
            zone,
            job: start.attempt.job.clone(),
            attempt: number("SPOTSWEEP_FIRST_ATTEMPT") + start.attempt.attempt,
            task: start.task.clone(),
            gpus: Vec::new(),
            token: start.variable(TOKEN_VARIABLE).and_then(|token| token.parse().ok()),
            started: now,
            sequence: 0,
            is_blind: false,
            stalled_seconds: None,
            rungs: Vec::new(),
            has_begun_restoring: false,
            restored: None,
            unanswered_since: None,
            doing: Doing::Starting,
        })
    }

    fn request(&self, request: Request) -> Value {
        let (sweep, job) = (self.trial.sweep.to_string(), self.job.clone());
        // Another one for each attempt.
        let secret = Some(Secret::of(u128::from(self.attempt).to_be_bytes()));
        let token = self.token.clone();
        json!(ClaimRequest { sweep, index: self.trial.index, job, attempt: self.attempt, token, secret, request })
    }

    /// Whether its command runs.
    pub(super) fn trains(&self) -> bool {
        matches!(self.doing, Doing::Training(_))
    }

    /// It does nothing more.
    pub(super) fn stands_still(&mut self) {
        self.doing = Doing::AwaitingEnd;
    }

    /// The rungs that its trial has reached after so many steps.
    fn reached(&self, step: u32) -> Vec<Reached> {
        curve::reached(&self.rungs, (self.trial.index, self.attempt), u64::from(step / STEPS))
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// The last request was not answered: the same comes again.
    fn repeats(&mut self) -> Next {
        self.sequence -= 1;
        Next::After(PAUSE)
    }
}

impl Simulation {
    /// The runner does its next step, if it still lives.
    pub(super) fn step(&mut self, key: &AttemptKey) -> Result<(), String> {
        let Some(agent) = self.agents.get(key).cloned() else { return Ok(()) };
        if self.waits_for_connection(&agent, Happening::Step(key.clone())) {
            return Ok(());
        }
        let Some(mut agent) = self.agents.remove(key) else { return Ok(()) };
        let next = match agent.doing.clone() {
            Doing::Starting => self.begin(&mut agent)?,
            Doing::AwaitingEnd => Next::Never,
            Doing::Claiming => self.claim(&mut agent)?,
            Doing::Mounting { volume, found, sealer, stalls } => {
                self.mount(&mut agent, volume, (found, *sealer, stalls))?
            }
            Doing::Training(run) => self.train(&mut agent, *run)?,
            Doing::Stopping(run, stopping) => self.stop(&mut agent, *run, *stopping)?,
            Doing::Leaving { step, seal, rollback } => self.leave(&mut agent, step, seal, rollback),
            Doing::Ending { step, exit_code } => self.end(&mut agent, step, exit_code),
        };
        match next {
            Next::After(wait) => {
                self.agents.insert(key.clone(), agent);
                self.at(wait, Happening::Step(key.clone()));
            }
            Next::At(at) => {
                self.agents.insert(key.clone(), agent);
                let wait = Duration::try_from(at.duration_since(self.harness.now)).unwrap_or_default();
                self.at(wait, Happening::Step(key.clone()));
            }
            Next::Never => {
                self.agents.insert(key.clone(), agent);
            }
            Next::Exit(code) => {
                self.watch.stopped(&agent.trial);
                let now = self.harness.now;
                self.harness.cloud.world().job_exited(key, code, now);
            }
        }
        Ok(())
    }

    fn claim(&mut self, agent: &mut Agent) -> Result<Next, String> {
        let machine = if agent.is_blind { Machine::default() } else { self.machine(agent) };
        let machine = Machine { defect: self.defect_seen(agent), task: self.task(agent), ..machine };
        let reply = self.ask(agent, Request::Claim(machine));
        let since = reply.is_none().then(|| *agent.unanswered_since.get_or_insert(self.harness.now));
        agent.unanswered_since = since;
        Ok(match reply {
            None if since.is_some_and(|since| self.harness.now - PATIENCE > since) => Next::Exit(INTERRUPTED_EXIT_CODE),
            None => Next::After(PAUSE),
            Some(Reply::Waiting { retry_after_ms, .. }) => match self.taken_unasked(agent) {
                Some(volume) => self.take(agent, volume, (StallRule::OFF, None))?,
                None => {
                    self.watch.waits += 1;
                    Next::After(Duration::from_millis(retry_after_ms.max(1)))
                }
            },
            Some(Reply::Unavailable { .. }) if self.is_under_notice(agent) => {
                agent.doing = Doing::AwaitingEnd;
                Next::Never
            }
            Some(Reply::Unavailable { .. })
                if agent.is_blind && self.harness.cloud.injected_bug() == Some(InjectedBug::FailWithoutPlace) =>
            {
                Next::Exit(REFUSED)
            }
            Some(Reply::Unavailable { .. }) if self.defect_seen(agent).is_some() => {
                self.watch.left_unfit(&agent.instance);
                Next::Exit(INTERRUPTED_EXIT_CODE)
            }
            Some(Reply::Unavailable { reason }) => {
                self.watch.sent_away(&agent.trial, &reason);
                Next::Exit(INTERRUPTED_EXIT_CODE)
            }
            Some(Reply::Granted(grant)) => {
                let (stalls, restores) = (grant.stalls, grant.restores);
                self.watch.granted(&agent.trial, grant.suggested.as_ref());
                agent.gpus = grant.gpus.unwrap_or_default();
                agent.rungs = grant.rungs.map(|plan| plan.steps).unwrap_or_default();
                let volume = grant.workspace.ok_or("granted without its workspace")?.volume;
                match self.ask(agent, Request::Access) {
                    None => Next::After(PAUSE),
                    Some(Reply::Access(_)) => self.take(agent, volume, (stalls, restores))?,
                    // A newer attempt has come in between.
                    Some(_refused) => Next::Exit(REFUSED),
                }
            }
            Some(Reply::Refused { .. }) => Next::Exit(REFUSED),
            Some(reply @ (Reply::Access(_) | Reply::Accepted {} | Reply::Stop { .. })) => {
                return Err(format!("{}: attempt {} is told {reply:?}", agent.trial, agent.attempt));
            }
        })
    }

    /// What the metadata service tells.
    fn machine(&self, agent: &Agent) -> Machine {
        let world = self.harness.cloud.world();
        let instance = world.instance(&agent.instance);
        Machine {
            instance: Some(agent.instance.clone()),
            zone: Some(agent.zone.clone()),
            instance_type: instance.map(|instance| instance.instance_type.clone()),
            market: instance.map(|instance| if instance.spot { Market::Spot } else { Market::OnDemand }),
            defect: None,
            task: None,
        }
    }

    /// What the runner finds wrong with its instance before it claims.
    fn defect_seen(&self, agent: &Agent) -> Option<String> {
        let looks = self.harness.cloud.injected_bug() != Some(InjectedBug::SkipInstanceCheck);
        let world = self.harness.cloud.world();
        let defect = world.instance(&agent.instance)?.defect?;
        match defect {
            Defect::Visible => looks.then(|| "0 of 1 GPU answers".to_owned()),
            Defect::Hidden => None,
        }
    }

    /// Whether a command fails at once, whatever it is: so it does on an instance with a defect.
    fn fails_at_once(&self, agent: &Agent) -> bool {
        self.harness.cloud.world().instance(&agent.instance).is_some_and(|instance| instance.defect.is_some())
    }

    /// With the defect planted: the volume of the trial, wherever it is.
    fn taken_unasked(&self, agent: &Agent) -> Option<String> {
        let is_planted = self.harness.cloud.injected_bug() == Some(InjectedBug::MountUnasked);
        let (_, trials) = is_planted.then(|| self.harness.store.state())?;
        let trial = trials.into_iter().find(|trial| trial.index == agent.trial.index)?;
        trial.workspace?.volume.id
    }

    fn leave(&mut self, agent: &mut Agent, step: u32, seal: Option<Seal>, rollback: Option<Rollback>) -> Next {
        let (sequence, metrics, stalled_seconds) = (agent.next_sequence(), metrics(step), agent.stalled_seconds);
        let rungs = agent.reached(step);
        match self.ask(agent, Request::Release { sequence, metrics, seal, rollback, stalled_seconds, rungs }) {
            None => agent.repeats(),
            Some(Reply::Stop { .. }) => {
                self.watch.has_stop(&agent.trial);
                Next::Exit(0)
            }
            Some(_) => Next::Exit(INTERRUPTED_EXIT_CODE),
        }
    }

    fn end(&mut self, agent: &mut Agent, step: u32, exit_code: i32) -> Next {
        let has_trained = exit_code == 0 || !self.fails_at_once(agent);
        let (sequence, metrics) = (agent.next_sequence(), if has_trained { metrics(step) } else { BTreeMap::new() });
        let (outputs, seconds) = (Outputs::default(), f64::from(step / STEPS) * self.epoch.as_secs_f64());
        let (error, stalled_seconds) = (None, agent.stalled_seconds);
        let rungs = agent.reached(step);
        let request = Request::End { sequence, exit_code, metrics, outputs, seconds, error, stalled_seconds, rungs };
        match self.ask(agent, request) {
            None => agent.repeats(),
            Some(Reply::Refused { .. }) => Next::Exit(REFUSED),
            Some(Reply::Waiting { retry_after_ms, .. }) => {
                agent.repeats();
                Next::After(Duration::from_millis(retry_after_ms.max(1)))
            }
            Some(Reply::Unavailable { .. }) if self.harness.cloud.injected_bug() != Some(InjectedBug::BlameTrial) => {
                self.leaves_failing(agent);
                Next::Exit(INTERRUPTED_EXIT_CODE)
            }
            Some(_) => {
                self.ends_for_good(agent, has_trained);
                Next::Exit(exit_code)
            }
        }
    }

    /// Its instance is to blame. Once drained, it takes no other attempt.
    fn leaves_failing(&mut self, agent: &Agent) {
        let world = self.harness.cloud.world();
        let is_drained = world.instance(&agent.instance).is_some_and(|instance| instance.drained);
        drop(world);
        if is_drained {
            self.watch.left_unfit(&agent.instance);
        }
    }

    /// The trial ends with the training's own code.
    fn ends_for_good(&mut self, agent: &Agent, has_trained: bool) {
        if has_trained {
            return self.trained_on(agent);
        }
        let (sweeps, _) = self.harness.store.state();
        let is_open = |sweep: &Sweep| sweep.id == agent.trial.sweep && sweep.stopped.is_none();
        let shows = sweeps.iter().any(is_open) && !agent.is_blind;
        self.watch.failed_for_good(&agent.trial, shows.then_some(&agent.instance));
    }

    /// The control plane knows that the attempt trains. Of one without its metadata service it does not know where.
    fn trained_on(&mut self, agent: &Agent) {
        if !agent.is_blind {
            self.watch.trained_on(&agent.trial, &agent.instance);
        }
    }

    fn ask(&mut self, agent: &Agent, request: Request) -> Option<Reply> {
        let request = agent.request(request);
        self.send_strays(agent, &request);
        self.invoke(request).1?
    }
}

/// What a runner does next.
enum Next {
    After(Duration),
    At(Timestamp),
    /// It waits until its instance is gone.
    Never,
    Exit(i32),
}

fn metrics(step: u32) -> BTreeMap<String, Metric> {
    let value = f64::from(step);
    [("accuracy".to_owned(), Metric { min: 0.0, ..Metric::of(value, Some(value), Source::Stated) })].into()
}
