//! Checkpoints on a volume, and the requests of `spotsweep-runner` to the real control plane.

use std::collections::BTreeMap;
use std::time::Duration;

use spotsweep_protocol::claim::{Found, NoticeKind, Outputs, Reply, Request, Seal};
use spotsweep_protocol::metric::{Metric, Source};
use spotsweep_protocol::rungs::Reached;
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::trial::INTERRUPTED_EXIT_CODE;
use spotsweep_simulation::container::Container;

use super::super::Policy;
use super::super::agent::{Agent, Doing, Fetch, Next};
use super::super::ledger::MIB_PER_GIB;
use super::Stage;

/// The pause of a runner after a call that failed.
const PAUSE: Duration = Duration::from_secs(2);

/// The runner's exit code if its trial does not go on.
const REFUSED: i32 = 77;

/// The folder of checkpoints. The rest of a path is the progress in milliseconds.
const CHECKPOINTS: &str = "checkpoints/";

impl Stage<'_> {
    /// Claims the trial until it is granted.
    pub(super) async fn claim(&mut self, agent: &mut Agent) -> Result<Next, String> {
        let machine = container(agent)?.place();
        Ok(match self.ask(agent, Request::Claim(machine)).await? {
            None => Next::After(PAUSE),
            Some(Reply::Waiting { retry_after_ms, .. }) => Next::After(Duration::from_millis(retry_after_ms.max(1))),
            Some(Reply::Unavailable { .. }) => Next::Exit(INTERRUPTED_EXIT_CODE),
            Some(Reply::Granted(grant)) => {
                if self.ask(agent, Request::Access).await?.is_none() {
                    return Ok(Next::After(PAUSE));
                }
                agent.volume = Some(grant.workspace.ok_or("granted without its workspace")?.volume);
                let (from, reading) = self.mount(agent)?;
                // The runner reads the newest checkpoint to compute its hash (shared/seal/src/judge.rs).
                let model = &self.plan.parameters;
                let hashing = Duration::from_secs_f64(model.checkpoint_gib * MIB_PER_GIB / model.hash_mib);
                agent.doing = Doing::Fetching(Fetch::Verifying { from });
                Next::After(if from > 0.0 { reading.max(hashing) } else { Duration::ZERO })
            }
            Some(Reply::Refused { reason: StopReason::StoppedEarly { .. } }) => Next::Exit(REFUSED),
            Some(reply @ (Reply::Refused { .. } | Reply::Access(_) | Reply::Accepted {} | Reply::Stop { .. })) => {
                return Err(format!("trial {}: {:?} got the reply {reply:?}", agent.trial, agent.key));
            }
        })
    }

    /// Continues after the checkpoints have been compared with the manifest.
    pub(super) async fn verified(&mut self, agent: &mut Agent, from: f64) -> Result<Next, String> {
        let volume = agent.volume.clone().ok_or("verified without a volume")?;
        let seconds = self.harness.now.duration_since(agent.started).as_secs_f64();
        let found = Found { newest: (from > 0.0).then(|| path(from)), ..Found::default() };
        Ok(match self.ask(agent, Request::Mounted { volume: volume.clone(), found, seconds }).await? {
            None => Next::After(PAUSE),
            Some(Reply::Accepted {}) => {
                // The verified checkpoint is still in memory, if it fits there.
                let model = &self.plan.parameters;
                let again = from > 0.0 && model.checkpoint_gib > model.memory_gib;
                let loading = if again { self.reading(&volume) } else { Duration::ZERO };
                agent.doing = Doing::Fetching(Fetch::Loading { from });
                Next::After(loading)
            }
            Some(_) => {
                self.harness.cloud.world().set_mounted(&volume, false);
                Next::Exit(INTERRUPTED_EXIT_CODE)
            }
        })
    }

    pub(super) async fn report(&mut self, agent: &mut Agent) -> Result<(), String> {
        if self.policy == Policy::Spotsweep {
            let (sequence, metrics, seal) = (agent.next_sequence(), metrics(), Some(self.seal(agent)));
            let rungs = self.rungs(agent);
            // The next report replaces a lost one.
            self.ask(agent, Request::Report { sequence, metrics, seal, stalled_seconds: None, rungs }).await?;
        }
        Ok(())
    }

    pub(super) async fn report_notice(&mut self, agent: &mut Agent) -> Result<(), String> {
        if self.policy == Policy::Spotsweep {
            self.ask(agent, Request::Notice { kind: NoticeKind::Interruption }).await?;
        }
        Ok(())
    }

    /// Unmounts the workspace and releases the trial.
    pub(super) async fn release(&mut self, agent: &mut Agent) -> Result<Next, String> {
        if let Some(volume) = &agent.volume {
            self.harness.cloud.world().set_mounted(volume, false);
        }
        let (sequence, metrics, seal) = (agent.next_sequence(), metrics(), Some(self.seal(agent)));
        let (rollback, stalled_seconds, rungs) = (None, None, self.rungs(agent));
        let request = Request::Release { sequence, metrics, seal, rollback, stalled_seconds, rungs };
        Ok(match self.ask(agent, request).await? {
            None => Next::After(PAUSE),
            Some(Reply::Stop { .. }) => Next::Exit(0),
            Some(_) => Next::Exit(INTERRUPTED_EXIT_CODE),
        })
    }

    fn rungs(&self, agent: &Agent) -> Vec<Reached> {
        let trained = agent.progress(self.harness.now).unwrap_or(0.0).max(self.trials[agent.trial as usize].saved);
        self.study.map(|study| study.reached(agent.trial, trained / self.total_seconds())).unwrap_or_default()
    }

    pub(super) async fn report_end(&mut self, agent: &mut Agent) -> Result<Next, String> {
        let (sequence, metrics, seconds) = (agent.next_sequence(), metrics(), self.total_seconds());
        let (outputs, error, stalled_seconds, rungs) = (Outputs::default(), None, None, self.rungs(agent));
        let request = Request::End { sequence, exit_code: 0, metrics, outputs, seconds, error, stalled_seconds, rungs };
        Ok(self.ask(agent, request).await?.map_or(Next::After(PAUSE), |_| Next::Exit(0)))
    }

    /// Mounts the attempt's volume. Returns the newest progress on it, and how long it takes to read that checkpoint.
    pub(super) fn mount(&mut self, agent: &Agent) -> Result<(f64, Duration), String> {
        let volume = agent.volume.clone().ok_or("a mount without a volume")?;
        let mut world = self.harness.cloud.world();
        let files = world.file_system(&volume, &agent.instance).map_err(|error| format!("cannot mount: {error}"))?;
        let from = files.seen().files.keys().filter_map(|path| progress(path)).max_by(f64::total_cmp).unwrap_or(0.0);
        world.set_mounted(&volume, true);
        drop(world);
        Ok((from, self.reading(&volume)))
    }

    /// Returns how long a checkpoint takes to read. A volume from a snapshot loads while it is read for the first time.
    fn reading(&self, volume: &str) -> Duration {
        let model = &self.plan.parameters;
        let now = self.harness.now;
        let world = self.harness.cloud.world();
        let loads = world.volume(volume).is_some_and(|volume| volume.initialized_at.is_some_and(|at| at > now));
        let mib = match (loads, self.policy) {
            (false, _) => model.volume_mib,
            (true, Policy::Spotsweep) => model.volume_mib.min(model.initialization_mib),
            (
                true,
                Policy::SeedScript | Policy::S3Checkpoint | Policy::S3OnNotice | Policy::Restart | Policy::OnDemand,
            ) => model.volume_mib.min(model.lazy_mib),
        };
        Duration::from_secs_f64(model.checkpoint_gib * MIB_PER_GIB / mib)
    }

    /// Writes a complete checkpoint to the volume, and then deletes the one before.
    pub(super) fn keep_on_volume(&mut self, agent: &Agent, progress_seconds: f64) -> Result<(), String> {
        let volume = agent.volume.clone().ok_or("a checkpoint without a volume")?;
        let mut world = self.harness.cloud.world();
        let before = world.files_of_volume(&volume);
        let mib = (self.plan.parameters.checkpoint_gib * MIB_PER_GIB).ceil() as usize;
        world
            .write_file(&volume, &agent.instance, &path(progress_seconds), vec![0; mib])
            .map_err(|error| format!("trial {}: the volume left under its attempt: {error}", agent.trial))?;
        for old in before.seen().files.keys().filter(|path| progress(path).is_some_and(|old| old < progress_seconds)) {
            world.remove_file(&volume, &agent.instance, old).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Returns the seal of the checkpoints on the volume.
    fn seal(&self, agent: &Agent) -> Seal {
        let files = agent.volume.as_ref().map(|id| self.harness.cloud.world().files_of_volume(id)).unwrap_or_default();
        let newest = files.seen().files.keys().filter(|path| progress(path).is_some()).max().cloned();
        let bytes = newest.as_ref().and_then(|path| files.content(path)).map_or(0, <[u8]>::len);
        Seal { files: u64::from(newest.is_some()), bytes: bytes as u64, newest }
    }

    async fn ask(&mut self, agent: &Agent, request: Request) -> Result<Option<Reply>, String> {
        let request = container(agent)?.request(request);
        // The call counts the runner's Invoke.
        self.ledger.called(1);
        Ok(self.invoke(&request).await?.flatten())
    }
}

impl Agent {
    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

fn container(agent: &Agent) -> Result<&Container, String> {
    agent.container.as_ref().ok_or_else(|| "a claim without a sweep".to_owned())
}

fn path(progress_seconds: f64) -> String {
    format!("{CHECKPOINTS}{:012}", (progress_seconds * 1000.0).round() as u64)
}

fn progress(path: &str) -> Option<f64> {
    let millis: u64 = path.strip_prefix(CHECKPOINTS)?.parse().ok()?;
    Some(millis as f64 / 1000.0)
}

fn metrics() -> BTreeMap<String, Metric> {
    [("loss".to_owned(), Metric::of(1.0, None, Source::Stated))].into()
}
