//! A runner and its workspace: it mounts and judges it at the start, seals it, and unmounts it at the end.

use std::path::Path;
use std::time::Duration;

use spotsweep_attempt::{Event, REFUSED, mounted};
use spotsweep_protocol::claim::{Found, Prefix, Request};
use spotsweep_protocol::stall::StallRule;
use spotsweep_seal::disk::Disk;
use spotsweep_seal::{AtEnd, QUIET, Sealer};
use spotsweep_world::ebs::{FileSystem, View};

use super::stalling::Progress;
use super::{Agent, Doing, Next, Run};
use crate::injected_bug::InjectedBug;
use crate::run::Habits;
use crate::run::Simulation;
use crate::run::disk::SimulatedDisk;
use crate::run::training::load::{self, Start};
use crate::run::training::{Training, nanoseconds};
use crate::run::watch::Seen;

/// How often a runner seals files (`SPOTSWEEP_SEAL_SECONDS`).
pub(super) const SEAL_EVERY: Duration = Duration::from_secs(30);

/// How soon the runner seals the first checkpoint. The real runner looks for it every second.
pub(super) const SEAL_FIRST: Duration = Duration::from_secs(1);

/// The mount point of a volume. It is empty because the simulated files have no prefix.
pub(super) const POINT: &str = "";

impl Simulation {
    /// Works on the files of a volume as this attempt sees them. Returns an error if the volume is not there.
    pub(super) fn with_files<T>(
        &self,
        agent: &Agent,
        volume: &str,
        work: impl FnOnce(&mut FileSystem) -> T,
    ) -> Result<T, String> {
        let mut world = self.harness.cloud.world();
        let files = world.file_system(volume, &agent.container.instance);
        files
            .map(work)
            .map_err(|error| format!("the workspace left under attempt {}: {error}", agent.container.attempt))
    }

    /// The same as `with_files`, through the seal's view of the files.
    pub(super) fn with_disk<T>(
        &self,
        agent: &Agent,
        volume: &str,
        work: impl FnOnce(&dyn Disk) -> T,
    ) -> Result<T, String> {
        let (now, bug) = (nanoseconds(self.harness.now), self.harness.cloud.injected_bug());
        self.with_files(agent, volume, |files| work(&SimulatedDisk::new(files, now, bug)))
    }

    /// The volume that the runner finds on the disk with the granted volume's serial number. The runner follows no
    /// link.
    fn found(&self, agent: &Agent, granted: String) -> String {
        let world = self.harness.cloud.world();
        let linked = world.behind_link(&agent.container.instance, &granted).map(str::to_owned);
        let follows = self.harness.cloud.injected_bug() == Some(InjectedBug::TrustLink);
        linked.filter(|_| follows).unwrap_or(granted)
    }

    /// The attempt takes its workspace and judges its files.
    pub(super) fn take(
        &mut self,
        agent: &mut Agent,
        granted: String,
        (stalls, restores): (StallRule, Option<Prefix>),
    ) -> Result<Next, String> {
        let volume = self.found(agent, granted);
        if let Some(found) = self.harness.cloud.world().volume(&volume) {
            self.watch.takes(&agent.container.trial, found);
        }
        if let Some(from) = &restores
            && let Some(next) = self.restore(agent, &volume, from)?
        {
            return Ok(next);
        }
        let before = self.with_files(agent, &volume, |files| files.seen().clone());
        let attempt = agent.container.attempt;
        let resumed =
            self.with_disk(agent, &volume, |disk| Sealer::resume(disk, Path::new(POINT), attempt, true, |_| ()));
        let (Ok(before), Ok(resumed)) = (before, resumed) else {
            let what = format!("attempt {attempt} takes what it does not have");
            self.watch.is_wrong(Seen::Versioned, what);
            return self.fails(agent, (REFUSED, false));
        };
        let (sealer, found) = resumed.map_err(|error| format!("the workspace cannot be judged: {error}"))?;
        self.harness.cloud.world().set_mounted(&volume, true);
        agent.left.volume = Some(volume.clone());
        let after = self.with_files(agent, &volume, |files| files.seen().clone())?;
        let shown = |habits: &Habits| listing(habits, agent.container.trial.index, &before);
        self.note(agent, |habits| format!("mounts {volume} with {}: {found:?}", shown(habits)));
        self.watch.mounted(&agent.container.trial, &agent.container.key.job, attempt);
        self.watch.put_aside(&self.chaos.habits, &agent.container.trial, &before, &after);
        agent.doing = Doing::Mounting { volume, found, sealer: Box::new(sealer), stalls };
        Ok(Next::After(Duration::ZERO))
    }

    /// Reports what was found, and starts the command if the control plane accepts that.
    pub(super) fn mount(&mut self, agent: &mut Agent, volume: &str, found: Found) -> Result<Next, String> {
        let seconds = self.harness.now.duration_since(agent.started).as_secs_f64();
        self.watch.verify(&agent.container.trial, volume);
        match self.ask(agent, Request::Mounted { volume: volume.to_owned(), found, seconds }).map(mounted) {
            None => self.asks_again(agent),
            Some(Ok(())) => self.acquire_data(agent),
            Some(Err(denied)) => self.denied(agent, denied),
        }
    }

    /// Runs the setup. The command starts after it.
    pub(super) fn set_up(&mut self, agent: &mut Agent) -> Result<Next, String> {
        let fails = self.chaos.fails_in_setup && self.chaos.fails == Some(agent.container.trial.index);
        self.on(agent, if fails { Event::SetupFailed { code: 1 } } else { Event::Prepared { has_workspace: true } })
    }

    pub(super) fn start_command(
        &mut self,
        agent: &mut Agent,
        volume: String,
        (mut sealer, stalls): (Sealer, StallRule),
    ) -> Result<Next, String> {
        let (index, habits, now) = (agent.container.trial.index, self.chaos.habits, self.harness.now);
        let seconds = now.duration_since(agent.started).as_secs_f64();
        self.use_gpus(agent);
        self.begin_reading(agent);
        let begun = self.with_disk(agent, &volume, |disk| sealer.begin(disk))?;
        begun.map_err(|error| format!("not begun: {error}"))?;
        if self.fails_at_once(agent) {
            return self.fails_to_start(agent, sealer, "the training fails at once");
        }
        let start = self.with_files(agent, &volume, |files| load::start(&habits, index, files.seen()))?;
        self.note(agent, |_| format!("starts: {start:?}"));
        if let Some(step) = agent.restored.take() {
            self.watch.at_least(&agent.container.trial, step);
        }
        let step = match start {
            Start::Fresh => 0,
            Start::From(loaded) => {
                self.watch.loaded(&agent.container.trial, loaded);
                loaded.step
            }
            Start::Fails(error) => return self.fails_to_start(agent, sealer, &error),
        };
        self.watch.trains(&agent.container.trial, agent.container.attempt);
        self.watch.resumed(&agent.container.trial, agent.container.attempt, &agent.container.zone, step, seconds);
        let mut training = Training::start(habits, index, step, self.epochs, self.epoch, now);
        if self.rng.occurs(self.chaos.hangs) {
            training.hang();
        }
        let progress = Progress::new(stalls, now);
        let run = Run { volume, sealer, training, seal_at: now + SEAL_EVERY, progress, reported: 0 };
        agent.doing = Doing::Training(Box::new(run));
        Ok(Next::After(Duration::ZERO))
    }

    /// The command has failed before its first step.
    fn fails_to_start(&mut self, agent: &mut Agent, sealer: Sealer, error: &str) -> Result<Next, String> {
        (agent.left.code, agent.left.sealer) = (1, Some(sealer));
        error.clone_into(&mut agent.left.error);
        self.on(agent, Event::CommandEnded { code: 1, is_finished: false, is_by_itself: true })
    }

    /// Seals the files that have not changed recently, and returns whether there is a new seal.
    pub(super) fn seal(&mut self, agent: &Agent, run: &mut Run) -> Result<bool, String> {
        let now_ns = nanoseconds(self.harness.now);
        let open = run.training.open_files();
        let as_last = self.harness.cloud.injected_bug() == Some(InjectedBug::SealAsLast);
        let sealer = &mut run.sealer;
        let quiet = if sealer.summary().is_none() { SEAL_FIRST } else { QUIET };
        let sealed = self.with_disk(agent, &run.volume, |disk| {
            let is_new = sealer.seal_resting(disk, quiet, now_ns, &|| open.clone())?;
            if as_last {
                sealer.finish(disk, &AtEnd::new(open.clone(), now_ns, false), &|| true).map(|()| true)
            } else {
                Ok(is_new)
            }
        })?;
        let is_new = sealed.map_err(|error: std::io::Error| format!("not sealed: {error}"))?;
        if is_new {
            self.note(agent, |_| format!("seals {:?}, {:?} open", run.sealer.summary(), run.training.open_files()));
            let views = |files: &mut FileSystem| (files.written().clone(), files.seen().clone());
            let (written, seen) = self.with_files(agent, &run.volume, views)?;
            self.watch.sealed_running(&self.chaos.habits, &agent.container.trial, &written, &seen);
        }
        Ok(is_new)
    }

    /// Notes a killed attempt, and logs the files that are certain to be on its volume.
    pub(in crate::run) fn note_kill(&mut self, agent: &Agent) {
        if self.chaos.habits.may_mix() {
            self.watch.cut_off(&agent.container.trial);
        }
        let files = match &agent.doing {
            Doing::Training(run) | Doing::Stopping(run, _) => self.harness.cloud.world().files_of_volume(&run.volume),
            _other => Default::default(),
        };
        let shown = |habits: &Habits| listing(habits, agent.container.trial.index, files.written());
        self.note(agent, |habits| format!("is killed; written out: {}", shown(habits)));
    }
}

/// The files of a volume with their sizes and steps, for the log.
fn listing(habits: &Habits, trial: u32, view: &View) -> String {
    let shown = view.files.iter().filter(|(path, _)| !path.ends_with("seal.json")).map(|(path, file)| {
        let hole = if file.has_hole { " with holes" } else { "" };
        let step = match load::content_of(habits, trial, path, file) {
            Some(loaded) if loaded.is_intact => format!(" of step {}", loaded.step),
            Some(loaded) => format!(" of step {}, mixed", loaded.step),
            None => String::new(),
        };
        format!("{path} {}{hole}{step}", file.bytes.len())
    });
    shown.collect::<Vec<_>>().join("; ")
}
