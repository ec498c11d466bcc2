//! The live view of a sweep, in three parts: reading ([`look`]), deriving what is shown ([`model`]), and drawing
//! ([`draw`]). Tests of the last two need nothing that runs.

mod blockers;
pub(crate) mod draw;
mod eta;
mod grid;
pub(crate) mod look;
mod losses;
pub(crate) mod model;
mod queued;
pub(crate) mod screen;
mod spark;
mod watch_event;
mod zone;

pub(crate) use watch_event::WatchEvent;

#[cfg(test)]
pub(crate) mod samples;
