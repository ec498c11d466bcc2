//! Requests that reach `trial-claim` in addition to those whose answer a runner awaits. Some are a runner's own,
//! repeated late, as retries and stuck invocations cause them; others are forged. A training can call `trial-claim`
//! with the job's role, and it knows the jobs of its trial and of other trials. It does not know their runners'
//! secrets, or a claim token.

use std::time::Duration;

use serde_json::{Value, json};
use spotsweep_protocol::claim::Reply;
use spotsweep_protocol::secret::{SECRET_BYTES, Secret};
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::trial::Trial;

use super::agent::Agent;
use super::watch::Seen;
use super::{Scheduled, Simulation};
use crate::injected_bug::InjectedBug;

/// The largest delay of such a request.
const LATEST: Duration = Duration::from_secs(3600);

/// An attempt that no job has.
const NO_ATTEMPT: u32 = 1077;

/// A metric value that no training reports.
const FORGED: f64 = 9999.0;

/// The secret of forged requests. No runner draws it.
pub(crate) const FORGER: [u8; SECRET_BYTES] = [0xff; SECRET_BYTES];

/// A request whose answer no runner awaits.
#[derive(Debug, Clone)]
pub(super) struct Stray {
    request: Value,
    is_forged: bool,
}

impl Simulation {
    /// Schedules the late and forged requests that follow a runner's request.
    pub(super) fn send_strays(&mut self, agent: &Agent, request: &Value) {
        if self.rng.occurs(self.chaos.late_requests) {
            let delay = self.some_time();
            self.at(delay, Scheduled::Ask(Stray { request: request.clone(), is_forged: false }));
        }
        if self.rng.occurs(self.chaos.forged) {
            let request = self.forge(agent, request);
            let delay = self.some_time();
            self.at(delay, Scheduled::Ask(Stray { request, is_forged: true }));
        }
    }

    /// A random delay; most delays are short.
    fn some_time(&mut self) -> Duration {
        LATEST.mul_f64(self.rng.share().powi(4))
    }

    /// Such a request reaches the function.
    pub(super) fn stray(&mut self, stray: Stray) {
        let Stray { mut request, is_forged } = stray;
        match self.harness.cloud.injected_bug().filter(|_| is_forged) {
            Some(InjectedBug::LeakSecrets) => request["secret"] = self.secret_of(&request),
            Some(InjectedBug::LeakTokens) => request["token"] = self.token_of(&request),
            _other => {}
        }
        let (request, reply) = self.invoke(request);
        let knows_token = request["token"] == self.token_of(&request);
        let is_harmless = |reply: &Reply| match reply {
            Reply::Refused { reason } => knows_token || matches!(reason, StopReason::NoSecret | StopReason::Unproven),
            Reply::Granted(_)
            | Reply::Waiting { .. }
            | Reply::Unavailable { .. }
            | Reply::Access(_)
            | Reply::Accepted {}
            | Reply::Stop { .. } => false,
        };
        if is_forged && !reply.iter().flatten().all(is_harmless) {
            self.watch.is_wrong(Seen::Forged, format!("{request} is answered with {reply:?}"));
        }
    }

    /// Runs until no such request is under way.
    pub(super) fn outlast_strays(&mut self) -> Result<(), String> {
        self.run_until(|run| !run.kernel.has(|entry| matches!(entry, Scheduled::Ask(_))))
    }

    /// A request about the runner's trial that the runner did not make. A claim of the attempt with the claim token,
    /// which only root knows, would take the trial if it came first (docs/security.md). So such a claim is forged only
    /// if the runner has claimed.
    fn forge(&mut self, agent: &Agent, like: &Value) -> Value {
        let has_claimed = self.record_of(like).is_some_and(|trial| trial.claimed_by == Some(agent.container.attempt));
        let attempts = [agent.container.attempt, agent.container.attempt + 1, NO_ATTEMPT];
        let attempt = attempts[self.rng.choose(attempts.len())];
        let figure = json!({ "last": FORGED, "step": null, "min": FORGED, "max": FORGED });
        let metrics = json!({ "accuracy": figure });
        let outputs = json!({ "files": 7, "bytes": 7 });
        let mut asks = vec![
            json!({ "request": "report", "sequence": 500, "metrics": metrics, "stalled_seconds": 9 }),
            json!({ "request": "release", "sequence": 501, "metrics": metrics, "seal": null }),
            json!({ "request": "end", "sequence": 502, "exit_code": 0, "metrics": metrics, "outputs": outputs, "seconds": 1.0 }),
            json!({ "request": "mounted", "volume": "vol-00000000", "found": {}, "seconds": 1.0 }),
            json!({ "request": "notice", "kind": "interruption" }),
            json!({ "request": "access" }),
            json!({ "request": "claim", "instance": "i-00000000", "zone": "us-east-1a" }),
        ];
        if !agent.data.is_empty() {
            asks.push(json!({ "request": "fetching", "fetch": { "bytes": 1, "of_bytes": 2, "seconds": 3 } }));
        }
        let tokens = [Value::Null, json!(Secret::of(FORGER)), like["token"].clone()];
        let drawn = self.rng.choose(asks.len() * tokens.len());
        let (mut forged, token) = (asks[drawn % asks.len()].clone(), tokens[drawn / asks.len()].clone());
        let is_claim = forged["request"] == "claim";
        let claimable = match (token == like["token"], has_claimed) {
            (false, _) => attempt,
            (true, true) => agent.container.attempt,
            (true, false) => NO_ATTEMPT,
        };
        for name in ["sweep", "index", "job"] {
            forged[name] = like[name].clone();
        }
        forged["attempt"] = json!(if is_claim && attempt != NO_ATTEMPT { claimable } else { attempt });
        forged["secret"] = json!(Secret::of(FORGER));
        forged["token"] = token;
        forged
    }

    /// With the bug injected: the runner's secret from the table.
    fn secret_of(&self, request: &Value) -> Value {
        json!(self.record_of(request).and_then(|trial| trial.secret))
    }

    /// With the bug injected: the claim token from the table.
    fn token_of(&self, request: &Value) -> Value {
        let (sweeps, _) = self.harness.store.state();
        let sweep = sweeps.into_iter().find(|sweep| request["sweep"] == sweep.id.as_str());
        json!(sweep.and_then(|sweep| sweep.claim_token))
    }

    fn record_of(&self, request: &Value) -> Option<Trial> {
        let mut found = None;
        self.harness.store.each_trial(|trial| {
            if request["index"] == trial.index && request["sweep"] == trial.sweep.as_str() {
                found = Some(trial.clone());
            }
        });
        found
    }
}
