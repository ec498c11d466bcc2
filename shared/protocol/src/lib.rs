//! The types that the runner and the control plane share: the requests of an attempt and their replies, ids, and the
//! command line of a trial. The runner's requests need no other crate of this workspace.

pub mod cause;
pub mod claim;
pub mod command_line;
mod expression;
pub mod failure;
pub mod functions;
pub mod ids;
pub mod mask;
pub mod metric;
pub mod number;
pub mod patterns;
pub mod python;
pub mod redact;
pub mod rungs;
pub mod runner_log;
pub mod secret;
pub mod silence;
pub mod stall;
pub mod stop;
pub mod visible;
pub mod wildcards;
pub mod words;
