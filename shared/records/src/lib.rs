//! What the table holds: sweeps, trials and their workspaces, and how each of them changes by what is seen of it.
//!
//! Everything is pure: a record changes by values that are passed in, also the time. Which command follows from a
//! change is decided in the crate `spotsweep-control-plane`.

mod early_stop;
mod stored;
pub mod sweep;
pub mod trial;
pub mod workspace;
