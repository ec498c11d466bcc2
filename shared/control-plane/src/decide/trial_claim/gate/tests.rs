#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;
use spotsweep_protocol::claim::{Fetch, Found, Machine, NoticeKind, Outputs, Reply, Seal};
use spotsweep_protocol::ids::JobId;
use spotsweep_protocol::metric::{Metric, Source};
use spotsweep_protocol::secret::Secret;
use spotsweep_protocol::stop::StopReason;

use crate::decide::scene::NOUNS;
use crate::decide::{Decision, decide};
use crate::event::{Ask, Ending, Event, TrialRequest};
use crate::settings::Settings;
use crate::store::{History, Versioned, View};
use spotsweep_records::sweep::{Stage, Sweep};
use spotsweep_records::trial::{JobStatus, Trial};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
/// The seed of the sweep's claim token.
const TOKEN: u8 = 7;

fn secret(of: u8) -> Option<Secret> {
    Some(Secret::of([of; 16]))
}

/// A sweep of one trial with three attempts.
struct Scene {
    sweep: Sweep,
    trial: Option<Trial>,
}

impl Scene {
    fn new() -> Self {
        let upload = json!({ "bucket": "b", "key": "sweeps/s.yaml", "fingerprint": "v", "uploaded_at": NOW });
        let plan = json!({ "trials": 1, "queue": "q", "definition": "d:1", "attempts": 3,
            "parts": [{ "trials": 1, "job": "j" }] });
        let mut sweep = Sweep::new(serde_json::from_value(upload).unwrap());
        sweep.plan = Some(serde_json::from_value(plan).unwrap());
        sweep.enter(Stage::Running);
        sweep.claim_token = secret(TOKEN);
        Self { sweep, trial: None }
    }

    /// Returns a scene in which attempt 1 has claimed with secret 1 and has reported.
    fn claimed() -> Self {
        let mut scene = Self::new();
        assert!(scene.takes(1, 1, claim()).change.is_some());
        assert!(scene.takes(1, 1, report(7, None)).change.is_some());
        scene
    }

    fn decide(&self, attempt: u32, secret: Option<Secret>, ask: Ask) -> Decision {
        let (sweep, job, token) = (self.sweep.id.clone(), JobId::from("j".to_owned()), self.sweep.claim_token.clone());
        self.answer(TrialRequest { sweep, index: 0, job, attempt, token, secret, ask })
    }

    fn answer(&self, request: TrialRequest) -> Decision {
        let held = |record| Versioned { record, version: 1, due: None, recent: History::new() };
        let sweep = Versioned { record: self.sweep.clone(), version: 1, due: None, recent: History::new() };
        let view = View { sweep: Some(sweep), trial: self.trial.clone().map(held), ..View::default() };
        let settings = Settings::from_variables(|_| Some("0".into())).unwrap();
        decide(NOUNS, &view, &Event::TrialRequested(request).into(), &settings, NOW)
    }

    fn takes(&mut self, attempt: u32, of: u8, ask: Ask) -> Decision {
        let decision = self.decide(attempt, secret(of), ask);
        if let Some(crate::store::Record::Trial(trial)) = decision.change.as_ref().map(|change| &change.record) {
            self.trial = Some((**trial).clone());
        }
        decision
    }

    /// Checks that every kind of request is refused for this reason and changes nothing.
    fn refuses(&self, attempt: u32, secret: &Option<Secret>, asks: Vec<Ask>, expected: &StopReason) {
        for ask in asks {
            let decision = self.decide(attempt, secret.clone(), ask.clone());
            assert_eq!(decision.reply, Some(Reply::Refused { reason: expected.clone() }), "{ask:?}");
            assert!(decision.change.is_none() && decision.commands.is_empty() && decision.next.is_empty(), "{ask:?}");
        }
    }
}

fn claim() -> Ask {
    Ask::Claim(Machine::default())
}

fn report(sequence: u64, ended: Option<Ending>) -> Ask {
    let metrics = BTreeMap::from([("score".to_owned(), Metric::of(9999.0, None, Source::Stated))]);
    Ask::Report { sequence, metrics, seal: None, ended, stalled_seconds: None, rungs: Vec::new() }
}

fn finished() -> Ending {
    Ending::Finished {
        exit_code: 0,
        outputs: Outputs { files: 7, bytes: 7, ..Outputs::default() },
        error: None,
        seconds: 1.0,
    }
}

/// Returns all kinds of requests except a claim.
fn other_asks() -> Vec<Ask> {
    let seal = Some(Seal { files: 1, bytes: 1, newest: None });
    vec![
        Ask::Access,
        Ask::Mounted { volume: "vol-00000001".into(), found: Found::default() },
        Ask::Notice(NoticeKind::Interruption),
        Ask::Notice(NoticeKind::Rebalance),
        Ask::Fetching(Fetch { bytes: 1, of_bytes: 2, seconds: 1 }),
        report(500, None),
        Ask::Report {
            sequence: 501,
            metrics: BTreeMap::new(),
            seal,
            ended: None,
            stalled_seconds: Some(9),
            rungs: Vec::new(),
        },
        report(502, Some(Ending::Released { rollback: None })),
        report(503, Some(finished())),
    ]
}

fn all() -> Vec<Ask> {
    other_asks().into_iter().chain([claim()]).collect()
}

#[test]
fn an_attempt_that_never_claimed_is_refused() {
    for scene in [Scene::new(), Scene::claimed()] {
        for attempt in [2, 3, 77, u32::MAX] {
            scene.refuses(attempt, &secret(1), other_asks(), &StopReason::NotClaimed { attempt });
        }
    }
    Scene::new().refuses(1, &secret(1), other_asks(), &StopReason::NotClaimed { attempt: 1 });
}

#[test]
fn an_attempt_that_its_job_cannot_have_does_not_begin() {
    for (round, attempt) in [(0, 4), (0, 77), (1, 10), (1, 14)] {
        let mut scene = Scene::claimed();
        scene.trial.as_mut().unwrap().round = round;
        let what = format!("attempt {attempt} of the trial's job");
        scene.refuses(attempt, &secret(2), vec![claim()], &StopReason::NotFound { what });
    }
    let mut scene = Scene::claimed();
    assert!(scene.takes(3, 3, claim()).change.is_some(), "Batch's events of attempt 2 are late");
    scene.refuses(1, &secret(1), all(), &StopReason::Fenced { attempt: 1 });
}

#[test]
fn an_attempt_that_batch_has_reported_ended_is_refused() {
    let mut scene = Scene::claimed();
    scene.trial.as_mut().unwrap().ended = 1;
    scene.refuses(1, &secret(1), all(), &StopReason::AttemptEnded { attempt: 1 });
    assert!(scene.takes(2, 2, claim()).change.is_some(), "the next one begins");
}

#[test]
fn nothing_changes_a_trial_that_has_ended() {
    for status in [JobStatus::Succeeded, JobStatus::Failed] {
        let mut scene = Scene::claimed();
        scene.trial.as_mut().unwrap().status = status;
        scene.refuses(1, &secret(1), all(), &StopReason::TrialEnded);
        scene.refuses(2, &secret(2), all(), &StopReason::TrialEnded);
    }
    for stage in [Stage::Settled, Stage::Rejected] {
        let mut scene = Scene::claimed();
        scene.sweep.enter(stage);
        scene.refuses(1, &secret(1), all(), &StopReason::TrialEnded);
    }
}

#[test]
fn another_runner_of_the_attempt_is_refused() {
    let scene = Scene::claimed();
    scene.refuses(1, &secret(2), all(), &StopReason::OtherRunner { attempt: 1 });
    scene.refuses(1, &None, all(), &StopReason::NoSecret);
}

/// A training of another sweep can send everything except the claim token. It gets the same refusal for each trial,
/// whether the trial exists or not, and whatever else the request says.
#[test]
fn without_the_claim_token_a_refusal_tells_nothing() {
    let ended = |mut scene: Scene, status| {
        scene.trial.as_mut().unwrap().status = status;
        scene
    };
    let unplanned = {
        let mut scene = Scene::new();
        (scene.sweep.plan, scene.sweep.claim_token) = (None, None);
        scene
    };
    let scenes = [Scene::new(), Scene::claimed(), ended(Scene::claimed(), JobStatus::Succeeded), unplanned];
    for scene in &scenes {
        for ((index, job, attempt), ask) in [(0, "j", 1), (0, "j", 2), (0, "k", 1), (7, "j", 1)]
            .into_iter()
            .flat_map(|of| all().into_iter().map(move |ask| (of, ask)))
        {
            let asked = |token: Option<u8>, of: Option<u8>| {
                let (token, secret) = (token.and_then(secret), of.and_then(secret));
                let (sweep, job, ask) = (scene.sweep.id.clone(), JobId::from(job.to_owned()), ask.clone());
                let decision = scene.answer(TrialRequest { sweep, index, job, attempt, token, secret, ask });
                assert!(decision.change.is_none() && decision.commands.is_empty() && decision.next.is_empty());
                decision.reply
            };
            let refused = |reason| Some(Reply::Refused { reason });
            for of in [1, 2] {
                assert_eq!(asked(Some(9), Some(of)), refused(StopReason::Unproven), "{index} {job} {attempt} {ask:?}");
                assert_eq!(asked(None, Some(of)), refused(StopReason::NoSecret), "{index} {job} {attempt} {ask:?}");
            }
            assert_eq!(asked(Some(TOKEN), None), refused(StopReason::NoSecret), "{index} {job} {attempt} {ask:?}");
        }
    }
    let text = serde_json::to_string(&StopReason::Unproven).unwrap();
    assert_eq!(text, r#"{"stop":"unproven"}"#, "no word of what is stored");
    let scene = Scene::claimed();
    for (index, job) in [(0, "k"), (7, "j")] {
        let (sweep, job, token) = (scene.sweep.id.clone(), JobId::from(job.to_owned()), secret(TOKEN));
        let request = TrialRequest { sweep, index, job, attempt: 1, token, secret: secret(1), ask: claim() };
        assert_eq!(scene.answer(request).reply, Some(Reply::Refused { reason: StopReason::Unproven }));
    }
}

/// Otherwise a forged claim could take the trial between its end and Batch's report, and change its score.
#[test]
fn after_a_reported_success_a_claim_waits_for_batch() {
    let mut scene = Scene::claimed();
    assert!(scene.takes(1, 1, report(8, Some(finished()))).change.is_some());
    let early = scene.takes(2, 2, claim());
    assert!(matches!(early.reply, Some(Reply::Waiting { .. })) && early.change.is_none(), "{:?}", early.reply);
    scene.refuses(2, &secret(2), other_asks(), &StopReason::NotClaimed { attempt: 2 });
    scene.trial.as_mut().unwrap().ended = 1;
    assert!(scene.takes(2, 2, claim()).change.is_some(), "its instance was taken before it could exit");
}

#[test]
fn the_runner_repeats_what_was_not_answered() {
    let mut scene = Scene::claimed();
    assert!(scene.takes(1, 1, claim()).commands.len() == 1, "the claim is granted again");
    for last in [Ending::Released { rollback: None }, finished()] {
        let mut scene = Scene::claimed();
        assert!(scene.takes(1, 1, report(8, Some(last.clone()))).change.is_some());
        let before = scene.trial.clone();
        for (ended, status) in [(0, JobStatus::Running), (1, JobStatus::Runnable), (1, JobStatus::Succeeded)] {
            let trial = scene.trial.as_mut().unwrap();
            (trial.ended, trial.status) = (ended, status);
            let again = scene.takes(1, 1, report(8, Some(last.clone())));
            assert_eq!((again.reply, again.change, again.commands.len()), (Some(Reply::Accepted {}), None, 0));
        }
        // A request of another runner with the same number is not a repetition.
        let again = scene.decide(1, secret(2), report(8, Some(last)));
        assert!(matches!(again.reply, Some(Reply::Refused { .. })));
        assert_eq!(scene.trial.map(|trial| trial.metrics), before.map(|trial| trial.metrics));
    }
}
