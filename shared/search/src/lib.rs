//! Adaptive sweeps: which parameters to try next, and which trials to stop early.
//!
//! Pure: no clock, no network, and randomness only from the seeds that a caller gives. Values are costs throughout, so
//! less is better; a caller negates a metric that is maximised.

pub mod curve;
pub mod space;
pub mod stop;
pub mod suggest;
