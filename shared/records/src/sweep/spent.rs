//! What a sweep has cost so far.

use serde::{Deserialize, Serialize};
use spotsweep_protocol::words::dollars;

/// What a sweep has cost so far. `ls`, `status` and the budget read it from the sweep's record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Instances, volumes, snapshots and an estimate of the control plane, in USD.
    pub usd: f64,
    /// What the same instance seconds would have cost on demand, in USD.
    pub on_demand_usd: f64,
    /// The part of [`Spent::usd`] for volumes, snapshots and initialization rates.
    pub storage_usd: f64,
    /// The part of [`Spent::storage_usd`] for initialization rates.
    #[serde(default)]
    pub initialization_usd: f64,
    /// The part of [`Spent::storage_usd`] for snapshots that are kept after their trials' ends, for the whole time.
    #[serde(default)]
    pub kept_usd: f64,
    /// The part of [`Spent::usd`] for functions and table, estimated from the number and length of attempts.
    pub control_plane_usd: f64,
    /// Seconds of attempts without a known price.
    pub unpriced_seconds: f64,
}

impl Spent {
    /// Returns this cost, or the one before if prices that were known then are missing now.
    pub fn or_known(self, before: Option<Self>) -> Self {
        before.filter(|before| before.usd > self.usd && before.unpriced_seconds < self.unpriced_seconds).unwrap_or(self)
    }

    /// Returns the cost and what it would have been on demand, as text.
    pub fn sentence(&self) -> String {
        sentence(self.usd, self.on_demand_usd)
    }

    /// Returns the saved share of the on-demand price. It is negative if Spot cost more, and absent without an
    /// on-demand price.
    pub fn saving(&self) -> Option<f64> {
        (self.on_demand_usd > 0.0).then(|| 1.0 - self.usd / self.on_demand_usd)
    }
}

/// Returns the cost and the on-demand cost in USD as text: `cost $0.00028 (on demand: $0.00055)`.
pub fn sentence(usd: f64, on_demand_usd: f64) -> String {
    format!("cost {} (on demand: {})", dollars(usd), dollars(on_demand_usd))
}
