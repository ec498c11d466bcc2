//! The live view of a sweep, in three parts: reading ([`look`]), deriving what is shown ([`model`]), and drawing
//! ([`draw`]). Tests of the last two need nothing that runs.

mod blockers;
pub(crate) mod draw;
mod eta;
mod grid;
mod happening;
pub(crate) mod look;
pub(crate) mod model;
mod queued;
pub(crate) mod screen;
mod spark;
mod toll;
mod zone;

pub(crate) use happening::Happening;

#[cfg(test)]
pub(crate) mod samples;
