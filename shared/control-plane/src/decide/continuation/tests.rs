#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::json;
use spotsweep_protocol::ids::JobId;
use spotsweep_protocol::secret::Secret;
use spotsweep_sweep_file::parse;

use super::*;
use crate::command::Command;
use crate::decide::decide;
use crate::decide::scene::NOUNS;
use crate::event::{Ask, Event, TrialRequest};
use crate::input::{Input, Subject};
use crate::outcome::Outcome;
use crate::settings::Settings;
use crate::store::{History, Record};
use spotsweep_records::sweep::Prepared;
use spotsweep_records::sweep::continuation::Listed;
use spotsweep_records::sweep::notification::{Kind, Notification};
use spotsweep_records::trial::JobStatus;
use spotsweep_records::trial::Trial;
use spotsweep_records::workspace::Workspace;

/// Number of snapshots that the sweep names, which is three pages.
const COUNT: u32 = 250;

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

fn held<T>(record: T, due: Option<Timestamp>) -> Option<Versioned<T>> {
    Some(Versioned { record, version: 1, due, recent: History::new() })
}

/// A sweep, and the trials that it continues from. Each has a snapshot that is kept for an hour.
struct Scene {
    sweep: Sweep,
    due: Option<Timestamp>,
    old: Sweep,
    trials: BTreeMap<u32, Trial>,
    commands: Vec<Command>,
    settings: Settings,
    now: Timestamp,
}

fn kept(index: u32) -> Workspace {
    let volume = json!({ "operation": 1, "id": "vol-1", "zone": "a", "origin": { "origin": "blank" },
        "state": "absent", "used": true, "saved_by": 2 });
    let snapshot = json!({ "id": format!("snap-{index}"), "volume": "vol-1", "state": "completed", "asked_at": at(0) });
    let stage = json!({ "stage": "kept", "since": at(0), "until": at(3600) });
    let workspace = json!({ "stage": stage, "volume": volume, "snapshots": { "2": snapshot }, "operations": 2 });
    serde_json::from_value(workspace).unwrap()
}

fn sweep(key: &str, trials: u32, origin: &serde_json::Value) -> Sweep {
    let upload = json!({ "bucket": "b", "key": key, "fingerprint": "v", "uploaded_at": at(0) });
    let plan = json!({ "trials": trials, "queue": "q", "definition": "d:1", "attempts": 3,
        "workspace": { "size_gib": 20, "origin": origin }, "parts": [{ "trials": trials }] });
    let mut sweep = Sweep::new(serde_json::from_value(upload).unwrap());
    sweep.plan = Some(serde_json::from_value(plan).unwrap());
    sweep.claim_token = Some(Secret::of([7; 16]));
    sweep
}

impl Scene {
    /// The sweep's parameters are stored, and an invocation is killed after so many steps.
    fn after(steps: usize) -> Self {
        let mut old = sweep("sweeps/old.yaml", COUNT, &json!({ "origin": "blank" }));
        old.enter(Stage::Settled);
        let trial = |index| {
            let mut trial = Trial::new(old.id.clone(), index, JobId { parent: "j".into(), child: Some(index) });
            (trial.status, trial.workspace) = (JobStatus::Failed, Some(kept(index)));
            trial
        };
        let trials = (0..COUNT).map(|index| (index, trial(index))).collect();
        let sweep = sweep("sweeps/new.yaml", COUNT, &json!({ "origin": "snapshots" }));
        let settings = Settings::from_variables(|_| Some("0".into())).unwrap();
        let settings = Settings { lease: std::time::Duration::from_secs(120), ..settings };
        let mut scene = Self { sweep, due: None, old, trials, commands: Vec::new(), settings, now: at(60) };
        let context = Context { settings: &scene.settings, now: scene.now };
        let decision = keep(scene.sweep.clone(), 0, context);
        let mut next = scene.take(decision);
        scene.run(&mut next, steps);
        scene
    }

    fn take(&mut self, decision: Decision) -> VecDeque<Input> {
        match decision.change.map(|change| (change.record, change.due)) {
            Some((Record::Sweep(sweep), due)) => (self.sweep, self.due) = (*sweep, due),
            Some((Record::Trial(trial), _)) => drop(self.trials.insert(trial.index, *trial)),
            None => {}
        }
        let mut next: VecDeque<Input> = decision.next.into_iter().map(Input::Followup).collect();
        for command in decision.commands {
            if let Command::Notify(Notification { sweep, kind: Kind::Keeping, .. }) = &command {
                next.push_back(Event::SweepKeeping(sweep.clone()).into());
            } else if let Command::ReadSnapshots { sweep, first, .. } = &command {
                let named: Vec<String> = (0..COUNT).map(|index| format!("snap-{index}")).collect();
                next.push_back(Outcome::SnapshotsRead(Continuation::page(sweep.clone(), *first, &named)).into());
            } else {
                self.commands.push(command);
            }
        }
        next
    }

    fn run(&mut self, next: &mut VecDeque<Input>, steps: usize) {
        for _ in 0..steps {
            let Some(input) = next.pop_front() else { return };
            let view = match input.about().subject.unwrap() {
                Subject::Sweep(id) if id == self.sweep.id => {
                    View { sweep: held(self.sweep.clone(), self.due), ..View::default() }
                }
                Subject::Trial(_, index) => View {
                    sweep: held(self.old.clone(), None),
                    trial: held(self.trials[&index].clone(), None),
                    ..View::default()
                },
                Subject::Resource(snapshot) => {
                    let index = snapshot.rsplit('-').next().unwrap().parse().unwrap();
                    let known = self.trials.get(&index).map(Trial::of);
                    View { referring: known.into_iter().collect(), ..View::default() }
                }
                Subject::Sweep(_) | Subject::Comparison(..) | Subject::Settlement(..) | Subject::Overdue => {
                    unreachable!("{input:?}")
                }
            };
            let decision = decide(NOUNS, &view, &input, &self.settings, self.now);
            next.extend(self.take(decision));
        }
    }

    fn reconcile(&mut self) {
        self.now = self.now.max(self.due.unwrap());
        let mut next = VecDeque::from([Input::Followup(Followup::SweepOverdue(self.sweep.id.clone()))]);
        self.run(&mut next, usize::MAX);
    }

    /// Reconciles a trial after the time for which it is kept.
    fn look_after(&mut self, index: u32, after: i64) -> &'static str {
        self.now = at(after);
        let of = self.trials[&index].of();
        self.run(&mut VecDeque::from([Input::Followup(Followup::Workspace(of, Fact::Due))]), usize::MAX);
        self.trials[&index].workspace.as_ref().unwrap().stage.name()
    }

    fn noted(&self) -> usize {
        let has_noted = |trial: &&Trial| trial.workspace.as_ref().unwrap().continued_by.contains(&self.sweep.id);
        self.trials.values().filter(has_noted).count()
    }

    fn submissions(&self) -> usize {
        self.commands.iter().filter(|command| matches!(command, Command::SubmitPart(_))).count()
    }
}

#[test]
fn nothing_is_submitted_before_all_that_a_sweep_goes_on_from_is_kept() {
    // Three steps of each page are the event, the list that is read, and the commit. Each snapshot takes two steps.
    for dies_after in [0, 1, 2, 3, 150, 201, 202, 203, 204, 205, 206, 402, 406, 500, 507, 508, 509, 510] {
        let mut scene = Scene::after(dies_after);
        assert!(scene.submissions() == 0 || scene.noted() == COUNT as usize, "after {dies_after} steps");
        while let Stage::Keeping { .. } = scene.sweep.stage {
            scene.reconcile();
        }
        assert_eq!((scene.noted(), scene.submissions()), (COUNT as usize, 1), "after {dies_after} steps");
        assert_eq!(scene.sweep.stage, Stage::Submitting { part: 0 });
    }
}

#[test]
fn what_is_deleted_already_rejects_the_file() {
    let mut scene = Scene::after(10);
    scene.trials.get_mut(&200).unwrap().workspace.as_mut().unwrap().stage =
        spotsweep_records::workspace::Stage::Disposing;
    scene.reconcile();
    assert_eq!(scene.submissions(), 0);
    let Some(Command::WriteRejection { rejected, .. }) = scene.commands.last() else { unreachable!() };
    assert!(rejected.problems[0].message.contains("snap-200 is not kept any more"), "{rejected:?}");
    // A snapshot of no trial belongs to a person, so it stays and no trial notes anything.
    let mut scene = Scene::after(10);
    scene.trials.remove(&200);
    scene.reconcile();
    assert_eq!((scene.noted(), scene.submissions()), (COUNT as usize - 1, 1));
}

#[test]
fn what_is_kept_goes_when_no_open_sweep_needs_it() {
    const DAY: i64 = 86_400;
    let mut scene = Scene::after(usize::MAX);
    assert_eq!(scene.look_after(0, 3700), "kept", "an hour was its time without the sweep");
    assert_eq!(scene.look_after(0, 2 * DAY), "kept", "the sweep is open");
    scene.sweep.enter(Stage::Settled);
    assert_eq!(scene.look_after(0, 2 * DAY + 3600), "kept", "its time has not passed");
    assert_eq!(scene.look_after(0, 4 * DAY), "disposing");
    // The sweep's record is gone, or the sweep is open for longer than the longest time for which a snapshot is kept.
    scene.sweep.enter(Stage::Running);
    assert_eq!(scene.look_after(1, 44 * DAY), "kept");
    assert_eq!(scene.look_after(1, 46 * DAY), "disposing");
}

/// Returns what the first claim of a sweep's second trial reads, and the trial's record after the object has `listed`.
fn first_claim(sweep: &Sweep, listed: &str) -> (String, Trial) {
    let settings = Settings::from_variables(|_| Some("0".into())).unwrap();
    let (id, job) = (sweep.id.clone(), JobId { parent: "j".into(), child: Some(1) });
    let (token, secret, ask) = (sweep.claim_token.clone(), Some(Secret::of([1; 16])), Ask::Claim(Default::default()));
    let claim = TrialRequest { sweep: id, index: 1, job, attempt: 1, token, secret, ask };
    let view = View { sweep: held(sweep.clone(), None), ..View::default() };
    let claimed = decide(NOUNS, &view, &Event::TrialRequested(claim).into(), &settings, at(60));
    let [Command::FindStart { request, listed: from, .. }] = claimed.commands.as_slice() else {
        unreachable!("{claimed:?}")
    };
    let start = from.start(listed.as_bytes(), 1).unwrap();
    let found = Outcome::StartFound { request: request.clone(), start };
    let change = decide(NOUNS, &view, &found.into(), &settings, at(60)).change.unwrap();
    let Record::Trial(trial) = change.record else { unreachable!() };
    (from.key(&sweep.id), *trial)
}

#[test]
fn a_sweep_of_before_there_were_other_starts_still_reads_its_snapshots() {
    // The plan of an older sweep has no `restores`, and its list is in the bucket already.
    let mut older = sweep("sweeps/older.yaml", 2, &json!({ "origin": "snapshots" }));
    older.stage = Stage::Running;
    let (key, trial) = first_claim(&older, r#"["snap-0", "snap-1"]"#);
    assert_eq!(key, format!("results/{}/snapshots.json", older.id));
    assert_eq!((trial.starts_from.as_deref(), trial.restores), (Some("snap-1"), None));

    let mut restoring = sweep("sweeps/restoring.yaml", 2, &json!({ "origin": "blank" }));
    restoring.stage = Stage::Running;
    restoring.plan.as_mut().unwrap().restores = true;
    let of = r#"{"checkpoints_of": ["old-0123456789ab/3", "old-0123456789ab/4"]}"#;
    let (key, trial) = first_claim(&restoring, of);
    assert_eq!(key, format!("results/{}/starts.json", restoring.id));
    assert_eq!((trial.starts_from, trial.restores.unwrap().index), (None, 4));
}

#[test]
fn what_a_sweep_goes_on_from_is_written_where_it_is_read() {
    let sweep = sweep("sweeps/new.yaml", 1, &json!({ "origin": "blank" }));
    let written = |start: &str| {
        let file = parse("new.yaml", "1", format!("trials: [{{a: 1}}]\nspotsweep: {{{start}}}\n").as_bytes()).unwrap();
        let prepared = Prepared { file: Arc::new(file), plan: sweep.plan.clone().unwrap(), disks: Vec::new() };
        let objects = prepared.starts(&sweep.id).unwrap().into_iter();
        objects.map(|(key, listed)| (key, String::from_utf8(listed).unwrap())).collect::<Vec<_>>()
    };
    let (snapshots, starts) = (Listed::Snapshots.key(&sweep.id), Listed::Checkpoints.key(&sweep.id));
    let ids = r#"["snap-0a"]"#.to_owned();
    let of = r#"{"checkpoints_of":["old-0123456789ab/3"]}"#.to_owned();
    assert!(written("attempts: 20").is_empty());
    assert_eq!(written("workspace: {snapshots: [snap-0a]}"), [(snapshots.clone(), ids.clone())]);
    assert_eq!(written("checkpoints_of: [old-0123456789ab/3]"), [(starts.clone(), of.clone())]);
    let both = "workspace: {snapshot: snap-0a}, checkpoints_of: [old-0123456789ab/3]";
    assert_eq!(written(both), [(snapshots, ids), (starts, of)]);
}
