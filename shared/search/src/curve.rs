//! What a trial has reported at its rungs, as costs.

pub use spotsweep_protocol::rungs::{Curve, Rung};
