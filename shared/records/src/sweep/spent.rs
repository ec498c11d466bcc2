//! What a sweep has cost so far, as its record keeps it.

use serde::{Deserialize, Serialize};
use spotsweep_protocol::words::dollars;

/// What a sweep has cost so far. Kept on its record; `ls`, `status` and the budget read it there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Instances, volumes, snapshots and an estimate of the control plane, in USD.
    pub usd: f64,
    /// What the same instance seconds would have cost on demand, in USD.
    pub on_demand_usd: f64,
    /// Of [`Spent::usd`], volumes, snapshots and initialization rates.
    pub storage_usd: f64,
    /// Of [`Spent::storage_usd`], initialization rates.
    #[serde(default)]
    pub initialization_usd: f64,
    /// Of [`Spent::storage_usd`], snapshots that are kept after their trials' ends, for the whole time.
    #[serde(default)]
    pub kept_usd: f64,
    /// Of [`Spent::usd`], functions and table: estimated from the number and length of attempts.
    pub control_plane_usd: f64,
    /// Seconds of attempts whose price is not known.
    pub unpriced_seconds: f64,
}

impl Spent {
    /// This, or what was known before, where prices that were told then are not told now.
    pub fn or_known(self, before: Option<Self>) -> Self {
        before.filter(|before| before.usd > self.usd && before.unpriced_seconds < self.unpriced_seconds).unwrap_or(self)
    }

    /// What was paid, and what it would have cost on demand, in words.
    pub fn sentence(&self) -> String {
        sentence(self.usd, self.on_demand_usd)
    }

    /// Share of the on-demand price that was not paid; negative where spot was dearer, absent where nothing compares.
    pub fn saving(&self) -> Option<f64> {
        (self.on_demand_usd > 0.0).then(|| 1.0 - self.usd / self.on_demand_usd)
    }
}

/// What was paid, and what it would have cost on demand, in USD: `cost $0.00028 (on demand: $0.00055)`.
pub fn sentence(usd: f64, on_demand_usd: f64) -> String {
    format!("cost {} (on demand: {})", dollars(usd), dollars(on_demand_usd))
}
