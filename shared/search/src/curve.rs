//! The costs that a trial has reported at its rungs.

pub use spotsweep_protocol::rungs::{Curve, Rung};
