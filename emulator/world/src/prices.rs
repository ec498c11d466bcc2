//! Prices of instances. They are this emulator's own, not AWS's: by a rule, so that every type has one, and of about
//! the size of real ones.

use super::catalog::instance_type;

/// USD per hour of a vCPU and of a GPU on demand.
const VCPU_USD: f64 = 0.05;
const GPU_USD: f64 = 0.5;

/// Share of the on-demand price at which spot capacity of the first zone goes, and how much each further zone adds.
const SPOT_SHARE: f64 = 0.3;
const ZONE_SHARE: f64 = 0.02;

/// USD per hour on demand; `None` for a name that is no instance type.
pub fn on_demand_usd(name: &str) -> Option<f64> {
    let held = instance_type(name)?;
    Some(f64::from(held.vcpus) * VCPU_USD + f64::from(held.gpus) * GPU_USD)
}

/// USD per hour of spot capacity in the zone of this number, counted from 0; it does not change.
pub fn spot_usd(name: &str, zone: usize) -> Option<f64> {
    Some(on_demand_usd(name)? * (SPOT_SHARE + ZONE_SHARE * zone as f64))
}
