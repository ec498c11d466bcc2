//! The requests of the runner to `trial-claim` and the replies, each one JSON document.
//!
//! Figures are cumulative over an attempt, so a lost, late or repeated report does no harm.

mod collected;
mod data_keys;
mod data_set;
mod managed_secret;
mod preparation;
mod reply;
mod request;

use serde::{Deserialize, Serialize};

pub use collected::{COLLECTED, Collected, CollectedFile};
pub use data_keys::{KeyCheck, KeyProblem};
pub use data_set::{DATA_CACHE, DATA_FOLDER, DataObject, DataSet, Fetch, Listing, data_variable, listing_key};
pub use managed_secret::ManagedSecret;
pub use preparation::{
    Code, Environment, Git, PACKED_PREFIX, Preparation, SecretPaths, Variable, packed_key, secret_name,
    secret_parameter,
};
pub use reply::{Access, ByteRange, Checkpoints, Grant, Patterns, Prefix, Reply, WandbPlace, WorkspaceGrant};
pub use request::{ClaimRequest, Found, Machine, Market, NoticeKind, Outputs, Request, Rollback, Seal, Task};

/// The variable with the number of GPUs that a job asks for; not set if it asks for none. Batch itself sets no such
/// variable.
pub const GPUS_VARIABLE: &str = "SPOTSWEEP_GPUS";

/// The exit code of a runner that cannot get what the trial needs, such as its secrets or its data, on any instance
/// (`EX_PROTOCOL`).
pub const UNAVAILABLE: u8 = 76;

/// One line of `trials.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialLine {
    /// The trial's index within the sweep.
    pub index: u32,
    /// Parameter names and values, in the sweep file's order.
    pub parameters: serde_json::Map<String, serde_json::Value>,
}
