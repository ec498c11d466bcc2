#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;
use spotsweep_protocol::claim::{ByteRange, Outputs, Prefix, Reply};
use spotsweep_protocol::ids::JobId;
use spotsweep_protocol::secret::Secret;
use spotsweep_protocol::stall::StallRule;
use spotsweep_sweep_file::Stalled;

use crate::command::Command;
use crate::decide::stall::rule;
use crate::decide::{Decision, decide};
use crate::event::{Ask, Ending, Event, TrialRequest};
use crate::input::Input;
use crate::outcome::Outcome;
use crate::results::diagnosis::why;
use crate::settings::Settings;
use crate::store::{History, Record, Versioned, View};
use crate::sweep::Sweep;
use crate::sweep::notification::Notification;
use crate::trial::{JobStatus, Trial};

/// One trial of a sweep with `stalled: 30m`, and the reports of its attempts.
struct Scene {
    view: View,
    settings: Settings,
    attempt: u32,
    sequence: u64,
}

fn held<T>(record: T) -> Option<Versioned<T>> {
    Some(Versioned { record, version: 1, due: None, recent: History::new() })
}

impl Scene {
    fn new() -> Self {
        let upload = json!({ "bucket": "b", "key": "sweeps/s.yaml", "fingerprint": "v", "uploaded_at": NOW });
        let plan = json!({ "trials": 1, "queue": "q", "definition": "d:1", "attempts": 50,
            "stalls": { "warn_seconds": 1800, "end_seconds": 1800, "is_last": false },
            "parts": [{ "trials": 1, "job": "j" }] });
        let mut sweep = Sweep::new(serde_json::from_value(upload).unwrap());
        sweep.plan = Some(serde_json::from_value(plan).unwrap());
        sweep.claim_token = Some(Secret::of([7; 16]));
        let trial = Trial::new(sweep.id.clone(), 0, JobId::from("j".to_owned()));
        let names = ["SPOTSWEEP_BUCKET", "SPOTSWEEP_CLAIM_FUNCTION", "SPOTSWEEP_TRIAL_ROLE"];
        let settings = Settings::from_variables(|name| names.contains(&name).then(|| "x".into())).unwrap();
        let view = View { sweep: held(sweep), trial: held(trial), ..View::default() };
        Self { view, settings, attempt: 0, sequence: 0 }
    }

    fn trial(&mut self) -> &mut Trial {
        &mut self.view.trial.as_mut().unwrap().record
    }

    /// Decides, and commits what is decided.
    fn take(&mut self, input: impl Into<Input>) -> Decision {
        let decision = decide(&self.view, &input.into(), &self.settings, NOW);
        if let Some(Record::Trial(trial)) = decision.change.as_ref().map(|change| &change.record) {
            *self.trial() = (**trial).clone();
        }
        decision
    }

    fn request(&self, ask: Ask) -> TrialRequest {
        let sweep = &self.view.sweep.as_ref().unwrap().record;
        let (sweep, token, secret) = (sweep.id.clone(), sweep.claim_token.clone(), Some(Secret::of([1; 16])));
        TrialRequest { sweep, index: 0, job: JobId::from("j".to_owned()), attempt: self.attempt, token, secret, ask }
    }

    /// The next attempt claims the trial; the rule that it gets.
    fn claims(&mut self) -> StallRule {
        self.attempt += 1;
        let request = self.request(Ask::Claim(Default::default()));
        self.take(Event::TrialRequested(request.clone()));
        let line = ByteRange { bucket: "b".into(), key: "k".into(), first_byte: 0, last_byte: 1 };
        let outputs = Prefix { bucket: "b".into(), prefix: "p/".into() };
        match self.take(Outcome::LineFound { request, line, outputs, gpus: None }).reply {
            Some(Reply::Granted(grant)) => grant.stalls,
            other => unreachable!("{other:?}"),
        }
    }

    /// The notification that a report leads to.
    fn reports(&mut self, stalled_seconds: Option<u64>, ended: Option<Ending>) -> Option<Notification> {
        self.sequence += 1;
        let (sequence, metrics, rungs) = (self.sequence, BTreeMap::new(), Vec::new());
        let request = self.request(Ask::Report { sequence, metrics, seal: None, ended, stalled_seconds, rungs });
        let decision = self.take(Event::TrialRequested(request));
        assert!(matches!(decision.reply, Some(Reply::Accepted {})), "{:?}", decision.reply);
        let notification = |command| if let Command::Notify(said) = command { Some(said) } else { None };
        decision.commands.into_iter().find_map(notification)
    }

    /// The attempt has ended with this code, as Batch reports it.
    fn ends(&mut self, exit_code: i32) {
        let attempt = self.attempt;
        let trial = self.trial();
        trial.attempt(attempt).exit_code = Some(exit_code);
        trial.attempt(attempt).reason.get_or_insert("Essential container in task exited".into());
        trial.ended = attempt;
    }
}

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

#[test]
fn people_are_notified_before_the_record_has_the_stall_and_once() {
    let mut scene = Scene::new();
    scene.claims();
    let notification = scene.reports(Some(1800), None).unwrap();
    let lines: Vec<&str> = notification.message.lines().collect();
    let expected = "sweeps/s.yaml: trial 0 is stalled: no output, metric, checkpoint or GPU activity for 30 min";
    assert_eq!(lines[0], expected);
    assert!(lines[1].starts_with("attempt 1 is ended after 30 min without a sign"), "{lines:?}");
    assert_eq!((&notification.detail()["trial"], notification.kind.detail_type()), (&json!(0), "Trial Stalled"));
    assert_eq!(scene.trial().stall, None, "not before people are notified");
    scene.take(Outcome::Notified(notification.clone()));
    let note = "attempt 1: no output, metric, checkpoint or GPU activity since 1969-12-31 23:30 UTC";
    assert_eq!(scene.trial().notes(), [note]);
    assert_eq!(scene.reports(Some(1900), None), None, "once for a stall");

    assert_eq!(scene.reports(None, None), None);
    assert_eq!(scene.trial().stall, None, "the training goes on");
    scene.take(Outcome::Notified(notification));
    assert_eq!(scene.trial().stall, None, "the report is not the newest one");
    assert!(scene.reports(Some(1800), None).is_some(), "another stall");
}

#[test]
fn the_third_stall_fails_the_trial() {
    let mut scene = Scene::new();
    for is_last in [false, false] {
        assert_eq!(scene.claims().is_last, is_last);
        let notification = scene.reports(Some(1800), None).unwrap();
        scene.take(Outcome::Notified(notification));
        assert_eq!(scene.reports(Some(1800), Some(Ending::Released { rollback: None })), None);
        scene.ends(75);
        assert!(scene.trial().notes().is_empty() && scene.trial().attempts.values().all(|one| one.was_interrupted()));
    }
    assert!(scene.claims().is_last);
    let notification = scene.reports(Some(1800), None).unwrap();
    assert!(notification.message.contains("the trial fails after 30 min without a sign"), "{}", notification.message);
    let (outputs, error) = (Outputs::default(), None);
    scene.reports(Some(1800), Some(Ending::Finished { exit_code: 124, outputs, error, seconds: 1.0 }));
    scene.ends(124);
    scene.trial().status = JobStatus::Failed;
    assert_eq!(why(scene.trial()), "stalled: no output, metric, checkpoint or GPU activity for 30 min");
}

#[test]
fn a_limit_is_warned_of_after_an_hour_at_most() {
    let of = |seconds| {
        let rule = rule(Some(Stalled::After { seconds }));
        (rule.warn_seconds, rule.end_seconds)
    };
    assert_eq!([of(1800), of(7200)], [(Some(1800), Some(1800)), (Some(3600), Some(7200))]);
    assert_eq!([rule(None), rule(Some(Stalled::Off))], [StallRule::default(), StallRule::OFF]);
}

#[test]
fn a_trial_without_a_limit_is_only_warned_of() {
    let mut scene = Scene::new();
    scene.view.sweep.as_mut().unwrap().record.plan.as_mut().unwrap().stalls = StallRule::default();
    assert_eq!(scene.claims(), StallRule::default());
    let notification = scene.reports(Some(3600), None).unwrap();
    assert!(notification.message.contains("it goes on running"), "{}", notification.message);
}
