//! The records of the table: sweeps, trials and their workspaces, and how observations change each of them.
//!
//! All functions are pure: they get what was observed, and the time, as arguments. The crate `spotsweep-control-plane`
//! decides which commands follow from a change.

mod early_stop;
mod stored;
pub mod sweep;
pub mod trial;
pub mod workspace;
