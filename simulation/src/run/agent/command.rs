//! A runner and the command that it runs: sealed now and then, stopped on a notice.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::Signal;
use spotsweep_attempt::{Cause, Conclusion, Decision, Id, Look, Process, Then, conclusion};
use spotsweep_protocol::claim::{Reply, Request};
use spotsweep_seal::{CHECKPOINTS, CheckpointWatch};
use spotsweep_world::ebs::FileSystem;

use super::workspace::{SEAL_EVERY, SEAL_FIRST};
use super::{Agent, Doing, Next, PATIENCE, PAUSE, REFUSED, Run};
use crate::injected_bug::InjectedBug;
use crate::run::Simulation;
use crate::run::disk::SimulatedDisk;
use crate::run::training::processes::ROOT;
use crate::run::training::{Training, nanoseconds};

/// From the stop signal until a command that runs on is killed: the notice without what the runner sets aside to close.
const GRACE: Duration = Duration::from_secs(108);

/// How soon the runner looks again for a checkpoint that is complete. Really it looks ten times a second.
const LOOK: Duration = Duration::from_secs(3);

/// The exit code of a command that is killed.
const KILLED: i32 = 137;

/// A stop that is under way.
#[derive(Debug, Clone)]
pub(super) struct Stopping {
    since: Timestamp,
    decisions: spotsweep_attempt::Stopping,
    watch: CheckpointWatch,
    /// The step that the training saves at the signal, where the grace suffices.
    saves: Option<u32>,
}

impl Stopping {
    fn new(training: &Training, watch: CheckpointWatch, now: Timestamp) -> Self {
        // A helper gets the signal after half of the grace at the latest.
        let grace = if training.has_helper() { GRACE / 2 } else { GRACE };
        let saves = training.saves_at_signal(now).filter(|(_, at)| *at < now + grace).map(|(step, _)| step);
        let decisions = spotsweep_attempt::Stopping::new(ROOT, Signal::TERM, GRACE);
        Self { since: now, decisions, watch, saves }
    }

    /// Has the training's processes get the signals that the runner sends, and says what comes then. The runner looks ten
    /// times a second: what ends by a signal at once has ended at the next look.
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

/// The processes that get the signal with a defect planted.
fn misled(bug: Option<InjectedBug>, processes: &[Process]) -> Option<Vec<Id>> {
    let is_wanted = |process: &&Process| match bug {
        Some(InjectedBug::SignalFirst) => process.id.pid == ROOT,
        _ => true,
    };
    let is_planted = matches!(bug, Some(InjectedBug::SignalFirst | InjectedBug::SignalAll));
    is_planted.then(|| processes.iter().filter(is_wanted).map(|process| process.id).collect())
}

/// Since when the training has shown no sign of life, where the runner ends it for that.
fn stalled_since(run: &Run) -> Option<Timestamp> {
    run.training.hangs_since().filter(|_| run.stalls.end_seconds.is_some())
}

/// How long a training may show no sign of life.
fn limit(run: &Run) -> Duration {
    Duration::from_secs(run.stalls.end_seconds.unwrap_or(u32::MAX).into())
}

impl Simulation {
    pub(super) fn train(&mut self, agent: &mut Agent, mut run: Run) -> Result<Next, String> {
        let now = self.harness.now;
        let before = run.training.step;
        self.with_files(agent, &run.volume, |files| run.training.advance(files, now))?;
        if run.training.step > before && run.sealer.summary().is_none() {
            run.seal_at = run.seal_at.min(now + SEAL_FIRST);
        }
        if let Some(code) = run.training.ended() {
            return self.ended(agent, run, code);
        }
        if let Some(since) = stalled_since(&run).filter(|since| *since + limit(&run) <= now) {
            return self.stalls(agent, run, since);
        }
        let rungs = agent.reached(run.training.step);
        let has_new_rung = rungs.len() > run.reported;
        if self.seal_when_due(agent, &mut run)? || has_new_rung {
            self.watch.trains(&agent.trial, agent.attempt);
            run.reported = rungs.len();
            let (sequence, metrics) = (agent.next_sequence(), super::metrics(run.training.step));
            let seal = run.sealer.summary();
            // A lost report is made up for by the next one.
            let request = Request::Report { sequence, metrics, seal, stalled_seconds: None, rungs };
            match self.ask(agent, request) {
                Some(Reply::Refused { .. }) => return Ok(Next::Exit(REFUSED)),
                Some(Reply::Stop { .. }) => {
                    self.watch.has_stop(&agent.trial);
                    if self.harness.cloud.injected_bug() != Some(InjectedBug::TrainOn) {
                        return Ok(self.stopped_early(agent, &run));
                    }
                }
                Some(_) => self.trained_on(agent),
                None => {}
            }
        }
        let stalled = stalled_since(&run).map(|since| since + limit(&run));
        let next = [run.training.next_at(), stalled].into_iter().flatten().fold(run.seal_at, Timestamp::min);
        agent.doing = Doing::Training(Box::new(run));
        Ok(Next::At(next))
    }

    /// The trial is stopped early: the command ends, and what there is gets uploaded.
    fn stopped_early(&mut self, agent: &mut Agent, run: &Run) -> Next {
        self.harness.cloud.world().set_mounted(&run.volume, false);
        agent.doing = Doing::Ending { step: run.training.step, exit_code: 0 };
        Next::After(Duration::from_secs(5))
    }

    /// Seals every now and then; whether there is a new seal.
    fn seal_when_due(&mut self, agent: &Agent, run: &mut Run) -> Result<bool, String> {
        if run.seal_at > self.harness.now {
            return Ok(false);
        }
        run.seal_at = self.harness.now + SEAL_EVERY;
        self.seal(agent, run)
    }

    /// The command has ended by itself, unasked.
    fn ended(&mut self, agent: &mut Agent, run: Run, exit_code: i32) -> Result<Next, String> {
        let exit_code = if self.chaos.fails == Some(agent.trial.index) { exit_code.max(1) } else { exit_code };
        if exit_code != 0 {
            return self.failed(agent, &run.volume, run.sealer, (exit_code, "the training fails at its end"));
        }
        self.collect(agent, &run.volume)?;
        self.harness.cloud.world().set_mounted(&run.volume, false);
        self.watch.finished(&agent.trial, run.training.step);
        agent.doing = Doing::Ending { step: run.training.step, exit_code };
        Ok(Next::After(Duration::from_secs(1)))
    }

    /// The training has shown no sign of life for too long: the runner reports that first, and then ends the attempt.
    fn stalls(&mut self, agent: &mut Agent, run: Run, since: Timestamp) -> Result<Next, String> {
        let silent = Duration::try_from(self.harness.now.duration_since(since)).unwrap_or_default();
        let (sequence, metrics) = (agent.next_sequence(), super::metrics(run.training.step));
        let (seal, stalled_seconds) = (run.sealer.summary(), Some(silent.as_secs()));
        let rungs = agent.reached(run.training.step);
        match self.ask(agent, Request::Report { sequence, metrics, seal, stalled_seconds, rungs }) {
            None if silent < limit(&run) + PATIENCE => {
                agent.doing = Doing::Training(Box::new(run));
                return Ok(Next::After(PAUSE));
            }
            Some(Reply::Refused { .. }) => return Ok(Next::Exit(REFUSED)),
            Some(_) | None => {}
        }
        agent.stalled_seconds = stalled_seconds;
        agent.doing = self.ask_to_stop(agent, run)?;
        Ok(Next::After(Duration::ZERO))
    }

    /// The runner has seen a notice.
    pub(super) fn ask_to_stop(&mut self, agent: &Agent, mut run: Run) -> Result<Doing, String> {
        let (now, bug) = (self.harness.now, self.harness.cloud.injected_bug());
        let stopping = self.with_files(agent, &run.volume, |files| {
            run.training.advance(files, now);
            let disk = SimulatedDisk::new(files, nanoseconds(now), bug);
            let watch = CheckpointWatch::new(&disk, PathBuf::from(CHECKPOINTS), Duration::ZERO);
            Stopping::new(&run.training, watch, now)
        })?;
        Ok(Doing::Stopping(Box::new(run), Box::new(stopping)))
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
            let mut look = || stopping.watch.look(&disk, &open, since, GRACE).is_some();
            (then, then == Then::KillAtCheckpoint && look())
        })?;
        let is_over = !matches!(then, Then::Wait | Then::KillAtCheckpoint);
        if is_over || is_complete {
            self.has_saved(agent, &run.training, &stopping);
            let at_last_look = before.into_iter().filter(|_| then != Then::Ended);
            let open: Vec<PathBuf> = at_last_look.chain(run.training.open_files()).collect();
            return self.conclude(agent, run, &stopping, &open);
        }
        self.seal_when_due(agent, &mut run)?;
        let look = (then == Then::KillAtCheckpoint).then(|| now + LOOK);
        let next =
            [run.training.next_at(), look, Some(stopping.since + GRACE), Some(run.seal_at)].into_iter().flatten().min();
        agent.doing = Doing::Stopping(Box::new(run), Box::new(stopping));
        Ok(next.map_or(Next::Never, Next::At))
    }

    /// The command was to stop, and has ended or is killed with these files open.
    fn conclude(&mut self, agent: &mut Agent, run: Run, stopping: &Stopping, open: &[PathBuf]) -> Result<Next, String> {
        let code = run.training.ended().unwrap_or(KILLED);
        let cause = match agent.stalled_seconds {
            Some(seconds) => Cause::Stalled { seconds, is_last: run.stalls.is_last },
            None => Cause::Interrupted("EC2 takes this instance".to_owned()),
        };
        let trusts = code == 0 && self.harness.cloud.injected_bug() == Some(InjectedBug::TrustExitCode);
        let cause = Some(cause).filter(|_| !trusts && !stopping.decisions.has_finished_by_itself(code));
        match conclusion(code, run.training.is_finished(), cause.as_ref()) {
            Conclusion::Succeed | Conclusion::ByItself => self.ended(agent, run, code),
            Conclusion::End(exit_code) => {
                self.harness.cloud.world().set_mounted(&run.volume, false);
                agent.doing = Doing::Ending { step: run.training.step, exit_code: exit_code.into() };
                Ok(Next::After(Duration::from_secs(1)))
            }
            Conclusion::Leave | Conclusion::Refuse => {
                self.close(agent, &run.volume, run.sealer, open, code != 0, None, run.training.step)
            }
        }
    }

    fn has_saved(&mut self, agent: &Agent, training: &Training, stopping: &Stopping) {
        if let Some(step) = stopping.saves.filter(|step| training.step < *step) {
            self.watch.unsaved(&agent.trial, agent.attempt, (training.step, step));
        }
    }

    /// The container is killed: until then the command has worked.
    pub(in crate::run) fn killed(&mut self, agent: &mut Agent) {
        let (Doing::Training(run) | Doing::Stopping(run, _)) = &mut agent.doing else { return };
        let now = self.harness.now;
        let mut world = self.harness.cloud.world();
        if let Some(files) = world.files_at_the_end(&run.volume, &agent.instance) {
            run.training.advance(files, now);
        }
    }
}
