//! Inputs in the words of scenarios: the inverse of `words.rs`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use spotsweep_control_plane::event::{Ask, Ending, Event, Job, TrialJob};
use spotsweep_control_plane::input::{Followup, Input};
use spotsweep_control_plane::outcome::{Drained, Outcome};
use spotsweep_protocol::claim::{Machine, NoticeKind};
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::secret::Secret;
use spotsweep_records::workspace::{Fact, RefusalKind, SnapshotState, VolumeState, is_of_key};

use crate::run::FORGER;

/// The inputs of one trial as lines of a scenario.
#[derive(Debug)]
pub struct Timeline {
    sweep: SweepId,
    index: u32,
    lines: Vec<String>,
    /// Ids by the names that scenarios use.
    names: BTreeMap<String, String>,
    now: Option<Timestamp>,
}

impl Timeline {
    /// Creates a timeline without inputs.
    pub fn of(sweep: SweepId, index: u32) -> Self {
        Self { sweep, index, lines: vec!["given a trial".into()], names: BTreeMap::new(), now: None }
    }

    /// Adds an input if it belongs to this trial.
    pub fn tell(&mut self, input: &Input, at: Timestamp) {
        let Some(words) = self.words(input) else { return };
        let waited = self.now.map_or(0, |before| at.as_second() - before.as_second());
        if waited > 0 {
            self.lines.push(format!("when  wait {waited}s"));
        }
        self.now = Some(at);
        self.lines.push(format!("when  {words}"));
    }

    /// The scenario without its `then` lines.
    pub fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }

    fn words(&mut self, input: &Input) -> Option<String> {
        match input {
            Input::Outcome(Outcome::AttemptLocated { trial, attempt, instance, zone })
                if self.is_of(&trial.sweep, trial.index) =>
            {
                Some(format!("located attempt {attempt} on {} in {zone}", self.instance(instance)))
            }
            Input::Outcome(Outcome::InstanceDrained { request, drained })
                if self.is_of(&request.sweep, request.index) =>
            {
                let how = match drained {
                    Drained::Yes(_) => "drained",
                    Drained::NotPlaced => "not placed",
                    Drained::Refused(_) => "not drained",
                };
                Some(format!("instance of attempt {} {how}", request.attempt))
            }
            Input::Event(Event::JobChanged(Job::Trial(job)))
            | Input::Outcome(Outcome::JobDescribed(Job::Trial(job))) => self.job(job),
            Input::Outcome(Outcome::Workspace(trial, fact)) | Input::Followup(Followup::Workspace(trial, fact))
                if self.is_of(&trial.sweep, trial.index) =>
            {
                self.fact(fact)
            }
            // A forged request is refused, so it has no effect.
            Input::Event(Event::TrialRequested(request)) if request.secret == Some(Secret::of(FORGER)) => None,
            Input::Event(Event::TrialRequested(request)) if self.is_of(&request.sweep, request.index) => {
                let what = self.ask(&request.ask)?;
                Some(format!("attempt {} {what}", request.attempt))
            }
            // The input is of another trial, or it has no words here because it does not move a workspace.
            _other => None,
        }
    }

    fn job(&self, job: &TrialJob) -> Option<String> {
        (self.is_of(&job.sweep, job.index) && job.round == 0).then(|| {
            let status = format!("{:?}", job.seen.status).to_uppercase();
            format!("batch {status} after {} attempts", job.seen.ended.len())
        })
    }

    fn ask(&mut self, ask: &Ask) -> Option<String> {
        Some(match ask {
            Ask::Claim(Machine { instance: Some(instance), zone: Some(zone), defect, .. }) => {
                let defect = if defect.is_some() { " which cannot train" } else { "" };
                format!("claims on {} in {zone}{defect}", self.instance(instance))
            }
            Ask::Claim(_) => "claims".into(),
            Ask::Mounted { volume, found } => {
                let volume = self.name(volume, "vol");
                match (found.torn.first(), &found.newest) {
                    (None, _) => format!("mounts {volume}"),
                    (Some(torn), Some(newest)) => format!("mounts {volume} torn {torn} newest {newest}"),
                    (Some(torn), None) => format!("mounts {volume} torn {torn} nothing left"),
                }
            }
            Ask::Notice(NoticeKind::Interruption) => "warns".into(),
            Ask::Report { ended: Some(Ending::Released { rollback: Some(rollback) }), .. } => {
                let before = rollback.to.as_deref().unwrap_or("nothing");
                format!("rolls back from {} to {before}", rollback.checkpoint)
            }
            Ask::Report { ended: Some(Ending::Released { rollback: None }), .. } => "releases".into(),
            Ask::Report { ended: Some(Ending::Finished { exit_code, .. }), .. } => format!("finishes with {exit_code}"),
            Ask::Access | Ask::Notice(NoticeKind::Rebalance) | Ask::Fetching(_) | Ask::Report { ended: None, .. } => {
                return None;
            }
        })
    }

    fn fact(&mut self, fact: &Fact) -> Option<String> {
        Some(match fact {
            Fact::Noticed { instance, kind: NoticeKind::Interruption } => {
                format!("notice {} interruption", self.instance(instance))
            }
            Fact::Noticed { instance, kind: NoticeKind::Rebalance } => {
                format!("notice {} rebalance", self.instance(instance))
            }
            Fact::Volume { operation: Some(operation), id, state } => {
                let id = self.made(id, "vol", *operation);
                format!("volume {id} of operation {operation} {}", self.volume(state))
            }
            Fact::Volume { operation: None, id, state } => {
                format!("volume {} {}", self.name(id, "vol"), self.volume(state))
            }
            Fact::VolumeReported { id, failure } => {
                let how = match failure {
                    None => "available",
                    Some(cause) if is_of_key(cause) => "failed by its key",
                    Some(_) => "failed",
                };
                format!("ebs volume {} {how}", self.name(id, "vol"))
            }
            Fact::Snapshot { operation: Some(operation), id, state } => {
                let id = self.made(id, "snap", *operation);
                format!("snapshot {id} of operation {operation} {}", snapshot(*state))
            }
            Fact::Snapshot { operation: None, id, state } => {
                format!("snapshot {} {}", self.name(id, "snap"), snapshot(*state))
            }
            Fact::VolumeNotFound { operation } => format!("volume of operation {operation} not found"),
            Fact::SnapshotNotFound { operation } => format!("snapshot of operation {operation} not found"),
            Fact::Missing(id) => format!("missing {}", self.name(id, "vol")),
            Fact::Deleted(id) => format!("deleted {}", self.name(id, "vol")),
            Fact::Due => "due".into(),
            Fact::Continued { .. } => "continued".into(),
            Fact::Discontinued { .. } => "discontinued".into(),
            Fact::Refused(refusal) => match &refusal.kind {
                RefusalKind::Volume { operation } => format!("refused volume {operation} {}", refusal.code),
                RefusalKind::Snapshot { operation } => format!("refused snapshot {operation} {}", refusal.code),
                RefusalKind::DeviceTaken { volume, instance } => {
                    format!("refused device of {} for {}", self.instance(instance), self.name(volume, "vol"))
                }
                RefusalKind::Instance { volume, instance } => {
                    let (instance, volume) = (self.instance(instance), self.name(volume, "vol"));
                    format!("refused instance {instance} for {volume} {}", refusal.code)
                }
            },
            Fact::RateTaken { operation, bytes } => format!("rate taken by operation {operation} for {bytes} bytes"),
            Fact::Wanted(_)
            | Fact::PlaceUnknown
            | Fact::Mounted { .. }
            | Fact::Sealed { .. }
            | Fact::Released { .. }
            | Fact::Finished { .. } => return None,
        })
    }

    fn volume(&mut self, state: &VolumeState) -> String {
        match state {
            VolumeState::Asked | VolumeState::Unknown | VolumeState::Creating => "creating".into(),
            VolumeState::Available => "available".into(),
            VolumeState::Error => "error".into(),
            VolumeState::Absent => "absent".into(),
            VolumeState::InUse { instance, steady: true } => format!("attached to {}", self.instance(instance)),
            VolumeState::InUse { instance, steady: false } => format!("detaching from {}", self.instance(instance)),
        }
    }

    fn instance(&mut self, id: &str) -> String {
        let known = self.names.values().filter(|name| name.starts_with("i-")).count();
        self.names.entry(id.to_owned()).or_insert_with(|| format!("i-{}", known + 1)).clone()
    }

    fn made(&mut self, id: &str, kind: &str, operation: u32) -> String {
        let again = self.names.values().filter(|name| **name == format!("{kind}-{operation}")).count();
        let name = if again == 0 { format!("{kind}-{operation}") } else { format!("{kind}-{operation}-again") };
        self.names.entry(id.to_owned()).or_insert(name).clone()
    }

    fn name(&mut self, id: &str, kind: &str) -> String {
        let kind = if id.starts_with("snap-") { "snap" } else { kind };
        let known = self.names.len();
        self.names.entry(id.to_owned()).or_insert_with(|| format!("{kind}-x{known}")).clone()
    }

    fn is_of(&self, sweep: &SweepId, index: u32) -> bool {
        *sweep == self.sweep && index == self.index
    }
}

fn snapshot(state: SnapshotState) -> &'static str {
    match state {
        SnapshotState::Asked | SnapshotState::Pending => "pending",
        SnapshotState::Completed => "completed",
        SnapshotState::Failed => "failed",
    }
}
