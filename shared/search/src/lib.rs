//! Adaptive sweeps: suggests the parameters to try next, and decides which trials stop early.
//!
//! The crate is pure: it has no clock and no network, and randomness comes only from seeds that a caller gives. All
//! values are costs, so less is better. A caller negates a metric that is maximised.

pub mod curve;
pub mod space;
pub mod stop;
pub mod suggest;
