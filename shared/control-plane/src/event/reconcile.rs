//! The schedule's event: nothing in it matters but that it came.

use super::Event;

pub(super) const DETAIL_TYPE: &str = "Scheduled Event";

pub(super) fn parse() -> Event {
    Event::ReconcileDue
}
