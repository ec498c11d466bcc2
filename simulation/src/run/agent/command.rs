//! The command of a runner: the runner seals its files regularly and stops it on a notice.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::Signal;
use spotsweep_attempt::{Decision, Event, Id, Look, Process, Stop, Then};
use spotsweep_protocol::claim::{Reply, Request, Seal};
use spotsweep_seal::{CHECKPOINTS, CheckpointWatch, QUIET};
use spotsweep_world::ebs::FileSystem;

use super::workspace::{SEAL_EVERY, SEAL_FIRST};
use super::{Agent, Doing, Next, Run};
use crate::injected_bug::InjectedBug;
use crate::run::Simulation;
use crate::run::disk::SimulatedDisk;
use crate::run::training::processes::ROOT;
use crate::run::training::{Training, nanoseconds};
use crate::run::watch::Seen;

/// How soon the simulated runner looks again for a complete checkpoint. The real one looks ten times a second.
const LOOK: Duration = Duration::from_secs(3);

/// The exit code of a command that is killed.
pub(super) const KILLED: i32 = 137;

/// The state of a stop in progress.
#[derive(Debug, Clone)]
pub(super) struct Stopping {
    since: Timestamp,
    grace: Duration,
    decisions: spotsweep_attempt::Stopping,
    watch: CheckpointWatch,
    /// The step that the training saves at the signal, and when that save is done, if the grace suffices.
    saves: Option<(u32, Timestamp)>,
}

impl Stopping {
    fn new(training: &Training, watch: CheckpointWatch, grace: Duration, now: Timestamp) -> Self {
        let saves = training.saves_at_signal(now);
        let decisions = spotsweep_attempt::Stopping::new(ROOT, Signal::TERM, grace);
        let mut stopping = Self { since: now, grace, decisions, watch, saves };
        stopping.leave_time(training.has_helper());
        stopping
    }

    /// Shortens the time that is left to `grace` from now.
    pub(super) fn shorten(&mut self, has_helper: bool, grace: Duration, now: Timestamp) {
        let elapsed = Duration::try_from(now.duration_since(self.since)).unwrap_or_default();
        self.grace = self.grace.min(elapsed + grace);
        self.decisions.shorten(self.grace);
        self.leave_time(has_helper);
    }

    /// A helper gets the signal after half of the grace at the latest.
    fn leave_time(&mut self, has_helper: bool) {
        let end = self.since + if has_helper { self.grace / 2 } else { self.grace };
        self.saves = self.saves.filter(|(_, at)| *at < end);
    }

    /// Delivers the signals that the runner sends to the training's processes, and returns what comes next. The runner
    /// looks ten times a second, so a process that a signal ends at once has ended at the next look.
    fn decide(
        &mut self,
        training: &mut Training,
        files: &FileSystem,
        now: Timestamp,
        bug: Option<InjectedBug>,
    ) -> Then {
        let elapsed = Duration::try_from(now.duration_since(self.since)).unwrap_or_default();
        loop {
            let (processes, has_ended) = (training.processes(), training.ended().is_some());
            let (reads, writing) = (&|_: &Process, _: &Process| false, Duration::ZERO);
            let look = Look { processes: &processes, reads, has_ended, elapsed, writing, has_workspace: true };
            let Decision { signals, then } = self.decisions.decide(&look);
            if signals.is_empty() {
                return then;
            }
            for id in misled(bug, &processes).unwrap_or(signals) {
                training.signal_process(id, files, now);
            }
        }
    }
}

/// The processes that get the signal if a bug is injected.
fn misled(bug: Option<InjectedBug>, processes: &[Process]) -> Option<Vec<Id>> {
    let is_wanted = |process: &&Process| match bug {
        Some(InjectedBug::SignalFirst) => process.id.pid == ROOT,
        _ => true,
    };
    let is_planted = matches!(bug, Some(InjectedBug::SignalFirst | InjectedBug::SignalAll));
    is_planted.then(|| processes.iter().filter(is_wanted).map(|process| process.id).collect())
}

impl Simulation {
    pub(super) fn train(&mut self, agent: &mut Agent, mut run: Run) -> Result<Next, String> {
        let now = self.harness.now;
        let before = run.training.step;
        self.check_data(agent);
        self.with_files(agent, &run.volume, |files| run.training.advance(files, now))?;
        if run.training.step > before && run.sealer.summary().is_none() {
            run.seal_at = run.seal_at.min(now + SEAL_FIRST);
        }
        if let Some(code) = run.training.ended() {
            return self.ended(agent, run, (code, true), &[]);
        }
        if let Some(next) = self.look(agent, &mut run)? {
            return Ok(next);
        }
        let rungs = agent.reached(run.training.step);
        let has_new_rung = rungs.len() > run.reported;
        if self.seal_when_due(agent, &mut run)? || has_new_rung {
            self.watch.trains(&agent.container.trial, agent.container.attempt);
            run.reported = rungs.len();
            let (seal, step) = (run.sealer.summary(), run.training.step);
            let event = self.report(agent, (step, seal));
            if let Some(event) = event {
                agent.doing = Doing::Training(Box::new(run));
                return self.on(agent, event);
            }
        }
        let look = run.progress.look_at(&run.training, now);
        let next = [run.training.next_at(), look].into_iter().flatten().fold(run.seal_at, Timestamp::min);
        agent.doing = Doing::Training(Box::new(run));
        Ok(Next::At(next))
    }

    /// Reports a step and a seal, and returns the answer as an event if it changes anything. The next report makes up
    /// for a lost one.
    fn report(&mut self, agent: &mut Agent, (step, seal): (u32, Option<Seal>)) -> Option<Event> {
        let (sequence, metrics, rungs) = (agent.next_sequence(), super::metrics(step), agent.reached(step));
        match self.ask(agent, Request::Report { sequence, metrics, seal, stalled_seconds: None, rungs })? {
            Reply::Refused { reason } => Some(Event::Fenced(reason)),
            Reply::Stop { why } => {
                self.watch.has_stop(&agent.container.trial);
                let trains_on = self.harness.cloud.injected_bug() == Some(InjectedBug::TrainOn);
                (!trains_on).then_some(Event::StoppedEarly(why))
            }
            _taken => {
                self.trained_on(agent);
                None
            }
        }
    }

    /// Seals at regular intervals, and returns whether there is a new seal.
    fn seal_when_due(&mut self, agent: &Agent, run: &mut Run) -> Result<bool, String> {
        if run.seal_at > self.harness.now {
            return Ok(false);
        }
        let is_new = self.seal(agent, run)?;
        let is_late = !is_new && run.sealer.has_unsealed();
        run.seal_at = self.harness.now + if is_late { QUIET } else { SEAL_EVERY };
        Ok(is_new)
    }

    /// The runner begins to stop the command.
    pub(super) fn begin_stop(&mut self, agent: &mut Agent, stop: &Stop) -> Result<Next, String> {
        let Doing::Training(run) = agent.doing.clone() else { return Ok(Next::After(Duration::ZERO)) };
        let (mut run, now, bug) = (*run, self.harness.now, self.harness.cloud.injected_bug());
        let volume = run.volume.clone();
        let stopping = self.with_files(agent, &volume, |files| {
            run.training.advance(files, now);
            let disk = SimulatedDisk::new(files, nanoseconds(now), bug);
            let watch = CheckpointWatch::new(&disk, PathBuf::from(CHECKPOINTS), Duration::ZERO);
            let times = if bug == Some(InjectedBug::CountGraceTwice) { 2 } else { 1 };
            Stopping::new(&run.training, watch, stop.grace * times, now)
        })?;
        if stop.sealing_first.is_some() {
            self.seal(agent, &mut run)?;
        }
        agent.doing = Doing::Stopping(Box::new(run), Box::new(stopping));
        Ok(Next::After(Duration::ZERO))
    }

    pub(super) fn stop(&mut self, agent: &mut Agent, mut run: Run, mut stopping: Stopping) -> Result<Next, String> {
        let now = self.harness.now;
        let since = Duration::try_from(now.duration_since(stopping.since)).unwrap_or_default();
        let bug = self.harness.cloud.injected_bug();
        let before = run.training.open_files();
        let (then, is_complete) = self.with_files(agent, &run.volume, |files| {
            run.training.advance(files, now);
            let then = stopping.decide(&mut run.training, files, now, bug);
            let open = run.training.open_files();
            let disk = SimulatedDisk::new(files, nanoseconds(now), bug);
            let mut look = || stopping.watch.look(&disk, &open, since, stopping.grace).is_some();
            (then, then == Then::KillAtCheckpoint && look())
        })?;
        let is_over = !matches!(then, Then::Wait | Then::KillAtCheckpoint);
        if is_over || is_complete {
            self.has_saved(agent, &run.training, &stopping);
            let at_last_look = before.into_iter().filter(|_| then != Then::Ended);
            let open: Vec<PathBuf> = at_last_look.chain(run.training.open_files()).collect();
            let code = run.training.ended().unwrap_or(KILLED);
            let trusts = code == 0 && bug == Some(InjectedBug::TrustExitCode);
            let is_by_itself = trusts || stopping.decisions.has_finished_by_itself(code);
            return self.ended(agent, run, (code, is_by_itself), &open);
        }
        let is_new = self.seal_when_due(agent, &mut run)?;
        let look = (then == Then::KillAtCheckpoint).then(|| now + LOOK);
        let end = stopping.since + stopping.grace;
        let next = [run.training.next_at(), look, Some(end), Some(run.seal_at)].into_iter().flatten().min();
        let report = is_new.then(|| (run.training.step, run.sealer.summary()));
        agent.doing = Doing::Stopping(Box::new(run), Box::new(stopping));
        match report.and_then(|report| self.report(agent, report)) {
            Some(event) => self.on(agent, event),
            None => Ok(next.map_or(Next::Never, Next::At)),
        }
    }

    /// The command has ended or is killed, with these files open.
    pub(super) fn ended(
        &mut self,
        agent: &mut Agent,
        run: Run,
        (code, is_by_itself): (i32, bool),
        open: &[PathBuf],
    ) -> Result<Next, String> {
        let has_failed = self.chaos.fails == Some(agent.container.trial.index) && run.training.is_whole();
        let code = if has_failed { code.max(1) } else { code };
        agent.left.step = run.training.step;
        "the training fails at its end".clone_into(&mut agent.left.error);
        (agent.left.open, agent.left.is_cut_off) = (open.to_vec(), !is_by_itself && code != 0);
        let is_finished = run.training.is_finished();
        (agent.left.code, agent.left.sealer) = (code, Some(run.sealer));
        self.on(agent, Event::CommandEnded { code, is_finished, is_by_itself })
    }

    fn has_saved(&mut self, agent: &Agent, training: &Training, stopping: &Stopping) {
        if let Some((step, _)) = stopping.saves.filter(|(step, _)| training.step < *step) {
            self.watch.unsaved(&agent.container.trial, agent.container.attempt, (training.step, step));
        }
    }

    /// The container is killed. The command has worked until then.
    pub(in crate::run) fn killed(&mut self, agent: &mut Agent) {
        let now = self.harness.now;
        if agent.left.volume.is_some() && agent.ends_at.is_some_and(|ends_at| ends_at <= now) {
            let what = format!(
                "{}: attempt {} is killed at {:?}",
                agent.container.trial,
                agent.container.attempt,
                agent.doing.name()
            );
            self.watch.is_wrong(Seen::Late, what);
        }
        let (Doing::Training(run) | Doing::Stopping(run, _)) = &mut agent.doing else { return };
        let mut world = self.harness.cloud.world();
        if let Some(files) = world.files_at_the_end(&run.volume, &agent.container.instance) {
            run.training.advance(files, now);
        }
    }
}
