//! The live view of a sweep: reading ([`look`]), what that comes to ([`model`]), and drawing ([`draw`]), apart from
//! each other, so that all but the first can be tested without anything that runs.

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
