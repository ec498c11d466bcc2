//! A simulated runner: claims, mounts, trains, seals, leaves, as `spotsweep-runner` does.

mod notices;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spotsweep_control_plane::trial::INTERRUPTED_EXIT_CODE;
use spotsweep_control_plane::workspace::TrialRef;
use spotsweep_protocol::claim::{ClaimRequest, Found, Machine, Market, Metric, Outputs, Reply, Request, Seal};
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::stop::StopReason;
use spotsweep_world::{AttemptKey, Start};

use super::chaos::OnSignal;
use super::watch::Seen;
use super::{Happening, Simulation};
use crate::injected_bug::InjectedBug;

/// How often a runner looks at the metadata service (fact 32).
pub(super) const IMDS_POLL: Duration = Duration::from_secs(5);

/// From the stop signal until everything is saved.
const SAVING: Duration = Duration::from_secs(8);

/// From the stop signal until a training that ignores it is killed.
const GRACE: Duration = Duration::from_secs(90);

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
    attempt: u32,
    started: Timestamp,
    sequence: u64,
    /// Whether its metadata service is silent.
    pub(super) is_blind: bool,
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
    Mounting { volume: String, found: Found, epoch: u32 },
    Training { volume: String, epoch: u32 },
    Leaving { volume: Option<String>, epoch: u32 },
    Ending { epoch: u32 },
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
            started: now,
            sequence: 0,
            is_blind: false,
            unanswered_since: None,
            doing: Doing::Starting,
        })
    }

    fn request(&self, request: Request) -> Value {
        let (sweep, job) = (self.trial.sweep.to_string(), self.job.clone());
        json!(ClaimRequest { sweep, index: self.trial.index, job, attempt: self.attempt, request })
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

/// A checkpoint's path and bytes: what training makes of a trial and an epoch, and of nothing else.
pub(super) fn checkpoint(index: u32, epoch: u32) -> (String, String) {
    (format!("checkpoints/epoch-{epoch:06}"), format!("trial {index} epoch {epoch}"))
}

/// The newest epoch among files; `None` where there is none.
pub(super) fn newest<'a>(index: u32, files: impl Iterator<Item = (&'a String, &'a Vec<u8>)>) -> Option<u32> {
    let epochs = files.filter_map(|(path, bytes)| {
        let epoch: u32 = path.strip_prefix("checkpoints/epoch-")?.parse().ok()?;
        let (of, at) = std::str::from_utf8(bytes).ok()?.strip_prefix("trial ")?.split_once(" epoch ")?;
        (of.parse() == Ok(index) && at.parse() == Ok(epoch)).then_some(epoch)
    });
    epochs.max()
}

impl Simulation {
    /// The runner does its next step, if it still lives.
    pub(super) fn step(&mut self, key: &AttemptKey) -> Result<(), String> {
        let Some(mut agent) = self.agents.remove(key) else { return Ok(()) };
        let next = match agent.doing.clone() {
            Doing::Starting => self.begin(&mut agent)?,
            Doing::AwaitingEnd => Next::Never,
            Doing::Claiming => self.claim(&mut agent)?,
            Doing::Mounting { volume, found, epoch } => self.mount(&mut agent, volume, found, epoch),
            Doing::Training { volume, epoch } => self.train(&mut agent, volume, epoch)?,
            Doing::Leaving { volume, epoch } => self.leave(&mut agent, volume, epoch)?,
            Doing::Ending { epoch } => self.end(&mut agent, epoch),
        };
        match next {
            Next::After(wait) => {
                self.agents.insert(key.clone(), agent);
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
        let reply = self.ask(agent, Request::Claim(machine));
        let since = reply.is_none().then(|| *agent.unanswered_since.get_or_insert(self.harness.now));
        agent.unanswered_since = since;
        Ok(match reply {
            None if since.is_some_and(|since| self.harness.now - PATIENCE > since) => Next::Exit(INTERRUPTED_EXIT_CODE),
            None => Next::After(PAUSE),
            Some(Reply::Waiting { retry_after_ms, .. }) => match self.taken_unasked(agent) {
                Some(volume) => self.take(agent, volume),
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
            Some(Reply::Unavailable { reason }) => {
                self.watch.sent_away(&agent.trial, &reason);
                Next::Exit(INTERRUPTED_EXIT_CODE)
            }
            Some(Reply::Granted(grant)) => {
                let volume = grant.workspace.ok_or("granted without its workspace")?.volume;
                match self.ask(agent, Request::Access) {
                    None => Next::After(PAUSE),
                    Some(Reply::Access(_)) => self.take(agent, volume),
                    // A newer attempt has come in between.
                    Some(_refused) => Next::Exit(REFUSED),
                }
            }
            Some(Reply::Refused { reason: StopReason::Budget { .. } | StopReason::Workspace { .. } }) => {
                Next::Exit(REFUSED)
            }
            Some(reply @ (Reply::Refused { .. } | Reply::Access(_) | Reply::Accepted {})) => {
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
        }
    }

    /// The attempt takes its workspace, and sees what lies on it.
    fn take(&mut self, agent: &mut Agent, volume: String) -> Next {
        let mut world = self.harness.cloud.world();
        let files = match world.read_files(&volume, &agent.instance) {
            Ok(files) => files,
            Err(error) => {
                drop(world);
                let what = format!("attempt {} takes what it does not have: {error}", agent.attempt);
                self.watch.is_wrong(Seen::Versioned, what);
                return Next::Exit(REFUSED);
            }
        };
        world.set_mounted(&volume, true);
        let newest = newest(agent.trial.index, files.iter());
        drop(world);
        self.watch.mounted(&agent.trial, &agent.job, agent.attempt);
        let found = Found { newest: newest.map(|epoch| checkpoint(agent.trial.index, epoch).0), ..Found::default() };
        agent.doing = Doing::Mounting { volume, found, epoch: newest.unwrap_or(0) };
        Next::After(Duration::ZERO)
    }

    /// With the defect planted: the volume of the trial, wherever it is.
    fn taken_unasked(&self, agent: &Agent) -> Option<String> {
        let is_planted = self.harness.cloud.injected_bug() == Some(InjectedBug::MountUnasked);
        let (_, trials) = is_planted.then(|| self.harness.store.state())?;
        let trial = trials.into_iter().find(|trial| trial.index == agent.trial.index)?;
        trial.workspace?.volume.id
    }

    fn mount(&mut self, agent: &mut Agent, volume: String, found: Found, epoch: u32) -> Next {
        let seconds = self.harness.now.duration_since(agent.started).as_secs_f64();
        let request = Request::Mounted { volume: volume.clone(), found, seconds };
        self.watch.verify(&agent.trial, &volume);
        match self.ask(agent, request) {
            None => Next::After(PAUSE),
            Some(Reply::Accepted {}) => {
                self.watch.resumed(&agent.trial, agent.attempt, &agent.zone, epoch, seconds);
                agent.doing = Doing::Training { volume, epoch };
                Next::After(self.epoch)
            }
            Some(reply) => {
                self.harness.cloud.world().set_mounted(&volume, false);
                self.watch.stopped(&agent.trial);
                Next::Exit(if matches!(reply, Reply::Unavailable { .. }) { INTERRUPTED_EXIT_CODE } else { REFUSED })
            }
        }
    }

    fn train(&mut self, agent: &mut Agent, volume: String, epoch: u32) -> Result<Next, String> {
        let epoch = (epoch + 1).min(self.epochs);
        self.save(agent, &volume, epoch)?;
        if epoch == self.epochs {
            self.harness.cloud.world().set_mounted(&volume, false);
            agent.doing = Doing::Ending { epoch };
            return Ok(Next::After(Duration::from_secs(1)));
        }
        agent.doing = Doing::Training { volume, epoch };
        let (sequence, metrics) = (agent.next_sequence(), metrics(epoch));
        let seal = Some(seal(agent.trial.index, epoch));
        Ok(match self.ask(agent, Request::Report { sequence, metrics, seal }) {
            Some(Reply::Refused { .. }) => Next::Exit(REFUSED),
            // A lost report is made up for by the next one.
            _other => Next::After(self.epoch),
        })
    }

    fn save(&mut self, agent: &Agent, volume: &str, epoch: u32) -> Result<(), String> {
        let (path, bytes) = checkpoint(agent.trial.index, epoch);
        let mut world = self.harness.cloud.world();
        world
            .write_file(volume, &agent.instance, &path, bytes)
            .map_err(|error| format!("the workspace left under attempt {}: {error}", agent.attempt))?;
        if let Some(old) = epoch.checked_sub(2) {
            // As training scripts do: the newest two stay.
            let _ = world.remove_file(volume, &agent.instance, &checkpoint(agent.trial.index, old).0);
        }
        drop(world);
        self.watch.seal(&agent.trial, epoch);
        Ok(())
    }

    fn leave(&mut self, agent: &mut Agent, volume: Option<String>, epoch: u32) -> Result<Next, String> {
        if let Some(volume) = volume {
            let training = self.chaos.training;
            let finishes = training == OnSignal::Finishes && epoch + 1 == self.epochs;
            let epoch = if finishes { self.epochs } else { epoch };
            if training != OnSignal::Ignores {
                self.save(agent, &volume, epoch)?;
            }
            self.harness.cloud.world().set_mounted(&volume, false);
            let trusts = self.harness.cloud.injected_bug() == Some(InjectedBug::TrustExitCode);
            if finishes || (trusts && training == OnSignal::ExitsZero) {
                agent.doing = Doing::Ending { epoch };
                return Ok(Next::After(Duration::from_secs(1)));
            }
            agent.doing = Doing::Leaving { volume: None, epoch };
        }
        let (sequence, metrics) = (agent.next_sequence(), metrics(epoch));
        let seal = Some(seal(agent.trial.index, epoch));
        Ok(match self.ask(agent, Request::Release { sequence, metrics, seal, rollback: None }) {
            None => Next::After(PAUSE),
            Some(_) => Next::Exit(INTERRUPTED_EXIT_CODE),
        })
    }

    fn end(&mut self, agent: &mut Agent, epoch: u32) -> Next {
        let (sequence, metrics) = (agent.next_sequence(), metrics(epoch));
        let (outputs, seconds) = (Outputs::default(), f64::from(epoch) * self.epoch.as_secs_f64());
        let request = Request::End { sequence, exit_code: 0, metrics, outputs, seconds };
        match self.ask(agent, request) {
            None => Next::After(PAUSE),
            Some(_) => Next::Exit(0),
        }
    }

    fn ask(&mut self, agent: &Agent, request: Request) -> Option<Reply> {
        self.invoke(agent.request(request)).1?
    }
}

/// What a runner does next.
enum Next {
    After(Duration),
    /// It waits until its instance is gone.
    Never,
    Exit(i32),
}

fn metrics(epoch: u32) -> std::collections::BTreeMap<String, Metric> {
    let value = f64::from(epoch);
    [("accuracy".to_owned(), Metric { last: value, step: Some(value), min: 0.0, max: value })].into()
}

fn seal(index: u32, epoch: u32) -> Seal {
    Seal { files: 1, bytes: 20, newest: Some(checkpoint(index, epoch).0) }
}
