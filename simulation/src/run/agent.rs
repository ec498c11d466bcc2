//! A simulated runner: it claims, mounts, trains, seals and leaves, as `spotsweep-runner` does.

mod claiming;
mod closing;
mod command;
mod data;
mod gpus;
mod notices;
mod restored;
mod stalling;
mod workspace;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::Signal;
use spotsweep_attempt::{Action, Event, Exit, INTERRUPTED, Machine, Patience, REFUSED, Terms};
use spotsweep_protocol::claim::{DataSet, Found, Reply, Request};
use spotsweep_protocol::metric::{Metric, Source};
use spotsweep_protocol::rungs::Reached;
use spotsweep_protocol::stall::StallRule;
use spotsweep_records::sweep::Sweep;
use spotsweep_seal::Sealer;
use spotsweep_world::AttemptKey;

use self::closing::Left;
use self::command::Stopping;
use self::data::Acquiring;
use self::stalling::Progress;
use super::curve;
use super::training::{STEPS, Training};
use super::watch::Seen;
use super::{Scheduled, Simulation};
use crate::container::Container;
use crate::injected_bug::InjectedBug;

/// How often a runner reads the metadata service (fact 32).
pub(super) const IMDS_POLL: Duration = Duration::from_secs(5);

/// How the runners' jobs end (`SPOTSWEEP_STOP_SECONDS`).
const TERMS: Terms = Terms { signal: Signal::TERM, grace: None, stop_after: Duration::from_secs(30), timeout: None };

/// How long a runner repeats calls that fail (`SPOTSWEEP_PATIENCE_SECONDS`).
const PATIENCE: Duration = Duration::from_secs(300);

/// The longest time for which a runner gets no answers.
const MUTE: Duration = Duration::from_secs(900);

/// The runner of one attempt.
#[derive(Debug, Clone)]
pub(super) struct Agent {
    pub(super) container: Container,
    /// The UUIDs of the GPUs that its grant names.
    gpus: Vec<String>,
    /// The data sets that its grant names.
    pub(super) data: Vec<DataSet>,
    /// What it does to get them, while it does.
    acquiring: Option<Box<Acquiring>>,
    started: Timestamp,
    sequence: u64,
    /// Whether its metadata service does not answer.
    pub(super) is_blind: bool,
    /// The state machine that decides the runner's actions.
    machine: Machine,
    /// Whether it has seen a notice.
    is_noticed: bool,
    /// When its container or its instance ends, if the runner has learned that in time.
    pub(super) ends_at: Option<Timestamp>,
    /// The time until which the runner gets no answers.
    mute_until: Option<Timestamp>,
    /// How often, and since when, it has sent the request that is not answered.
    patience: Patience,
    /// What it has to seal, unmount and report at its end.
    left: Left,
    /// The exit code if it cannot go on.
    own_code: u8,
    /// The steps at which its trial is compared with others.
    rungs: Vec<u64>,
    /// Whether it has fetched a part of the checkpoint that its trial starts from, and the step of the restored
    /// checkpoint.
    has_begun_restoring: bool,
    restored: Option<u32>,
    /// The time since which its request is not answered.
    unanswered_since: Option<Timestamp>,
    doing: Doing,
}

/// The state of a runner.
#[derive(Debug, Clone)]
enum Doing {
    Starting,
    AwaitingEnd,
    /// The runner is dead because its instance is.
    Dead,
    Claiming,
    Mounting {
        volume: String,
        found: Found,
        sealer: Box<Sealer>,
        stalls: StallRule,
    },
    Training(Box<Run>),
    Stopping(Box<Run>, Box<Stopping>),
    /// An action after the command, and when it is done.
    Closing(Action, Timestamp),
}

impl Doing {
    fn name(&self) -> String {
        match self {
            Self::Closing(action, _) => format!("{action:?}"),
            Self::Training(_) => "training".to_owned(),
            Self::Stopping(..) => "stopping".to_owned(),
            Self::Starting | Self::AwaitingEnd | Self::Dead | Self::Claiming | Self::Mounting { .. } => {
                "its beginning".to_owned()
            }
        }
    }
}

/// A running command with its sealer and its stall rule.
#[derive(Debug, Clone)]
struct Run {
    volume: String,
    sealer: Sealer,
    training: Training,
    /// When the runner seals files next.
    seal_at: Timestamp,
    /// Whether the training shows signs of progress.
    progress: Progress,
    /// The number of rungs that were reported.
    reported: usize,
}

impl Agent {
    pub(super) fn new(container: Container, now: Timestamp) -> Self {
        Self {
            container,
            gpus: Vec::new(),
            data: Vec::new(),
            acquiring: None,
            started: now,
            sequence: 0,
            is_blind: false,
            machine: Machine::new(TERMS),
            is_noticed: false,
            ends_at: None,
            mute_until: None,
            patience: Patience::new(PATIENCE),
            left: Left::default(),
            own_code: INTERRUPTED,
            rungs: Vec::new(),
            has_begun_restoring: false,
            restored: None,
            unanswered_since: None,
            doing: Doing::Starting,
        }
    }

    /// Whether its command runs.
    pub(super) fn trains(&self) -> bool {
        matches!(self.doing, Doing::Training(_))
    }

    /// Ends everything that the runner does.
    pub(super) fn stands_still(&mut self) {
        self.doing = Doing::Dead;
        self.ends_at = None;
    }

    /// The rungs that its trial has reached after `step` steps.
    fn reached(&self, step: u32) -> Vec<Reached> {
        curve::reached(&self.rungs, (self.container.trial.index, self.container.attempt), u64::from(step / STEPS))
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// The latest time at which its current activity must be over.
    fn until(&self) -> Option<Timestamp> {
        self.machine.until().map(|until| self.started + until)
    }

    /// The current activity continues at `at`, or ends earlier at its limit.
    fn next_by(&self, at: Timestamp) -> Next {
        Next::At(self.until().map_or(at, |until| until.min(at)))
    }
}

impl Simulation {
    /// The runner takes its next step if it is still alive.
    pub(super) fn step(&mut self, key: &AttemptKey) -> Result<(), String> {
        let Some(mut agent) = self.agents.remove(key) else { return Ok(()) };
        // To train and to seal needs no network.
        if !agent.trains() && self.waits_for_connection(&agent, Scheduled::Step(key.clone())) {
            agent.ends_at = None;
            self.agents.insert(key.clone(), agent);
            return Ok(());
        }
        let next = match agent.doing.clone() {
            Doing::Starting => self.begin(&mut agent)?,
            Doing::AwaitingEnd => self.await_end(&mut agent)?,
            Doing::Dead => Next::Never,
            Doing::Claiming => self.claim(&mut agent)?,
            Doing::Mounting { volume, found, .. } => match agent.acquiring.take() {
                Some(acquiring) => self.acquire(&mut agent, *acquiring)?,
                None => self.mount(&mut agent, &volume, found)?,
            },
            Doing::Training(run) => self.train(&mut agent, *run)?,
            Doing::Stopping(run, stopping) => self.stop(&mut agent, *run, *stopping)?,
            Doing::Closing(action, done_at) => self.closes(&mut agent, action, done_at)?,
        };
        self.go_on_with(key, agent, next);
        Ok(())
    }

    fn go_on_with(&mut self, key: &AttemptKey, mut agent: Agent, next: Next) {
        match next {
            Next::After(wait) => {
                self.agents.insert(key.clone(), agent);
                self.at(wait, Scheduled::Step(key.clone()));
            }
            Next::At(at) => {
                self.agents.insert(key.clone(), agent);
                let wait = Duration::try_from(at.duration_since(self.harness.now)).unwrap_or_default();
                self.at(wait, Scheduled::Step(key.clone()));
            }
            Next::Never => {
                self.agents.insert(key.clone(), agent);
            }
            Next::Exit(code) => {
                self.ends_container(key, &mut agent, code.into());
            }
        }
    }

    /// Nothing of the attempt runs any more.
    pub(super) fn has_stopped(&mut self, agent: &mut Agent) {
        self.watch.stopped(&agent.container.trial);
        self.give_up_data(agent);
    }

    /// The end of a container also unmounts its volume.
    pub(super) fn ends_container(&mut self, key: &AttemptKey, agent: &mut Agent, code: i32) {
        self.has_stopped(agent);
        let now = self.harness.now;
        let mut world = self.harness.cloud.world();
        agent.left.volume.iter().for_each(|volume| world.set_mounted(volume, false));
        world.job_exited(key, code, now);
    }

    /// Passes an event to the runner's machine and executes the action that it decides.
    fn on(&mut self, agent: &mut Agent, event: Event) -> Result<Next, String> {
        let at = Duration::try_from(self.harness.now.duration_since(agent.started)).unwrap_or_default();
        match agent.machine.on(event, at) {
            Some(action) => self.act(agent, action),
            None => Ok(Next::After(Duration::ZERO)),
        }
    }

    fn act(&mut self, agent: &mut Agent, action: Action) -> Result<Next, String> {
        self.note(agent, |_| format!("{action:?}"));
        if matches!(agent.doing, Doing::Mounting { .. }) && action != Action::Train {
            self.give_up_data(agent);
        }
        match action {
            Action::Prepare => {
                agent.doing = Doing::Claiming;
                self.claim(agent)
            }
            Action::Train => match agent.doing.clone() {
                Doing::Mounting { volume, sealer, stalls, .. } => self.start_command(agent, volume, (*sealer, stalls)),
                other => Err(format!("{}: a command starts at {other:?}", agent.container.trial)),
            },
            Action::Stop(stop) => self.begin_stop(agent, &stop),
            Action::Shorten(grace) => {
                if let Doing::Stopping(run, stopping) = &mut agent.doing {
                    stopping.shorten(run.training.has_helper(), grace, self.harness.now);
                }
                Ok(Next::After(Duration::ZERO))
            }
            Action::AwaitEnd => {
                agent.doing = Doing::AwaitingEnd;
                Ok(agent.until().map_or(Next::Never, Next::At))
            }
            Action::Exit(exit) => Ok(Next::Exit(match exit {
                Exit::Code(code) => code,
                Exit::Left(_) | Exit::Unfit(_) => INTERRUPTED,
                Exit::Refused(_) => REFUSED,
                Exit::Failed => agent.own_code,
            })),
            last => Ok(self.close(agent, last)),
        }
    }

    /// The runner cannot go on and exits with this code. The flag says whether it gives the trial back.
    fn fails(&mut self, agent: &mut Agent, (code, is_left): (u8, bool)) -> Result<Next, String> {
        agent.own_code = code;
        self.on(agent, Event::Failed { is_left })
    }

    fn await_end(&mut self, agent: &mut Agent) -> Result<Next, String> {
        match agent.until() {
            Some(until) if until <= self.harness.now => self.on(agent, Event::TimeOver),
            Some(until) => Ok(Next::At(until)),
            None => Ok(Next::Never),
        }
    }

    /// The pause before the runner repeats an unanswered request; `None` if its patience is over.
    fn again(&mut self, agent: &mut Agent) -> Option<Duration> {
        let at = Duration::try_from(self.harness.now.duration_since(agent.started)).unwrap_or_default();
        let since = *agent.unanswered_since.get_or_insert(self.harness.now);
        let is_planted = self.harness.cloud.injected_bug() == Some(InjectedBug::AskForever);
        let pause = agent.patience.failed(at).or(is_planted.then_some(Duration::from_secs(30)));
        if pause.is_some() && self.harness.now - PATIENCE > since {
            self.watch.is_wrong(
                Seen::Insistent,
                format!("{}: not answered since {since}, and asks on", agent.container.trial),
            );
        }
        pause
    }

    /// The same as `again`, for a request before the command starts.
    fn asks_again(&mut self, agent: &mut Agent) -> Result<Next, String> {
        match self.again(agent) {
            Some(pause) => Ok(Next::After(pause)),
            None => self.fails(agent, (INTERRUPTED, false)),
        }
    }

    /// The instance is to blame for the failure. If it is drained, Batch places no other attempt on it.
    fn leaves_failing(&mut self, agent: &Agent) {
        let world = self.harness.cloud.world();
        let is_drained = world.instance(&agent.container.instance).is_some_and(|instance| instance.drained);
        drop(world);
        if is_drained {
            self.watch.left_unfit(&agent.container.instance);
        }
    }

    /// The trial ends with the exit code of the training.
    fn ends_for_good(&mut self, agent: &Agent, has_trained: bool) {
        if has_trained {
            return self.trained_on(agent);
        }
        let (sweeps, _) = self.harness.store.state();
        let is_open = |sweep: &Sweep| sweep.id == agent.container.trial.sweep && sweep.stopped.is_none();
        let shows = sweeps.iter().any(is_open) && !agent.is_blind;
        self.watch.failed_for_good(&agent.container.trial, shows.then_some(&agent.container.instance));
    }

    /// The control plane knows that the attempt trains. If the attempt has no metadata service, it does not know the
    /// instance.
    fn trained_on(&mut self, agent: &Agent) {
        if !agent.is_blind {
            self.watch.trained_on(&agent.container.trial, &agent.container.instance);
        }
    }

    /// The reply, if it reaches the runner. A request whose reply is lost may still have taken effect.
    fn ask(&mut self, agent: &mut Agent, request: Request) -> Option<Reply> {
        if self.is_cut_off(&agent.container.instance) {
            return None;
        }
        let (now, request) = (self.harness.now, agent.container.request(request));
        if self.rng.occurs(self.chaos.mute) {
            agent.mute_until = Some(now + MUTE.mul_f64(self.rng.share()));
        }
        let is_mute = agent.mute_until.is_some_and(|until| now < until) && self.rng.is_bad();
        if is_mute && self.rng.choose(2) == 0 {
            return None;
        }
        self.send_strays(agent, &request);
        let reply = self.invoke(request).1?.filter(|_| !is_mute && !self.rng.occurs(self.chaos.unheard))?;
        (agent.patience, agent.unanswered_since) = (Patience::new(PATIENCE), None);
        Some(reply)
    }
}

/// When a runner takes its next step, if it does.
#[derive(Debug, Clone, Copy)]
enum Next {
    After(Duration),
    At(Timestamp),
    /// It waits until its instance is gone.
    Never,
    Exit(u8),
}

fn metrics(step: u32) -> BTreeMap<String, Metric> {
    let value = f64::from(step);
    [("accuracy".to_owned(), Metric { min: 0.0, ..Metric::of(value, Some(value), Source::Stated) })].into()
}
