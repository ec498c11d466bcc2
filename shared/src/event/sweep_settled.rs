//! Our own event: every part of a sweep has ended, collect the results.

use serde::{Deserialize, Serialize};

use super::{Envelope, Event, ParseError, detail};
use crate::ids::SweepId;

/// EventBridge source of this product's own events.
pub const SOURCE: &str = "spotsweep";

/// EventBridge detail type.
pub const DETAIL_TYPE: &str = "Sweep Settling";

/// The event's detail.
#[derive(Debug, Serialize, Deserialize)]
pub struct Detail {
    /// The sweep's id.
    pub sweep: String,
}

pub(super) fn parse(envelope: Envelope) -> Result<Event, ParseError> {
    let Detail { sweep } = detail(DETAIL_TYPE, envelope)?;
    match SweepId::parse(&sweep) {
        Some(sweep) => Ok(Event::SweepSettling { sweep, checked: false }),
        None => Err(ParseError::Value { kind: DETAIL_TYPE, problem: format!("{sweep:?} is not a sweep id") }),
    }
}
