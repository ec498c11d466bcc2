//! The record of calls, and the faults that tests inject into calls.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ApiError, Service, World};

/// Most calls in the log.
const LOG_LIMIT: usize = 10_000;

/// An injected fault, which the next `times` calls of `action` get.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Fault {
    /// AWS's name of the action, such as `SubmitJob`.
    pub action: String,
    /// Whether the fault comes before or after the effect of the call.
    pub when: FaultWhen,
    /// Number of calls that get the fault.
    #[serde(default = "once")]
    pub times: u32,
    /// The kind of the fault.
    pub kind: FaultKind,
}

fn once() -> u32 {
    1
}

/// Whether a call with a fault has its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultWhen {
    /// The call has no effect.
    Before,
    /// The call has its effect, but the caller does not get the answer.
    After,
}

/// What the caller gets instead of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// The connection closes without an answer.
    Drop,
    /// A server error (HTTP 500).
    Error,
    /// A throttling error.
    Throttle,
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// An error answer.
    Api(ApiError),
    /// No answer, because the connection closes.
    Dropped,
}

/// One answered call.
#[derive(Debug, Clone, Serialize)]
pub struct Call {
    /// The time of the call.
    pub at: Timestamp,
    /// AWS's name of the action.
    pub action: String,
    /// `ok`, an error code, or `dropped`.
    pub result: String,
}

/// Counts of calls, recent calls, and faults that are yet to happen.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) log: VecDeque<Call>,
    faults: Vec<Fault>,
    /// When each action's first call was refused on demand.
    pub(super) refused_since: BTreeMap<String, Timestamp>,
}

impl Calls {
    fn take_fault(&mut self, action: &str) -> Option<(FaultWhen, FaultKind)> {
        let at = self.faults.iter().position(|fault| fault.action == action && fault.times > 0)?;
        let fault = &mut self.faults[at];
        fault.times -= 1;
        let hit = (fault.when, fault.kind);
        if fault.times == 0 {
            self.faults.remove(at);
        }
        Some(hit)
    }

    fn record(&mut self, at: Timestamp, action: &str, result: &str) {
        *self.counts.entry(action.to_owned()).or_default() += 1;
        if self.log.len() == LOG_LIMIT {
            self.log.pop_front();
        }
        self.log.push_back(Call { at, action: action.to_owned(), result: result.to_owned() });
    }
}

impl World {
    /// Injects a fault.
    pub fn fault(&mut self, fault: Fault) {
        self.calls.faults.push(fault);
    }

    /// Returns how often each action was called, whatever the results were.
    pub fn call_counts(&self) -> &BTreeMap<String, u64> {
        &self.calls.counts
    }

    /// Returns the most recent calls, oldest first.
    pub fn call_log(&self) -> impl Iterator<Item = &Call> {
        self.calls.log.iter()
    }

    /// Makes one API call as a client over the network does: it is counted, and it can be throttled or have an injected
    /// fault before or after its effect.
    pub fn call<T>(
        &mut self,
        service: Service,
        action: &str,
        now: Timestamp,
        effect: impl FnOnce(&mut World) -> Result<T, ApiError>,
    ) -> Result<T, Failure> {
        self.advance(now);
        let fault = match self.is_throttled(service, action) {
            true => Some((FaultWhen::Before, FaultKind::Throttle)),
            false => self.calls.take_fault(action),
        };
        let outcome = match fault {
            None => match self.refusal(service, action) {
                Some(error) => Err(Failure::Api(error)),
                None => effect(self).map_err(|error| Failure::Api(self.found_or_denied(service, action, error))),
            },
            Some((FaultWhen::Before, kind)) => Err(failure(service, kind)),
            Some((FaultWhen::After, kind)) => {
                // The result is lost with the answer, even if it is a refusal.
                let _ = effect(self);
                Err(failure(service, kind))
            }
        };
        let result = match &outcome {
            Ok(_) => "ok",
            Err(Failure::Api(error)) => error.code,
            Err(Failure::Dropped) => "dropped",
        };
        self.calls.record(now, action, result);
        outcome
    }
}

fn failure(service: Service, kind: FaultKind) -> Failure {
    match kind {
        FaultKind::Drop => Failure::Dropped,
        FaultKind::Error => Failure::Api(ApiError::server(service)),
        FaultKind::Throttle => Failure::Api(ApiError::throttled(service)),
    }
}
