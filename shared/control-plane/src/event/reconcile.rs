//! The schedule's event. Its content is not used.

use super::Event;

pub(super) const DETAIL_TYPE: &str = "Scheduled Event";

pub(super) fn parse() -> Event {
    Event::ReconcileDue
}
