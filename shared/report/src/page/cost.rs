//! The costs of a sweep on the page.

use super::Sources;
use super::model::{CostTotals, TrialCost};
use crate::cost::Cost;

pub(super) fn of_trial(cost: &Cost) -> TrialCost {
    TrialCost { spot: cost.instance_usd, on_demand: cost.on_demand_usd, storage: cost.storage_usd }
}

/// Returns the sums over all trials; `None` if no instance has a price.
pub(super) fn totals(sources: &Sources<'_>) -> Option<CostTotals> {
    let is_priced = |cost: &&Cost| cost.instance_usd > 0.0;
    sources.costs.values().find(is_priced)?;
    let sum = |part: fn(&Cost) -> f64| sources.costs.values().map(part).fold(0.0, |sum, usd| sum + usd);
    let (spot, storage) = (sum(|cost| cost.instance_usd), sum(|cost| cost.storage_usd));
    let on_demand = sum(|cost| cost.on_demand_usd);
    let paid = spot + storage + sources.control_plane_usd.unwrap_or(0.0);
    Some(CostTotals {
        priced_trials: sources.costs.values().filter(|cost| is_priced(cost) && cost.unpriced_seconds == 0.0).count(),
        spot,
        on_demand,
        storage,
        control_plane: sources.control_plane_usd,
        paid,
        saving: (on_demand > 0.0).then(|| 1.0 - paid / on_demand),
    })
}
