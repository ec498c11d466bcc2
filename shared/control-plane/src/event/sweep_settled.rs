//! Our own events: collect a sweep's results, because every part of it has ended, or to see how it gets on.

use serde::Deserialize;

use super::{Envelope, Event, ParseError, detail};
use crate::sweep::notification::Kind;
use spotsweep_protocol::ids::SweepId;

/// What of an event's detail counts here.
#[derive(Deserialize)]
struct Detail {
    sweep: String,
    page: Option<u32>,
}

pub(super) fn parse(envelope: Envelope) -> Result<Event, ParseError> {
    let decision_log =
        [Kind::Settling, Kind::Running].into_iter().find(|kind| kind.detail_type() == envelope.detail_type);
    let Some(kind) = decision_log else {
        return Ok(Event::Unknown { source: envelope.source, detail_type: envelope.detail_type });
    };
    let kind_name = kind.detail_type();
    let Detail { sweep, page } = detail(kind_name, envelope)?;
    let Some(sweep) = SweepId::parse(&sweep) else {
        return Err(ParseError::Value { kind: kind_name, problem: format!("{sweep:?} is not a sweep id") });
    };
    Ok(if kind == Kind::Running { Event::SweepRunning(sweep, page) } else { Event::SweepSettling(sweep, page) })
}
