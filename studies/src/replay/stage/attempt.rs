//! The steps of an attempt: it gets its data, trains, saves and leaves. The differences between the policies are in
//! [`super::workspace`] and [`super::script`].

use std::time::Duration;

use spotsweep_records::trial::INTERRUPTED_EXIT_CODE;
use spotsweep_world::{AttemptKey, Start};

use super::super::Policy;
use super::super::agent::{Agent, Doing, Fetch, Next};
use super::super::ledger::MIB_PER_GIB;
use super::{Scheduled, Stage};

/// The time to unmount and to report that.
const CLOSING: Duration = Duration::from_secs(1);
/// The longest part of a notice that the runner reserves to close the workspace.
const SET_ASIDE: Duration = Duration::from_secs(12);
/// The time without changes after which the runner takes a checkpoint for complete.
const QUIET: Duration = Duration::from_secs(2);

impl Stage<'_> {
    pub(super) fn start(&mut self, start: &Start) -> Result<(), String> {
        let agent = Agent::new(start, self.policy, &self.harness.cloud.world());
        let mut agent = agent.ok_or_else(|| format!("a container without its trial: {start:?}"))?;
        let downloads = matches!(agent.doing, Doing::Fetching(Fetch::Downloading { .. }));
        let wait = if downloads { self.download(&mut agent) } else { Duration::ZERO };
        self.go_on_after(agent, wait);
        Ok(())
    }

    /// Downloads the dataset to the instance's own disk, and the newest checkpoint into memory.
    fn download(&mut self, agent: &mut Agent) -> Duration {
        let model = &self.plan.parameters;
        let mut seconds = model.dataset_gib * MIB_PER_GIB / model.s3_mib.min(model.volume_mib);
        self.ledger.get(model.dataset_gib);
        let saved = self.trials[agent.trial as usize].saved;
        if saved > 0.0 {
            seconds += model.checkpoint_gib * MIB_PER_GIB / model.s3_mib;
            self.ledger.get(model.checkpoint_gib);
        }
        agent.doing = Doing::Fetching(Fetch::Downloading { from: saved });
        Duration::from_secs_f64(seconds)
    }

    fn go_on_after(&mut self, mut agent: Agent, wait: Duration) {
        agent.step += 1;
        self.at(wait, Scheduled::Step(agent.key.clone(), agent.step));
        self.agents.insert(agent.key.clone(), agent);
    }

    /// Takes an attempt's next step, if it still runs and its step has not changed.
    pub(super) async fn step(&mut self, key: &AttemptKey, number: u64) -> Result<(), String> {
        if self.agents.get(key).is_none_or(|agent| agent.step != number) {
            return Ok(());
        }
        let Some(mut agent) = self.agents.remove(key) else { return Ok(()) };
        let next = match agent.doing.clone() {
            Doing::Fetching(Fetch::Downloading { from } | Fetch::Loading { from }) => {
                self.train(&mut agent, from).await?
            }
            Doing::Fetching(Fetch::Claiming) => self.claim(&mut agent).await?,
            Doing::Fetching(Fetch::Verifying { from }) => self.verified(&mut agent, from).await?,
            Doing::Fetching(Fetch::Script(errand)) => self.run_errand(&mut agent, errand)?,
            Doing::Training { .. } => self.pause(&mut agent)?,
            Doing::Saving { progress, .. } => {
                self.keep(&mut agent, progress)?;
                self.report(&mut agent).await?;
                self.train_on(&mut agent, progress)
            }
            Doing::Leaving { progress, saved } => self.leave(&mut agent, progress, saved).await?,
            Doing::Ending { .. } => self.end(&mut agent).await?,
        };
        match next {
            Next::After(wait) => self.go_on_after(agent, wait),
            Next::Never => {
                self.agents.insert(key.clone(), agent);
            }
            Next::Exit(code) => {
                let now = self.harness.now;
                self.harness.cloud.world().job_exited(key, code, now);
            }
        }
        Ok(())
    }

    /// Starts the training, or continues it after an interruption.
    pub(super) async fn train(&mut self, agent: &mut Agent, from: f64) -> Result<Next, String> {
        self.resumed(agent.trial, from);
        let next = self.train_on(agent, from);
        let warned =
            self.harness.cloud.world().instance(&agent.instance).is_some_and(|host| host.interruption.is_some());
        if !warned {
            return Ok(next);
        }
        Ok(match self.stop_training(agent).await? {
            Next::Never => next,
            leaves @ (Next::After(_) | Next::Exit(_)) => leaves,
        })
    }

    /// Trains until the next checkpoint or the end.
    fn train_on(&mut self, agent: &mut Agent, from: f64) -> Next {
        agent.doing = Doing::Training { from, since: self.harness.now };
        let left = (self.total_seconds() - from).max(0.0);
        let work = if self.policy.saves() { left.min(self.plan.parameters.checkpoint_minutes * 60.0) } else { left };
        Next::After(Duration::from_secs_f64(work))
    }

    /// Pauses the training for a checkpoint, or ends it.
    fn pause(&mut self, agent: &mut Agent) -> Result<Next, String> {
        let now = self.harness.now;
        let progress = agent.progress(now).ok_or("a pause of what does not train")?;
        if progress + 1e-3 >= self.total_seconds() {
            agent.doing = Doing::Ending { progress };
            if let Some(volume) = &agent.volume {
                self.harness.cloud.world().set_mounted(volume, false);
            }
            return Ok(Next::After(CLOSING));
        }
        let wait = self.saving();
        agent.doing = Doing::Saving { progress, until: now + wait };
        Ok(Next::After(wait))
    }

    /// Returns how long a checkpoint takes to write.
    fn saving(&self) -> Duration {
        let model = &self.plan.parameters;
        let mib = match self.policy {
            Policy::S3Checkpoint | Policy::S3OnNotice => model.s3_mib,
            Policy::Spotsweep | Policy::SeedScript | Policy::Restart | Policy::OnDemand => model.volume_mib,
        };
        Duration::from_secs_f64(model.checkpoint_gib * MIB_PER_GIB / mib)
    }

    /// Notes a complete checkpoint.
    fn keep(&mut self, agent: &mut Agent, progress: f64) -> Result<(), String> {
        match self.policy {
            Policy::Spotsweep | Policy::SeedScript => self.keep_on_volume(agent, progress)?,
            Policy::S3Checkpoint | Policy::S3OnNotice => self.ledger.put(self.plan.parameters.checkpoint_gib),
            Policy::Restart | Policy::OnDemand => {}
        }
        self.trials[agent.trial as usize].saved = progress;
        Ok(())
    }

    /// An attempt finds the interruption notice of its instance.
    pub(super) async fn warned(&mut self, key: &AttemptKey) -> Result<(), String> {
        let Some(mut agent) = self.agents.remove(key) else { return Ok(()) };
        let trains = matches!(agent.doing, Doing::Training { .. } | Doing::Saving { .. });
        match if trains { self.stop_training(&mut agent).await? } else { Next::Never } {
            Next::After(wait) => self.go_on_after(agent, wait),
            // The attempt still waits for its next step.
            Next::Never | Next::Exit(_) => {
                self.agents.insert(key.clone(), agent);
            }
        }
        Ok(())
    }

    /// Reacts to a notice during the training, as the policy does.
    async fn stop_training(&mut self, agent: &mut Agent) -> Result<Next, String> {
        let now = self.harness.now;
        let model = &self.plan.parameters;
        let end = self.harness.cloud.world().instance(&agent.instance).and_then(|host| host.interruption);
        let left = end.map(|end| Duration::try_from(end.duration_since(now)).unwrap_or_default()).unwrap_or_default();
        let limit = match self.policy {
            Policy::Spotsweep => Duration::from_secs_f64(model.grace_seconds).min(left - SET_ASIDE.min(left / 4)),
            Policy::S3OnNotice => left,
            Policy::S3Checkpoint | Policy::SeedScript | Policy::Restart | Policy::OnDemand => return Ok(Next::Never),
        };
        let hash = Duration::from_secs_f64(model.checkpoint_gib * MIB_PER_GIB / model.hash_mib);
        let handles = self.policy == Policy::S3OnNotice || !model.no_handler;
        self.report_notice(agent).await?;
        let trained = agent.progress(now).ok_or("a notice to what does not train")?;
        let (saving, progress) = self.next_checkpoint(agent, now, trained, handles);
        let saved = saving <= limit;
        if (!saved && self.policy == Policy::S3OnNotice) || (saved && progress >= self.total_seconds()) {
            return Ok(Next::Never);
        }
        // Without a handler it trains until it is killed, and that training is lost.
        let progress = if saved || handles { progress } else { trained + limit.as_secs_f64() };
        self.interrupted(agent.trial, Some(progress));
        agent.doing = Doing::Leaving { progress, saved };
        let sealing = match self.policy {
            Policy::Spotsweep if saved => hash.min((left - saving) / 2),
            _nothing_to_seal => Duration::ZERO,
        };
        Ok(Next::After(if saved { saving } else { limit } + sealing + CLOSING))
    }

    /// Returns the time until the next checkpoint is complete, and the progress then. The training is at `trained`
    /// now, and `handles` is whether it handles the signal.
    fn next_checkpoint(&self, agent: &Agent, now: jiff::Timestamp, trained: f64, handles: bool) -> (Duration, f64) {
        let next = match &agent.doing {
            // A checkpoint that is being written when the signal arrives is finished, not started again.
            Doing::Saving { until, .. } => {
                return (Duration::try_from(until.duration_since(now)).unwrap_or_default(), trained);
            }
            Doing::Training { from, .. } if !handles => *from + self.plan.parameters.checkpoint_minutes * 60.0,
            _handles => return (self.saving(), trained),
        };
        let next = next.min(self.total_seconds());
        (Duration::from_secs_f64((next - trained).max(0.0)) + self.saving() + QUIET, next)
    }

    async fn leave(&mut self, agent: &mut Agent, progress: f64, saved: bool) -> Result<Next, String> {
        if saved {
            self.keep(agent, progress)?;
            // The request may be repeated, but the checkpoint is written once.
            agent.doing = Doing::Leaving { progress, saved: false };
        }
        match self.policy {
            Policy::Spotsweep => self.release(agent).await,
            Policy::SeedScript | Policy::S3Checkpoint | Policy::S3OnNotice | Policy::Restart | Policy::OnDemand => {
                Ok(Next::Exit(INTERRUPTED_EXIT_CODE))
            }
        }
    }

    async fn end(&mut self, agent: &mut Agent) -> Result<Next, String> {
        let next = match self.policy {
            Policy::Spotsweep => self.report_end(agent).await?,
            Policy::SeedScript => self.clean_up(agent)?,
            Policy::S3Checkpoint | Policy::S3OnNotice | Policy::Restart | Policy::OnDemand => Next::Exit(0),
        };
        if let Next::Exit(0) = next {
            self.finished(agent.trial);
        }
        Ok(next)
    }
}
