//! For tests: one trial with its attempts, and the decisions about their requests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;
use spotsweep_protocol::claim::{ByteRange, Prefix, Reply};
use spotsweep_protocol::ids::JobId;
use spotsweep_protocol::secret::Secret;
use spotsweep_protocol::stall::StallRule;

use super::{
    BatchJobState, Decision, EbsState, Noun, Reconcile, SpotInterruption, SweepSettled, SweepUpload, TrialClaim, decide,
};
use crate::command::Command;
use crate::event::{Ask, Ending, Event, TrialRequest};
use crate::input::Input;
use crate::outcome::Outcome;
use crate::settings::Settings;
use crate::store::{History, Record, Versioned, View};
use spotsweep_records::sweep::Sweep;
use spotsweep_records::sweep::notification::Notification;
use spotsweep_records::trial::Trial;

/// The nouns of all functions.
pub(super) const NOUNS: &[&dyn Noun] =
    &[&SweepUpload, &BatchJobState, &SpotInterruption, &EbsState, &TrialClaim, &SweepSettled, &Reconcile];

/// The time at which a scene begins.
pub(super) const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// One trial of a sweep with `stalled: 30m`, and the reports of its attempts.
pub(super) struct Scene {
    pub(super) view: View,
    pub(super) now: Timestamp,
    settings: Settings,
    attempt: u32,
    sequence: u64,
}

fn held<T>(record: T) -> Option<Versioned<T>> {
    Some(Versioned { record, version: 1, due: None, recent: History::new() })
}

impl Scene {
    pub(super) fn new() -> Self {
        let upload = json!({ "bucket": "b", "key": "sweeps/s.yaml", "fingerprint": "v", "uploaded_at": NOW });
        let plan = json!({ "trials": 1, "queue": "q", "definition": "d:1", "attempts": 50,
            "stalls": { "warn_seconds": 1800, "end_seconds": 1800, "is_last": false },
            "parts": [{ "trials": 1, "job": "j" }] });
        let mut sweep = Sweep::new(serde_json::from_value(upload).unwrap());
        sweep.plan = Some(serde_json::from_value(plan).unwrap());
        sweep.claim_token = Some(Secret::of([7; 16]));
        let trial = Trial::new(sweep.id.clone(), 0, JobId::from("j".to_owned()));
        let names = ["SPOTSWEEP_BUCKET", "SPOTSWEEP_CLAIM_FUNCTION", "SPOTSWEEP_TRIAL_ROLE", "SPOTSWEEP_PARAMETERS"];
        let settings = Settings::from_variables(|name| names.contains(&name).then(|| "x".into())).unwrap();
        let view = View { sweep: held(sweep), trial: held(trial), ..View::default() };
        Self { view, now: NOW, settings, attempt: 0, sequence: 0 }
    }

    pub(super) fn trial(&mut self) -> &mut Trial {
        &mut self.view.trial.as_mut().unwrap().record
    }

    /// Decides an input, and commits the decision.
    pub(super) fn take(&mut self, input: impl Into<Input>) -> Decision {
        let decision = decide(NOUNS, &self.view, &input.into(), &self.settings, self.now);
        if let Some(Record::Trial(trial)) = decision.change.as_ref().map(|change| &change.record) {
            *self.trial() = (**trial).clone();
        }
        decision
    }

    pub(super) fn request(&self, ask: Ask) -> TrialRequest {
        let sweep = &self.view.sweep.as_ref().unwrap().record;
        let (sweep, token, secret) = (sweep.id.clone(), sweep.claim_token.clone(), Some(Secret::of([1; 16])));
        TrialRequest { sweep, index: 0, job: JobId::from("j".to_owned()), attempt: self.attempt, token, secret, ask }
    }

    /// Claims the trial for the next attempt, and returns the rule of stalls that it gets.
    pub(super) fn claims(&mut self) -> StallRule {
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

    /// Sends a report, and returns the notification that follows.
    pub(super) fn reports(&mut self, stalled_seconds: Option<u64>, ended: Option<Ending>) -> Option<Notification> {
        self.sequence += 1;
        let (sequence, metrics, rungs) = (self.sequence, BTreeMap::new(), Vec::new());
        let request = self.request(Ask::Report { sequence, metrics, seal: None, ended, stalled_seconds, rungs });
        let decision = self.take(Event::TrialRequested(request));
        assert!(matches!(decision.reply, Some(Reply::Accepted {})), "{:?}", decision.reply);
        let notification = |command| if let Command::Notify(said) = command { Some(said) } else { None };
        decision.commands.into_iter().find_map(notification)
    }

    /// Ends the attempt with this exit code, as Batch reports it.
    pub(super) fn ends(&mut self, exit_code: i32) {
        let attempt = self.attempt;
        let trial = self.trial();
        trial.attempt(attempt).exit_code = Some(exit_code);
        trial.attempt(attempt).reason.get_or_insert("Essential container in task exited".into());
        trial.ended = attempt;
    }
}
