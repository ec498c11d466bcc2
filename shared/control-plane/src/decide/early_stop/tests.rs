#![allow(clippy::unwrap_used)]

mod odd;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use spotsweep_protocol::claim::{Outputs, Reply};
use spotsweep_protocol::ids::JobId;
use spotsweep_protocol::metric::{Metric, Source};
use spotsweep_protocol::rungs::{Reached, Rung};
use spotsweep_protocol::secret::Secret;
use spotsweep_protocol::stop::StopReason;

use crate::command::Command;
use crate::decide::decide;
use crate::decide::scene::NOUNS;
use crate::event::{Ask, Ending, Event, Job, TrialJob, TrialRequest};
use crate::input::Input;
use crate::outcome::Outcome;
use crate::settings::Settings;
use crate::store::{Change, History, Record, Versioned, View};
use spotsweep_ranking::peer::Peer;
use spotsweep_records::sweep::notification::Kind;
use spotsweep_records::sweep::{Stage, Sweep};
use spotsweep_records::trial::{Attempt, INTERRUPTED_EXIT_CODE, JobStatus, Observation, Standing, Trial};
use spotsweep_records::workspace::{Call, Fact, VolumeState, WorkspacePlan};
use spotsweep_report::inputs::ReportInputs;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// A sweep of ten trials that keeps the better half at the rungs 3 and 9, with the records of its trials.
struct Scene {
    sweep: Sweep,
    trials: BTreeMap<u32, Trial>,
    settings: Settings,
    sequence: u64,
    /// The commands that followed from the last input.
    commands: Vec<Command>,
}

fn held<T>(record: T) -> Option<Versioned<T>> {
    Some(Versioned { record, version: 1, due: None, recent: History::new() })
}

fn job(index: u32) -> JobId {
    JobId { parent: "j".to_owned(), child: Some(index) }
}

fn at(step: u64, value: f64) -> Reached {
    Reached { step, rung: Rung { value, best: value, mean: value } }
}

impl Scene {
    fn new(rule: &str) -> Self {
        let upload = json!({ "bucket": "b", "key": "sweeps/s.yaml", "fingerprint": "v", "uploaded_at": NOW });
        let plan = json!({ "trials": 10, "queue": "q", "definition": "d:1", "attempts": 50,
            "metric": { "name": "acc", "maximize": true, "over": "last" },
            "early_stopping": { "rule": { "type": rule, "bands": [3, 9], "eta": 2.0, "strict": true } },
            "parts": [{ "trials": 10, "job": "j" }] });
        let mut sweep = Sweep::new(serde_json::from_value(upload).unwrap());
        sweep.plan = Some(serde_json::from_value(plan).unwrap());
        sweep.claim_token = Some(Secret::of([7; 16]));
        let names = ["SPOTSWEEP_BUCKET", "SPOTSWEEP_CLAIM_FUNCTION", "SPOTSWEEP_TRIAL_ROLE", "SPOTSWEEP_PARAMETERS"];
        let settings = Settings::from_variables(|name| names.contains(&name).then(|| "x".into())).unwrap();
        Self { sweep, trials: BTreeMap::new(), settings, sequence: 0, commands: Vec::new() }
    }

    /// Decides an input, commits, and decides the followups.
    fn take(&mut self, index: u32, input: impl Into<Input>) -> Option<Reply> {
        let trial = self.trials.get(&index).cloned().and_then(held);
        let view = View { sweep: held(self.sweep.clone()), trial, ..View::default() };
        let mut decision = decide(NOUNS, &view, &input.into(), &self.settings, NOW);
        let mut reply = decision.reply.take();
        while let Some(followup) = decision.next.pop() {
            self.commit(index, decision.change.take());
            let with_rungs = self.trials.iter().filter(|(_, trial)| !trial.rungs.is_empty());
            let peers: BTreeMap<u32, Peer> =
                with_rungs.filter_map(|(index, trial)| Some((*index, Peer::of(trial, None)?))).collect();
            let trial = self.trials.get(&index).cloned().and_then(held);
            let view = View { trial, peers: Some(peers), ..view_of(&self.sweep) };
            decision = decide(NOUNS, &view, &Input::Followup(followup), &self.settings, NOW);
            reply = decision.reply.take().or(reply);
        }
        self.commit(index, decision.change);
        self.commands = decision.commands;
        reply
    }

    fn commit(&mut self, index: u32, change: Option<Change>) {
        match change.map(|change| change.record) {
            Some(Record::Trial(trial)) => drop(self.trials.insert(index, *trial)),
            Some(Record::Sweep(sweep)) => self.sweep = *sweep,
            None => {}
        }
    }

    fn ask(&mut self, index: u32, attempt: u32, ask: Ask) -> Option<Reply> {
        let secret = Some(Secret::of([attempt.to_be_bytes()[3]; 16]));
        let (sweep, token) = (self.sweep.id.clone(), self.sweep.claim_token.clone());
        let request = TrialRequest { sweep, index, job: job(index), attempt, token, secret, ask };
        self.take(index, Event::TrialRequested(request))
    }

    fn claim(&mut self, index: u32, attempt: u32) -> Option<StopReason> {
        match self.ask(index, attempt, Ask::Claim(Default::default())) {
            Some(Reply::Refused { reason }) => Some(reason),
            Some(_) | None => {
                self.runs(index, attempt);
                None
            }
        }
    }

    /// Batch reports that the attempt's container has started.
    fn runs(&mut self, index: u32, attempt: u32) {
        let ended = Attempt { started_at: Some(NOW), stopped_at: Some(NOW), ..Attempt::default() };
        self.batch_says(index, JobStatus::Running, vec![ended; attempt as usize - 1]);
    }

    fn batch_says(&mut self, index: u32, status: JobStatus, ended: Vec<Attempt>) {
        let started_at = (status == JobStatus::Running).then_some(NOW);
        let seen = Observation {
            job: job(index),
            status,
            reason: None,
            ended,
            current: Attempt { started_at, ..Attempt::default() },
            container_instance: None,
            was_stopped: false,
        };
        let sweep = self.sweep.id.clone();
        self.take(index, Event::JobChanged(Job::Trial(TrialJob { sweep, index, round: 0, seen })));
    }

    fn reports(&mut self, index: u32, attempt: u32, rungs: &[Reached], ended: Option<Ending>) -> Reply {
        self.sequence += 1;
        let (sequence, metrics, seal, rungs) = (self.sequence, BTreeMap::new(), None, rungs.to_vec());
        self.ask(index, attempt, Ask::Report { sequence, metrics, seal, ended, stalled_seconds: None, rungs }).unwrap()
    }

    /// Whether a report of the first attempt stops the trial.
    fn stops(&mut self, index: u32, rungs: &[Reached]) -> bool {
        match self.reports(index, 1, rungs, None) {
            Reply::Stop { .. } => true,
            Reply::Accepted {} => false,
            other @ (Reply::Granted(_)
            | Reply::Waiting { .. }
            | Reply::Unavailable { .. }
            | Reply::Access(_)
            | Reply::Refused { .. }) => unreachable!("{other:?}"),
        }
    }

    /// Batch reports that the first attempt has ended with this status and exit code.
    fn ends(&mut self, index: u32, status: JobStatus, exit_code: Option<i32>) {
        let reason = exit_code.is_none().then(|| "Host EC2 (instance i-1) terminated.".into());
        let ended = Attempt { started_at: Some(NOW), stopped_at: Some(NOW), exit_code, reason, ..Attempt::default() };
        self.batch_says(index, status, vec![ended]);
    }

    fn standing(&self, index: u32) -> Standing {
        self.trials[&index].standing()
    }
}

fn workspace() -> WorkspacePlan {
    serde_json::from_value(json!({ "size_gib": 20, "origin": { "origin": "blank" } })).unwrap()
}

fn view_of(sweep: &Sweep) -> View {
    View { sweep: held(sweep.clone()), ..View::default() }
}

/// Returns a scene in which trials 0 to 3 have reached the first rung.
fn started(rule: &str) -> Scene {
    let mut scene = Scene::new(rule);
    for index in 0..5 {
        assert_eq!(scene.claim(index, 1), None);
    }
    for (index, value) in [(0, 0.7), (1, 0.8), (2, 0.6)] {
        scene.stops(index, &[at(3, value)]);
    }
    scene
}

#[test]
fn a_rung_is_decided_when_its_first_report_arrives() {
    let mut scene = started("hyperband");
    assert!(scene.trials[&2].stopped.is_some() && scene.trials[&0].stopped.is_none());
    assert!(!scene.stops(3, &[at(3, 0.75)]));
    // The report repeats a rung with another value, and has rungs that the sweep does not have.
    assert!(!scene.stops(3, &[at(3, 0.1), at(4, 0.1)]));
    assert_eq!(scene.trials[&3].rungs[&3].value, 0.75);
    assert!(scene.stops(4, &[at(3, 0.1)]) && scene.stops(4, &[at(3, 0.9)]), "a stop is final");
    let stop = scene.trials[&4].stopped.unwrap();
    assert_eq!((stop.rung, stop.by.value, stop.by.cut, stop.by.of), (3, 0.1, Some(0.7), 5));
}

#[test]
fn a_stopped_trial_ends_as_such_whatever_its_job_does() {
    let outputs = Outputs { files: 1, bytes: 1, ..Outputs::default() };
    for exit_code in [0, 1, 74] {
        let mut scene = started("hyperband");
        let finished = Ending::Finished { exit_code, outputs: outputs.clone(), error: None, seconds: 1.0 };
        assert!(matches!(scene.reports(2, 1, &[], Some(finished)), Reply::Stop { .. }));
        let status = if exit_code == 0 { JobStatus::Succeeded } else { JobStatus::Failed };
        scene.ends(2, status, Some(exit_code));
        assert_eq!(scene.standing(2), Standing::Stopped);
    }
}

#[test]
fn no_attempt_of_a_stopped_trial_starts() {
    let mut scene = started("hyperband");
    scene.ends(2, JobStatus::Runnable, None);
    assert!(matches!(&scene.commands[..], [Command::TerminateJobs { jobs, .. }] if *jobs == ["j:2"]));
    assert_eq!(scene.claim(2, 2), Some(StopReason::StoppedEarly { rung: 3 }));
}

#[test]
fn an_interrupted_trial_that_the_others_have_passed_is_ended() {
    for rule in ["hyperband", "interruption"] {
        for has_release in [true, false] {
            let mut scene = started(rule);
            assert!(!scene.stops(1, &[at(3, 0.8)]));
            for (index, value) in [(5, 0.9), (6, 0.9), (7, 0.9), (8, 0.9)] {
                scene.claim(index, 1);
                assert!(!scene.stops(index, &[at(3, value)]));
            }
            if has_release {
                let reply = scene.reports(1, 1, &[at(3, 0.8)], Some(Ending::Released { rollback: None }));
                assert!(matches!(reply, Reply::Stop { .. }), "{reply:?}");
            } else {
                scene.ends(1, JobStatus::Runnable, None);
                assert!(matches!(&scene.commands[..], [Command::TerminateJobs { .. }]), "{:?}", scene.commands);
            }
            assert!(scene.trials[&1].stopped.unwrap().at_interruption, "{rule}");
            assert_eq!(scene.claim(1, 2), Some(StopReason::StoppedEarly { rung: 3 }));
            // A trial that leads continues.
            let reply = scene.reports(5, 1, &[], Some(Ending::Released { rollback: None }));
            assert!(matches!(reply, Reply::Accepted {}), "{reply:?}");
            scene.ends(5, JobStatus::Runnable, Some(INTERRUPTED_EXIT_CODE));
            assert!(scene.commands.is_empty() && scene.claim(5, 2).is_none());
        }
    }
}

#[test]
fn a_trial_that_is_stopped_at_its_claim_releases_its_workspace_at_once() {
    let mut scene = started("hyperband");
    assert!(!scene.stops(1, &[at(3, 0.8)]));
    let others = [(5, 0.9), (6, 0.9), (7, 0.9), (8, 0.9)];
    for (index, _) in others {
        scene.claim(index, 1);
    }
    scene.sweep.plan.as_mut().unwrap().workspace = Some(workspace());
    scene.ends(1, JobStatus::Runnable, None);
    let trial = scene.trials[&1].of();
    let (instance, zone) = ("i-1".to_owned(), "us-east-1a".to_owned());
    scene.take(1, Outcome::AttemptLocated { trial: trial.clone(), attempt: 2, instance, zone });
    let made = Fact::Volume { operation: Some(1), id: "vol-1".to_owned(), state: VolumeState::Available };
    scene.take(1, Outcome::Workspace(trial, made));
    let stage = |scene: &Scene| scene.trials[&1].workspace.as_ref().unwrap().stage.name();
    assert_eq!(stage(&scene), "attaching");
    for (index, value) in others {
        assert!(!scene.stops(index, &[at(3, value)]));
    }
    assert_eq!(scene.claim(1, 2), Some(StopReason::StoppedEarly { rung: 3 }));
    // The next fact of the volume may come to a function that must not detach it.
    assert_eq!(stage(&scene), "disposing");
    assert!(matches!(&scene.commands[..], [Command::Workspace { call: Call::DeleteVolume(_), .. }]));
}

#[test]
fn by_the_rule_of_interruptions_no_report_stops_a_trial() {
    let scene = started("interruption");
    assert!(scene.trials.values().all(|trial| trial.stopped.is_none()) && scene.trials[&2].rungs.len() == 1);
}

#[test]
fn reports_of_a_fenced_attempt_do_not_count() {
    let mut scene = started("hyperband");
    assert_eq!(scene.claim(3, 2), None);
    let reply = scene.reports(3, 1, &[at(3, 0.99)], None);
    assert!(matches!(reply, Reply::Refused { .. }) && scene.trials[&3].rungs.is_empty(), "{reply:?}");
}

fn score(value: f64) -> BTreeMap<String, Metric> {
    [("acc".to_owned(), Metric::of(value, None, Source::Stated))].into()
}

#[test]
fn no_further_trial_starts_once_one_has_reached_the_target() {
    let mut scene = Scene::new("hyperband");
    scene.sweep.plan.as_mut().unwrap().target = Some(0.9);
    scene.sweep.stage = Stage::Running;
    let looks = |scene: &Scene| matches!(&scene.commands[..], [Command::Notify(notification)] if notification.kind == Kind::Running);
    let mut found = Vec::new();
    for index in [0, 3] {
        // The third trial's container has not started.
        scene.ask(index, 1, Ask::Claim(Default::default()));
        if index == 0 {
            scene.runs(index, 1);
        }
        for (sequence, value) in [(1, 0.8), (2, 0.9), (3, 0.95)] {
            let (metrics, rungs) = (score(value), Vec::new());
            scene.ask(
                index,
                1,
                Ask::Report { sequence, metrics, seal: None, ended: None, stalled_seconds: None, rungs },
            );
            found.push(looks(&scene));
        }
    }
    assert_eq!(found, [false, true, false, false, false, false], "sweep-settled looks once");
    scene.runs(3, 1);
    assert!(looks(&scene), "its figures count from the start of its container on");
    scene.trials.remove(&3);

    let trials: Vec<Trial> = scene.trials.values().cloned().collect();
    let (view, sweep, trials) = (view_of(&scene.sweep), scene.sweep.id.clone(), trials.into());
    let inputs = Outcome::ReportInputs { sweep, trials, inputs: Arc::new(ReportInputs::default()) };
    let decision = decide(NOUNS, &view, &inputs.into(), &scene.settings, NOW);
    let Some(Command::Notify(notification)) = decision.commands.first() else { unreachable!("{decision:?}") };
    assert_eq!(notification.kind, Kind::TargetReached);
    let decision = decide(NOUNS, &view, &Outcome::Notified(notification.clone()).into(), &scene.settings, NOW);
    assert!(matches!(decision.commands[..], [Command::CancelWaiting { .. }]), "{decision:?}");
    let Some(Record::Sweep(sweep)) = decision.change.map(|change| change.record) else { unreachable!() };
    scene.sweep = *sweep;
    let reason = StopReason::Target { reached: "trial 0 has acc 0.95".to_owned() };
    assert_eq!((scene.sweep.stopped.clone(), scene.claim(1, 1)), (Some(reason.clone()), Some(reason.clone())));

    let mut cancelled = Trial::new(scene.sweep.id.clone(), 2, job(2));
    (cancelled.status, cancelled.reason) = (JobStatus::Failed, Some(reason.for_batch().as_str().into()));
    assert_eq!(cancelled.standing(), Standing::Stopped);
}
