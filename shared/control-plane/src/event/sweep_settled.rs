//! Spotsweep's own events: a sweep's results have to be collected because every part has ended, its progress has to be
//! checked, or it has to keep the snapshots that it continues from.

use serde::Deserialize;

use super::{Envelope, Event, ParseError, detail};
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::notification::Kind;

/// The fields of an event's detail that are used here.
#[derive(Deserialize)]
struct Detail {
    sweep: String,
    page: Option<u32>,
}

/// Makes the event about a sweep and a page of its trials.
type OfSweep = fn(SweepId, Option<u32>) -> Event;

pub(super) fn parse(envelope: Envelope) -> Result<Event, ParseError> {
    let ours: [(Kind, OfSweep); 3] = [
        (Kind::Keeping, |sweep, _page| Event::SweepKeeping(sweep)),
        (Kind::Settling, Event::SweepSettling),
        (Kind::Running, Event::SweepRunning),
    ];
    let Some((kind, event)) = ours.into_iter().find(|(kind, _)| kind.detail_type() == envelope.detail_type) else {
        return Ok(Event::Unknown { source: envelope.source, detail_type: envelope.detail_type });
    };
    let kind_name = kind.detail_type();
    let Detail { sweep, page } = detail(kind_name, envelope)?;
    let Some(sweep) = SweepId::parse(&sweep) else {
        return Err(ParseError::Value { kind: kind_name, problem: format!("{sweep:?} is not a sweep id") });
    };
    Ok(event(sweep, page))
}
