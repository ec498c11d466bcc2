//! A runner and the command that it runs: sealed now and then, stopped on a notice.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use spotsweep_protocol::claim::{Reply, Request};
use spotsweep_seal::{CHECKPOINTS, CheckpointWatch};

use super::workspace::{SEAL_EVERY, SEAL_FIRST};
use super::{Agent, Doing, Next, PATIENCE, PAUSE, REFUSED, Run};
use crate::injected_bug::InjectedBug;
use crate::run::Simulation;
use crate::run::disk::SimulatedDisk;
use crate::run::training::nanoseconds;

/// From the stop signal until a command that runs on is killed: the notice without what the runner sets aside to close.
const GRACE: Duration = Duration::from_secs(108);

/// How soon the runner looks again for a checkpoint that is complete. Really it looks ten times a second.
const LOOK: Duration = Duration::from_secs(3);

/// The runner's exit code where a stall has ended the trial.
const STALLED: i32 = 124;

/// A stop that is under way.
#[derive(Debug, Clone)]
pub(super) struct Stopping {
    since: Timestamp,
    /// Absent where the command has got the signal.
    watch: Option<CheckpointWatch>,
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
        let watch = self.with_files(agent, &run.volume, |files| {
            run.training.advance(files, now);
            if run.training.handles_signal() {
                run.training.signal(files, now);
                return None;
            }
            let disk = SimulatedDisk::new(files, nanoseconds(now), bug);
            Some(CheckpointWatch::new(&disk, PathBuf::from(CHECKPOINTS), Duration::ZERO))
        })?;
        Ok(Doing::Stopping(Box::new(run), Stopping { since: now, watch }))
    }

    pub(super) fn stop(&mut self, agent: &mut Agent, mut run: Run, mut stopping: Stopping) -> Result<Next, String> {
        let now = self.harness.now;
        let since = Duration::try_from(now.duration_since(stopping.since)).unwrap_or_default();
        let bug = self.harness.cloud.injected_bug();
        let open = run.training.open_files();
        let complete = self.with_files(agent, &run.volume, |files| {
            run.training.advance(files, now);
            let open = run.training.open_files();
            let watch = stopping.watch.as_mut()?;
            watch.look(&SimulatedDisk::new(files, nanoseconds(now), bug), &open, since, GRACE)
        })?;
        if let Some(code) = run.training.ended() {
            let was_asked = stopping.watch.is_none();
            let trusts = bug == Some(InjectedBug::TrustExitCode);
            if code == 0 && (!was_asked || trusts) || run.training.is_finished() {
                return self.ended(agent, run, 0);
            }
            return self.close(agent, &run.volume, run.sealer, &[], code > 128, None, run.training.step);
        }
        if since >= GRACE && agent.stalled_seconds.is_some() && run.stalls.is_last {
            self.harness.cloud.world().set_mounted(&run.volume, false);
            agent.doing = Doing::Ending { step: run.training.step, exit_code: STALLED };
            return Ok(Next::After(Duration::from_secs(1)));
        }
        if since >= GRACE || complete.is_some() {
            let open: Vec<PathBuf> = open.into_iter().chain(run.training.open_files()).collect();
            return self.close(agent, &run.volume, run.sealer, &open, true, None, run.training.step);
        }
        self.seal_when_due(agent, &mut run)?;
        let look = stopping.watch.as_ref().map(|_| now + LOOK);
        let next =
            [run.training.next_at(), look, Some(stopping.since + GRACE), Some(run.seal_at)].into_iter().flatten().min();
        agent.doing = Doing::Stopping(Box::new(run), stopping);
        Ok(next.map_or(Next::Never, Next::At))
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
