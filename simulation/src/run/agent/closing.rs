//! What a runner does when its command has ended, or is not to start. The machine decides one action at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use spotsweep_attempt::{Action, Answer, Event, Stop};
use spotsweep_protocol::claim::{Outputs, Reply, Request, Rollback, Seal};
use spotsweep_records::trial::Trial;
use spotsweep_seal::{AtEnd, BadEnd, Sealer};
use spotsweep_world::ebs::View;

use super::workspace::POINT;
use super::{Agent, Doing, Next, STEPS, metrics};
use crate::injected_bug::InjectedBug;
use crate::run::Simulation;
use crate::run::training::nanoseconds;
use crate::run::watch::Seen;

/// How long each action takes, and how long a slow upload takes.
const TAKES: Duration = Duration::from_secs(1);
/// How long before the end a file may have been written that the seal takes for open then.
const LATELY_NS: i64 = 3_000_000_000;
const SLOW_UPLOAD: Duration = Duration::from_secs(240);

/// What an attempt has to seal, unmount and report at its end.
#[derive(Debug, Clone, Default)]
pub(super) struct Left {
    /// Set as long as the volume is mounted.
    pub(super) volume: Option<String>,
    /// Set once the command has ended.
    pub(super) sealer: Option<Sealer>,
    pub(super) open: Vec<PathBuf>,
    pub(super) is_cut_off: bool,
    pub(super) step: u32,
    pub(super) code: i32,
    pub(super) error: String,
    seal: Option<Seal>,
    /// The volume whose last seal is done, if there was time for it and the trial goes on.
    sealed: Option<String>,
    rollback: Option<Rollback>,
    /// Whether the control plane has noted that the trial ended with this attempt.
    has_ended: bool,
}

impl Simulation {
    /// The runner begins one of its last actions.
    pub(super) fn close(&mut self, agent: &mut Agent, action: Action) -> Next {
        let is_upload = matches!(action, Action::Collect { .. });
        let takes = match &action {
            Action::End { after, .. } => TAKES + *after,
            _ if is_upload && self.rng.occurs(self.chaos.slow_seals) => SLOW_UPLOAD,
            _other => TAKES,
        };
        let done_at = self.harness.now + takes;
        agent.doing = Doing::Closing(action, done_at);
        agent.next_by(done_at)
    }

    /// The action ends if its time is over.
    pub(super) fn closes(&mut self, agent: &mut Agent, action: Action, done_at: Timestamp) -> Result<Next, String> {
        let now = self.harness.now;
        if now < done_at {
            let is_over = agent.until().is_some_and(|until| now >= until);
            return if is_over { self.on(agent, Event::TimeOver) } else { Ok(agent.next_by(done_at)) };
        }
        if let Action::Seal { is_left: true, .. } = action {
            agent.left.sealed = agent.left.volume.clone().filter(|_| agent.left.sealer.is_some());
        }
        let event = match self.misplaced(&action) {
            Action::Judge => self.judge(agent)?,
            Action::Collect { has_succeeded } => self.upload(agent, *has_succeeded)?,
            Action::Seal { is_left, .. } => self.seal_last(agent, *is_left)?,
            Action::Unmount => self.unmount(agent)?,
            Action::Release => match self.release(agent) {
                Ok(answer) => Event::Answered(answer),
                Err(pause) => return Ok(self.again_after(agent, action, pause)),
            },
            Action::End { code, .. } => match self.end(agent, *code) {
                Ok(answer) => Event::Answered(answer),
                Err(pause) => return Ok(self.again_after(agent, action, pause)),
            },
            other => return Err(format!("{}: {other:?} does not close", agent.container.trial)),
        };
        // With a bug injected, the machine still gets the answer that its own action is done.
        let event = match &action {
            Action::Seal { .. } => Event::Sealed,
            Action::Unmount => Event::Unmounted,
            _in_order => event,
        };
        self.on(agent, event)
    }

    /// The action that an injected bug does in place of the decided one.
    fn misplaced<'a>(&self, action: &'a Action) -> &'a Action {
        match (self.harness.cloud.injected_bug(), action) {
            (Some(InjectedBug::SealAfterUnmount), Action::Seal { .. }) => &Action::Unmount,
            (Some(InjectedBug::ReleaseBeforeSeal), Action::Seal { .. }) => &Action::Release,
            _in_order => action,
        }
    }

    fn again_after(&mut self, agent: &mut Agent, action: Action, pause: Duration) -> Next {
        let done_at = self.harness.now + pause;
        agent.doing = Doing::Closing(action, done_at);
        agent.next_by(done_at)
    }

    /// The command has failed by itself. The runner rolls back its checkpoint if the command has made no progress from
    /// it.
    fn judge(&mut self, agent: &mut Agent) -> Result<Event, String> {
        let (Some(volume), Some(mut sealer)) = (agent.left.volume.clone(), agent.left.sealer.take()) else {
            return Ok(Event::Judged { goes_back: false });
        };
        let ignores = self.harness.cloud.injected_bug() == Some(InjectedBug::NeverRollBack);
        let before = self.with_files(agent, &volume, |files| files.seen().clone())?;
        let rollback = self.with_disk(agent, &volume, |disk| {
            let has_progress = ignores || sealer.has_new_checkpoint(disk)?;
            let end = BadEnd { exit_code: agent.left.code, error: Some(agent.left.error.clone()) };
            if has_progress { Ok(None) } else { sealer.roll_back(disk, &end) }
        })?;
        let rollback = rollback.map_err(|error: std::io::Error| error.to_string())?;
        self.note(agent, |_| format!("fails: {rollback:?}"));
        let after = self.with_files(agent, &volume, |files| files.seen().clone())?;
        // A script that always fails makes a complete checkpoint look bad.
        let fails = self.chaos.fails == Some(agent.container.trial.index) || self.fails_at_once(agent);
        match fails && rollback.is_some() {
            true => self.watch.made_look_bad(&agent.container.trial),
            false => self.watch.put_aside(&self.chaos.habits, &agent.container.trial, &before, &after),
        }
        if has_put_back(&before, &after) {
            self.watch.took_back(&agent.container.trial);
        }
        let goes_back = rollback.is_some();
        (agent.left.sealer, agent.left.rollback) = (Some(sealer), rollback);
        Ok(Event::Judged { goes_back })
    }

    fn upload(&mut self, agent: &mut Agent, has_succeeded: bool) -> Result<Event, String> {
        if let Some(volume) = agent.left.volume.clone().filter(|_| has_succeeded) {
            self.collect(agent, &volume)?;
            self.watch.finished(&agent.container.trial, agent.left.step);
        }
        Ok(Event::Collected { is_whole: true })
    }

    /// Seals everything at the end of an attempt.
    fn seal_last(&mut self, agent: &mut Agent, is_left: bool) -> Result<Event, String> {
        let (Some(volume), Some(mut sealer)) = (agent.left.volume.clone(), agent.left.sealer.take()) else {
            return Ok(Event::Sealed);
        };
        let Left { open, is_cut_off, .. } = agent.left.clone();
        let at_end = AtEnd::new(open.iter().cloned().collect(), nanoseconds(self.harness.now), is_cut_off);
        let has_time = !self.rng.occurs(self.chaos.slow_seals);
        let left = self.with_files(agent, &volume, |files| files.seen().clone())?;
        let sealed = self.with_disk(agent, &volume, |disk| {
            disk.sync_all(Path::new(POINT))?;
            sealer.finish(disk, &at_end, &|| has_time)
        })?;
        sealed.map_err(|error: std::io::Error| format!("not sealed: {error}"))?;
        self.note(agent, |_| format!("ends, cut off {is_cut_off}, {open:?} open, and seals {:?}", sealer.summary()));
        let lately = nanoseconds(self.harness.now) - LATELY_NS;
        let is_young = left.files.values().any(|file| file.modified_ns >= lately);
        if is_cut_off && (is_young || !open.is_empty()) && self.chaos.habits.may_mix() {
            self.watch.cut_off(&agent.container.trial);
        } else if has_time && is_left {
            self.watch.sealed_at_end(&self.chaos.habits, &agent.container.trial, &left);
        }
        if !has_time {
            agent.left.sealed = None;
        }
        agent.left.seal = sealer.summary();
        Ok(Event::Sealed)
    }

    /// Unmounts the volume if one is mounted.
    fn unmount(&mut self, agent: &mut Agent) -> Result<Event, String> {
        let Some(volume) = agent.left.volume.clone() else { return Ok(Event::Unmounted) };
        match self.harness.cloud.injected_bug() {
            Some(InjectedBug::ReleaseBeforeSeal) => drop(self.seal_last(agent, true)?),
            // After the unmount, the seal would write into the empty folder below the mount point.
            Some(InjectedBug::SealAfterUnmount) => {
                let left = self.with_files(agent, &volume, |files| files.seen().clone())?;
                self.watch.sealed_at_end(&self.chaos.habits, &agent.container.trial, &left);
            }
            _in_order => {
                if let Some(mut sealer) = agent.left.sealer.take() {
                    let now_ns = nanoseconds(self.harness.now);
                    let at_end = AtEnd::new(BTreeSet::new(), now_ns, agent.left.is_cut_off);
                    let closed = self.with_disk(agent, &volume, |disk| {
                        disk.sync_all(Path::new(POINT))?;
                        sealer.close(disk, &at_end)
                    })?;
                    closed.map_err(|error| format!("not closed: {error}"))?;
                }
            }
        }
        agent.left.volume = None;
        self.harness.cloud.world().set_mounted(&volume, false);
        Ok(Event::Unmounted)
    }

    /// Records a violation if the attempt leaves a volume without its last seal.
    fn check_last_seal(&mut self, agent: &mut Agent) {
        let Some(volume) = agent.left.sealed.take() else { return };
        let files = self.harness.cloud.world().files_of_volume(&volume);
        let manifest = files.content(".spotsweep/seal.json").and_then(|text| serde_json::from_slice(text).ok());
        let manifest: Value = manifest.unwrap_or_default();
        if manifest["attempt"] != agent.container.attempt || manifest["final"] != true {
            let what = format!(
                "{}: attempt {} leaves {volume} without its last seal",
                agent.container.trial, agent.container.attempt
            );
            self.watch.is_wrong(Seen::Unsealed, what);
        }
    }

    /// The answer to the release, or the pause before the runner repeats it.
    fn release(&mut self, agent: &mut Agent) -> Result<Option<Answer>, Duration> {
        self.check_last_seal(agent);
        let (step, seal, rollback) = (agent.left.step, agent.left.seal.clone(), agent.left.rollback.clone());
        let (sequence, metrics, rungs) = (agent.next_sequence(), metrics(step), agent.reached(step));
        let stalled_seconds = agent.stalled_seconds();
        let reply = self.ask(agent, Request::Release { sequence, metrics, seal, rollback, stalled_seconds, rungs });
        let Some(reply) = reply else { return self.repeats(agent) };
        if matches!(reply, Reply::Stop { .. }) {
            self.watch.has_stop(&agent.container.trial);
        }
        Ok(Answer::of(reply).ok())
    }

    /// The answer to the end, or the pause before the runner repeats it.
    fn end(&mut self, agent: &mut Agent, exit_code: u8) -> Result<Option<Answer>, Duration> {
        let step = agent.left.step;
        let has_trained = exit_code == 0 || !self.fails_at_once(agent);
        let (sequence, metrics) = (agent.next_sequence(), if has_trained { metrics(step) } else { BTreeMap::new() });
        let (outputs, seconds) = (Outputs::default(), f64::from(step / STEPS) * self.epoch.as_secs_f64());
        let (error, stalled_seconds, rungs) = (None, agent.stalled_seconds(), agent.reached(step));
        let exit_code = i32::from(exit_code);
        let request = Request::End { sequence, exit_code, metrics, outputs, seconds, error, stalled_seconds, rungs };
        let reply = self.ask(agent, request);
        // The answer may be lost, and others may train before it is repeated.
        if !agent.left.has_ended && self.is_end_taken(agent) {
            agent.left.has_ended = true;
            self.ends_for_good(agent, has_trained);
        }
        let Some(reply) = reply else { return self.repeats(agent) };
        let blames_trial = self.harness.cloud.injected_bug() == Some(InjectedBug::BlameTrial);
        Ok(match Answer::to_end(reply) {
            Ok(Answer::Unavailable(reason)) if !blames_trial => {
                self.leaves_failing(agent);
                Some(Answer::Unavailable(reason))
            }
            Ok(answer @ (Answer::Refused(_) | Answer::Waiting { .. })) => Some(answer),
            _taken => {
                if !agent.left.has_ended {
                    self.ends_for_good(agent, has_trained);
                }
                Some(Answer::Accepted)
            }
        })
    }

    /// Whether the control plane has noted that the trial ended with this attempt.
    fn is_end_taken(&self, agent: &Agent) -> bool {
        let (_, trials) = self.harness.store.state();
        let is_noted = |trial: &Trial| trial.end.as_ref().is_some_and(|end| end.attempt == agent.container.attempt);
        trials.iter().any(|trial| trial.of() == agent.container.trial && is_noted(trial))
    }

    /// The last request was not answered. The runner repeats it until its patience is over.
    fn repeats(&mut self, agent: &mut Agent) -> Result<Option<Answer>, Duration> {
        match self.again(agent) {
            Some(pause) => {
                agent.sequence -= 1;
                Err(pause)
            }
            None => Ok(None),
        }
    }
}

/// Whether a quarantined file has left its quarantine.
fn has_put_back(before: &View, after: &View) -> bool {
    let mut quarantined = before.files.keys().filter(|path| path.starts_with(".spotsweep/torn/"));
    quarantined.any(|path| !after.files.contains_key(path))
}

impl Agent {
    /// Seconds without a sign of progress, if the training was ended for that.
    pub(super) fn stalled_seconds(&self) -> Option<u64> {
        self.machine.stop().and_then(Stop::stalled_seconds)
    }
}
