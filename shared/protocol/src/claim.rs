//! What the runner and `trial-claim` say to each other: one JSON request, one JSON reply.
//!
//! Figures are cumulative over an attempt, so a lost, late or repeated report does no harm.

mod collected;
mod reply;
mod request;

use serde::{Deserialize, Serialize};

pub use collected::{COLLECTED, Collected, CollectedFile};
pub use reply::{
    Access, ByteRange, Checkpoints, CodeGrant, Grant, Patterns, Prefix, Reply, WandbPlace, WorkspaceGrant,
};
pub use request::{ClaimRequest, Found, Machine, Market, NoticeKind, Outputs, Request, Rollback, Seal, Task};

/// The variable that tells a runner how many GPUs its job asks for; not set where it asks for none. Batch itself sets none.
pub const GPUS_VARIABLE: &str = "SPOTSWEEP_GPUS";

/// One line of `trials.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialLine {
    /// The trial's index within the sweep.
    pub index: u32,
    /// Parameter names and values, in the sweep file's order.
    pub parameters: serde_json::Map<String, serde_json::Value>,
}
