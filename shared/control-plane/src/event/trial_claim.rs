//! A runner's request, which is the payload of a Lambda Invoke and not an EventBridge event.

use serde_json::Value;

use super::{Ask, Ending, Event, ParseError, TrialRequest};
use spotsweep_protocol::claim::{ClaimRequest, Machine, Request};
use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_protocol::metric::{MAX_METRIC_NAME, is_metric_name};
use spotsweep_protocol::redact::redacted;

const KIND: &str = "trial-claim";

/// Most metrics of one trial. They fit a row of DynamoDB with room to spare.
const MAX_METRICS: usize = 200;

/// Most characters of an instance's defect.
const MAX_DEFECT: usize = 500;

pub(super) fn parse(raw: Value) -> Result<Event, ParseError> {
    let found: ClaimRequest =
        serde_json::from_value(raw).map_err(|source| ParseError::Detail { kind: KIND, source })?;
    let wrong = |problem: String| ParseError::Value { kind: KIND, problem };
    let sweep = SweepId::parse(&found.sweep).ok_or_else(|| wrong(format!("{:?} is not a sweep id", found.sweep)))?;
    if found.attempt == 0 {
        return Err(wrong("attempt is 0; Batch counts from 1".into()));
    }
    let ask = match found.request {
        Request::Claim(machine) => {
            let defect = machine.defect.map(|text| redacted(&text).chars().take(MAX_DEFECT).collect());
            Ask::Claim(Machine { defect, ..machine })
        }
        Request::Access => Ask::Access,
        Request::Mounted { volume, found, .. } => Ask::Mounted { volume, found },
        Request::Notice { kind } => Ask::Notice(kind),
        Request::Fetching { fetch } => Ask::Fetching(fetch),
        Request::Report { sequence, metrics, seal, stalled_seconds, rungs } => {
            Ask::Report { sequence, metrics, seal, ended: None, stalled_seconds, rungs }
        }
        Request::Release { sequence, metrics, seal, rollback, stalled_seconds, rungs } => {
            Ask::Report { sequence, metrics, seal, ended: Some(Ending::Released { rollback }), stalled_seconds, rungs }
        }
        Request::End { sequence, exit_code, metrics, outputs, seconds, error, stalled_seconds, rungs } => {
            let error = error.map(|error| redacted(&error).into_owned());
            let ended = Ending::Finished { exit_code, outputs, seconds, error };
            Ask::Report { sequence, metrics, seal: None, ended: Some(ended), stalled_seconds, rungs }
        }
    };
    if let Ask::Report { metrics, .. } = &ask
        && (metrics.len() > MAX_METRICS || !metrics.keys().all(|name| is_metric_name(name)))
    {
        let names = "a name that is empty, has control characters, or is over";
        return Err(wrong(format!("more than {MAX_METRICS} metrics, or {names} {MAX_METRIC_NAME} bytes")));
    }
    let ClaimRequest { index, job, attempt, token, secret, .. } = found;
    Ok(Event::TrialRequested(TrialRequest { sweep, index, job: JobId::from(job), attempt, token, secret, ask }))
}
