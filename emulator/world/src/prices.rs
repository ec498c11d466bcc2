//! Prices of instances. They are not AWS's prices: a rule gives every type a price of about the real size.

use super::catalog::instance_type;

/// On-demand prices of a vCPU and of a GPU, in USD per hour.
const VCPU_USD: f64 = 0.05;
const GPU_USD: f64 = 0.5;

/// The Spot price in the first zone as a share of the on-demand price, and how much each further zone adds.
const SPOT_SHARE: f64 = 0.3;
const ZONE_SHARE: f64 = 0.02;

/// Returns the on-demand price in USD per hour; `None` for an unknown instance type.
pub fn on_demand_usd(name: &str) -> Option<f64> {
    let held = instance_type(name)?;
    Some(f64::from(held.vcpus) * VCPU_USD + f64::from(held.gpus) * GPU_USD)
}

/// Returns the Spot price in USD per hour in the zone with this number, from 0. It does not change.
pub fn spot_usd(name: &str, zone: usize) -> Option<f64> {
    Some(on_demand_usd(name)? * (SPOT_SHARE + ZONE_SHARE * zone as f64))
}
